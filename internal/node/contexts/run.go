package contexts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/language"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/redact"
)

// obeyTime is how long an interrupted piece of code has to end. Then its interpreter
// is ended, and has as long again.
const obeyTime = 5 * time.Second

// repeatPauses are the pauses before each repeated interrupt. They give a program that obeys the
// first interrupt time to end.
var repeatPauses = []time.Duration{300 * time.Millisecond, 1200 * time.Millisecond}

var (
	errTimeout = errors.New("timed out")
	errDone    = errors.New("the run is done")
)

// Run runs a piece of code in a context, and returns when it has ended, been
// interrupted, or ended its interpreter; then the context must be restarted. One
// runs at a time. When ctx ends or sink fails, the code is interrupted; whatever
// the sandbox does, Run returns soon after.
func (c *Contexts) Run(ctx context.Context, u *Use, id codecontext.ID, req codecontext.Request, sink codecontext.Sink) (*codecontext.Result, error) {
	switch {
	case req.Key != "" && !language.Get(id.Language()).Context.Keyed:
		return nil, codecontext.NoKeys(id)
	case len(req.Code) > codecontext.MaxCode:
		return nil, codecontext.ErrTooLong
	case strings.IndexByte(req.Code, 0) >= 0 && language.Get(id.Language()).Context.NoNUL:
		return nil, codecontext.HasNUL(id)
	}
	k := key{u.Sandbox, id}
	s, known, err := c.begin(k)
	if err != nil {
		return nil, err
	}
	keep := false
	defer func() { c.finish(k, s, keep) }()
	if !known {
		if err := c.locate(ctx, u, id, s); err != nil {
			return nil, err
		}
	}
	r := &run{u: u, id: id, s: s, req: req, sink: sink, obey: c.obey, began: time.Now(), asked: s.asked}
	r.name()
	res, err := r.do(ctx, r.converse)
	keep = err == nil && res.Exit == nil
	return res, err
}

// locate finds out where the output of a context ends, and starts one that is made
// on its first use.
func (c *Contexts) locate(ctx context.Context, u *Use, id codecontext.ID, s *state) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTime, codecontext.NotResponding(id))
	defer cancel()
	p, err := u.Guest.Process(ctx, id.Process())
	if fault.KindOf(err) == fault.NotFound && err != nil && id.Implicit() {
		if _, err = c.start(ctx, u, id, ""); err == nil {
			p, err = u.Guest.Process(ctx, id.Process())
		}
	}
	if err != nil {
		return nameUnknown(id, err)
	}
	if p.Exit != nil {
		return codecontext.HasEnded(id, p.Exit.Code)
	}
	s.cursor = p.Last
	return nil
}

// run is a piece of code on its way.
type run struct {
	u     *Use
	id    codecontext.ID
	s     *state
	req   codecontext.Request
	sink  codecontext.Sink
	obey  time.Duration
	began time.Time
	asked <-chan struct{} // receives a value for each interrupt

	number   int64   // of the run, as the interpreter is told
	buffered *buffer // of what may be another run's; nil once it is known to be of this one
	begun    bool    // the interpreter has said so
	unknown  bool    // the interpreter has not begun it

	res      codecontext.Result
	done     bool
	gone     error // why sink takes no more
	halt     context.CancelCauseFunc
	redactor *redact.Pair
	decoder  decoder
	left     [2]int64 // bytes of each stream that may still be passed on
	displays int
	shown    int
}

