package contexts

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/language"
	"github.com/atoll-run/atoll/internal/core/process"
)

// A run under a key has a number that is made of the key. The interpreter says when it
// begins one, remembers the last, and begins none twice. So what came of a run whose
// server is gone is found in the output that the guest daemon has kept, and where that
// does not tell, the interpreter is asked as soon as it is idle.

// numberOf is the number of the run that has a key, below 2^53.
func numberOf(key string) int64 {
	sum := sha256.Sum256([]byte(key))
	return int64(binary.BigEndian.Uint64(sum[:8]) >> 11)
}

// name gives a run its number.
func (r *run) name() {
	if r.req.Key != "" {
		r.number = numberOf(r.req.Key)
		return
	}
	r.s.run++
	r.number = r.s.run
}

// reset begins a run's outcome.
func (r *run) reset() {
	r.res, r.displays, r.shown = codecontext.Result{}, 0, 0
	r.left = [2]int64{r.req.MaxOutput, r.req.MaxOutput}
	r.redactor = r.u.Redactor.Pair(r.pass(process.Stdout), r.pass(process.Stderr))
	if r.buffered != nil {
		r.buffered.events = nil
	}
}

// buffer has the events that came since the last word of another run. What the code writes
// can be ahead of the interpreter's word that it began it, so all of them are of the next
// run.
type buffer struct {
	events  []codecontext.Event
	history bool // they are read from what was kept, in which another run may follow
}

func (b *buffer) add(e codecontext.Event) {
	e.Text = slices.Clone(e.Text)
	b.events = append(b.events, e)
}

// own passes on what is buffered: it is this run's.
func (r *run) own() {
	if r.buffered == nil || r.buffered.history {
		return
	}
	events := r.buffered.events
	r.buffered = nil
	for _, e := range events {
		r.emit(e)
	}
}

// Collect waits for the end of a run that was begun under a key, and passes on what is
// known of it.
func (c *Contexts) Collect(ctx context.Context, u *Use, id codecontext.ID, req codecontext.Request, sink codecontext.Sink) (*codecontext.Result, error) {
	if req.Key == "" || !language.Get(id.Language()).Context.Keyed {
		return nil, codecontext.NoKeys(id)
	}
	k := key{u.Sandbox, id}
	s, _, err := c.begin(k)
	if err != nil {
		return nil, err
	}
	keep := false
	defer func() { c.finish(k, s, keep) }()
	p, err := u.Guest.Process(ctx, id.Process())
	if fault.KindOf(err) == fault.NotFound && err != nil {
		return nil, codecontext.ErrNoTrace
	}
	if err != nil {
		return nil, err
	}
	r := &run{u: u, id: id, s: s, req: req, sink: sink, obey: c.obey, began: time.Now(), asked: s.asked, number: numberOf(req.Key)}
	res, err := r.do(ctx, func(ctx context.Context) error { return r.collect(ctx, &p) })
	keep = err == nil && res.Exit == nil
	return res, err
}

// collect reads what is kept of the interpreter's output, and what comes until the run is
// known to be done, or not to have begun.
func (r *run) collect(ctx context.Context, p *process.Info) error {
	r.buffered = &buffer{history: true}
	lost := p.First > 0 // perhaps the beginning of this run
	r.s.cursor = p.First
	if lost {
		r.decoder.tear()
	}
	if p.First < p.Last || p.Exit != nil {
		if err := r.history(ctx, p); err != nil {
			return err
		}
	}
	r.buffered.history = false
	if lost && !r.begun {
		r.res.StdoutTruncated, r.res.StderrTruncated = true, true
	}
	if r.begun || r.done || lost && p.Exit == nil {
		r.own()
	}
	switch {
	case r.done || r.begun && p.Exit != nil:
		return nil
	case p.Exit != nil && lost:
		return codecontext.ErrNoTrace
	case p.Exit != nil:
		r.unknown = true
		return nil
	}
	return r.exchanges(ctx, fmt.Appendf(nil, "%d 0 ?\n", r.number))
}

// history reads the output that a process had when it was looked at.
func (r *run) history(ctx context.Context, p *process.Info) error {
	out, err := r.u.Guest.Follow(ctx, r.id.Process(), p.First)
	if err != nil {
		return nameUnknown(r.id, err)
	}
	defer out.Close()
	for !r.done && (r.s.cursor < p.Last || p.Exit != nil) {
		chunk, err := out.Next()
		if errors.Is(err, io.EOF) {
			exit := out.Exit()
			r.res.Exit, r.res.Status, p.Exit = &exit, codecontext.Ended, &exit
			r.redactor.Flush()
			return nil
		}
		if err != nil {
			return err
		}
		if err := r.chunk(chunk); err != nil {
			return err
		}
	}
	return nil
}