func (r *run) do(ctx context.Context, converse func(context.Context) error) (*codecontext.Result, error) {
	// What is under way is not left half done when the caller goes away: it is
	// interrupted, and then it ends.
	ctx, r.halt = context.WithCancelCause(ctx)
	defer r.halt(errDone)
	timed, cancel := context.WithTimeoutCause(ctx, r.req.Timeout, errTimeout)
	defer cancel()
	work, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(errDone)
	r.reset()

	watched := make(chan error, 1)
	unhook := context.AfterFunc(timed, func() {
		if errors.Is(context.Cause(timed), codecontext.ErrDetached) {
			end(codecontext.ErrDetached)
			watched <- nil
			return
		}
		hard := time.AfterFunc(2*r.obey, func() { end(codecontext.NotResponding(r.id)) })
		defer hard.Stop()
		err := r.interrupt(work)
		<-work.Done()
		watched <- err
	})
	var repeats sync.WaitGroup
	if language.Get(r.id.Language()).Context.Forks {
		repeats.Go(func() { r.repeat(work) })
	}
	err := converse(work)
	end(errDone)
	repeats.Wait() // a late interrupt could hit the next run
	if !unhook() {
		if failed := ignoreDone(<-watched); failed != nil && (err == nil || failed.Error() != err.Error()) {
			err = errors.Join(err, failed)
		}
	}
	switch {
	case r.unknown:
		return nil, codecontext.ErrNotBegun
	case err != nil && errors.Is(context.Cause(work), codecontext.ErrDetached):
		return nil, codecontext.ErrDetached
	}
	if err != nil {
		return nil, err
	}
	r.res.Took = time.Since(r.began)
	if context.Cause(timed) == errTimeout && r.res.Status != codecontext.OK {
		r.res.Status = codecontext.TimedOut
	}
	return &r.res, nil
}

// converse hands the code over and takes what comes of it.
func (r *run) converse(ctx context.Context) error {
	keyed := ""
	if r.req.Key != "" {
		keyed = " key"
	}
	return r.exchanges(ctx, fmt.Appendf(nil, "%d %d%s\n%s", r.number, len(r.req.Code), keyed, r.req.Code))
}

// exchanges is exchange until the run is done.
func (r *run) exchanges(ctx context.Context, data []byte) error {
	err := r.exchange(ctx, data)
	for errors.Is(err, process.ErrEnough) { // which the code has said itself
		err = r.exchange(ctx, nil)
	}
	return err
}

// exchange writes to the interpreter and takes what comes from it.
func (r *run) exchange(ctx context.Context, data []byte) error {
	out, err := r.u.Guest.Converse(ctx, r.id.Process(), data, r.s.cursor)
	if err != nil {
		return nameUnknown(r.id, err)
	}
	defer out.Close()
	if data != nil {
		r.emit(codecontext.Event{})
	}
	err = r.read(out)
	if r.done {
		out.Enough()
	}
	return err
}

// ignoreDone leaves away what only says that the run was over first.
func ignoreDone(err error) error {
	if errors.Is(err, errDone) || fault.KindOf(err) == fault.NotFound {
		return nil
	}
	return err
}

// interrupt interrupts the code, and ends the interpreter if that does not help,
// until ctx ends.
func (r *run) interrupt(ctx context.Context) error {
	// More than once: the first may come before the code does.
	again := time.NewTicker(r.obey / 5)
	defer again.Stop()
	for range 5 {
		if err := interrupt(ctx, r.u.Guest, r.id); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-again.C:
		}
	}
	return r.u.Guest.Kill(ctx, r.id.Process())
}

// repeat resends an interrupt that the caller requested. A shell that starts a pipeline handles the
// first interrupt only when the pipeline ends. A part that the shell forks later never gets it,
// and a part that is being forked loses it when the shell clears the traps.
func (r *run) repeat(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-r.asked:
	}
	for _, pause := range repeatPauses {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		if interrupt(ctx, r.u.Guest, r.id) != nil {
			return // the run gets the same error
		}
	}
}

// read takes what the interpreter says until the run is done, or the interpreter.
func (r *run) read(out process.Output) error {
	for !r.done {
		chunk, err := out.Next()
		switch {
		case errors.Is(err, io.EOF):
			exit := out.Exit()
			r.res.Exit, r.res.Status = &exit, codecontext.Ended
			r.redactor.Flush()
			return nil
		case err != nil:
			return err
		}
		if err := r.chunk(chunk); err != nil {
			return err
		}
	}
	return nil
}

// chunk takes a piece of what the interpreter, or its code, has written.
func (r *run) chunk(chunk process.Chunk) error {
	r.s.cursor = chunk.Seq
	if chunk.Dropped > 0 {
		r.decoder.tear() // it was not the run's
	}
	switch chunk.Stream {
	case process.Stdout:
		r.res.StdoutBytes += int64(len(chunk.Data)) + chunk.Dropped
		r.redactor.Write(redact.Stdout, chunk.Data)
	case process.Stderr:
		r.res.StderrBytes += int64(len(chunk.Data)) + chunk.Dropped
		r.redactor.Write(redact.Stderr, chunk.Data)
	case process.Control:
		if err := r.decoder.write(chunk.Data, r.take); err != nil {
			return r.endInterpreter(err)
		}
	}
	return nil
}

// endInterpreter ends an interpreter that does not speak as ours do.
func (r *run) endInterpreter(why error) error {
	ctx, cancel := context.WithTimeout(context.Background(), obeyTime)
	defer cancel()
	err := r.u.Guest.Kill(ctx, r.id.Process())
	return fault.Wrap(fault.Conflict, errors.Join(why, err), "the interpreter wrote to its own channel what it never writes, and was ended; restart the context")
}

// take takes a message.
func (r *run) take(m *message) error {
	if m.ID != r.number {
		if r.buffered != nil {
			r.reset() // what came before it is not of this run
		}
		return nil // of an earlier run, or none
	}
	switch m.Type {
	case "began":
		r.begun = true
		r.own()
	case "unknown":
		r.done, r.unknown = true, true
	case "display", "result":
		r.display(&codecontext.Display{Data: m.Data, Metadata: m.Metadata, Result: m.Type == "result"})
	case "error":
		e := &codecontext.Error{Name: redactText(r.u.Redactor, m.Name), Value: redactText(r.u.Redactor, m.Value)}
		for _, line := range m.Traceback {
			e.Traceback = append(e.Traceback, redactText(r.u.Redactor, line))
		}
		r.res.Error = e
	case "done", "known":
		r.redactor.Flush()
		r.own()
		r.done, r.res.Status, r.res.ExitCode = true, m.Status, m.ExitCode
	}
	return nil
}

func (r *run) display(d *codecontext.Display) {
	r.displays++
	r.shown += displaySize(d)
	if r.displays > maxDisplays || r.shown > maxShown {
		r.res.DisplaysTruncated = true
		return
	}
	covered := make(map[string]jsontext.Value, len(d.Data))
	for _, mime := range slices.Sorted(maps.Keys(d.Data)) { // two may become the same
		covered[redactText(r.u.Redactor, mime)] = redactJSON(r.u.Redactor, d.Data[mime])
	}
	d.Data = covered
	d.Metadata = redactJSON(r.u.Redactor, d.Metadata)
	r.emit(codecontext.Event{Display: d})
}

// pass passes covered output of a stream on, as much as is allowed.
func (r *run) pass(stream process.Stream) func([]byte) {
	truncated := &r.res.StdoutTruncated
	if stream == process.Stderr {
		truncated = &r.res.StderrTruncated
	}
	return func(p []byte) {
		if int64(len(p)) > r.left[stream] {
			p, *truncated = p[:r.left[stream]], true
		}
		if len(p) > 0 {
			r.left[stream] -= int64(len(p))
			r.emit(codecontext.Event{Stream: stream, Text: p})
		}
	}
}

func (r *run) emit(e codecontext.Event) {
	switch {
	case r.gone != nil:
		return
	case r.buffered != nil:
		r.buffered.add(e)
		return
	}
	if r.gone = r.sink(e); r.gone != nil {
		r.halt(r.gone)
	}
}
