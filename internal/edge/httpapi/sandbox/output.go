package sandbox

import (
	"context"
	"encoding/base64"
	"errors"
	"io"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/redact"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// rewind is how many bytes of output before a cursor are read again, so that a secret
// across the cursor is covered as it was for a client that read through it.
const rewind = 64 << 10

// View is the output of a process as its callers see it, from a cursor on.
type View struct {
	after process.Seq // nothing before it is shown
	at    process.Seq // taken so far
	text  bool        // no character is cut in two

	pair     *redact.Pair
	terminal *redact.Stream
	seen     [process.Control][]byte // covered and to be shown, by Stream
	held     [process.Control][]byte // of text: the beginning of a character
}

// NewView shows output from behind a place on. text has no character cut in two.
func NewView(covers *redact.Set, after process.Seq, text bool) *View {
	v := &View{after: after, at: max(0, after-rewind), text: text}
	v.pair = covers.Pair(v.see(process.Stdout), v.see(process.Stderr))
	v.terminal = covers.Stream(v.see(process.Terminal))
	return v
}

// From is where to begin to follow the process.
func (v *View) From() process.Seq { return v.at }

// see takes covered bytes of a stream, unless they are from before the cursor. Of text it
// takes a character that the cursor is within, too: its beginning was not shown.
func (v *View) see(s process.Stream) func([]byte) {
	return func(p []byte) {
		switch {
		case v.at >= v.after:
			v.seen[s] = append(v.seen[s], p...)
		case v.text:
			data := append(v.held[s], p...)
			v.held[s] = append([]byte(nil), data[wire.WholeRunes(data):]...)
		}
	}
}

// Take takes a chunk, and returns how many bytes ahead of it are missing.
func (v *View) Take(c process.Chunk) (missing int64) {
	begin := c.Seq - process.Seq(len(c.Data))
	if gap := begin - max(v.at, v.after); gap > 0 {
		missing = int64(gap)
		v.Flush()
	}
	v.at = begin
	if before := int(min(v.after-begin, process.Seq(len(c.Data)))); before > 0 {
		v.write(c.Stream, c.Data[:before])
		v.at += process.Seq(before)
		c.Data = c.Data[before:]
	}
	if len(c.Data) > 0 {
		v.write(c.Stream, c.Data)
	}
	v.at = c.Seq
	return missing
}

func (v *View) write(s process.Stream, p []byte) {
	switch s {
	case process.Stdout:
		v.pair.Write(redact.Stdout, p)
	case process.Stderr:
		v.pair.Write(redact.Stderr, p)
	case process.Terminal:
		v.terminal.Write(p)
	}
}

// Flush shows what was held because more might have come.
func (v *View) Flush() {
	v.pair.Flush()
	v.terminal.Flush()
}

// Shown returns what there is to show of a stream. all is for its end.
func (v *View) Shown(s process.Stream, all bool) []byte {
	data := append(v.held[s], v.seen[s]...)
	v.seen[s], v.held[s] = v.seen[s][:0], nil
	if v.text && !all {
		whole := wire.WholeRunes(data)
		v.held[s] = append([]byte(nil), data[whole:]...)
		data = data[:whole]
	}
	return data
}

func (h *Handlers) followProcess(c *httpapi.Call) error {
	p, id, err := h.onProcess(c)
	if err != nil {
		return err
	}
	after, follow := c.Int("after"), !c.Has("follow") || c.Bool("follow")
	end, err := c.OpenStream()
	if err != nil {
		return err
	}
	defer end()
	ctx, stop := c.Living(c.Context())
	defer stop()
	return h.within(ctx, p, func(u sandbox.Handle) error {
		covers, err := u.Redactor(ctx)
		if err != nil {
			return err
		}
		v := NewView(covers, process.Seq(after), c.Text("encoding") != "base64")
		out, err := u.Guest().Follow(ctx, id, v.at)
		if err != nil {
			return err
		}
		defer out.Close()
		f := &follower{View: v, of: u, out: out, events: c.Events(ProcessEvent{Type: "keepalive", Cursor: after}), cursor: after}
		defer f.events.End()
		return f.run(ctx, follow)
	})
}

// follower sends the output of a process to one client.
type follower struct {
	*View
	of     sandbox.Handle
	out    process.Output
	events *httpapi.Events
	tails  [process.Control]execution.Tail
	cursor int64 // up to which the client has everything
}

func (f *follower) run(ctx context.Context, follow bool) error {
	last := f.out.Info().Last
	for follow || f.at < last || f.out.Info().Exit != nil {
		chunk, err := f.out.Next()
		switch {
		case errors.Is(err, io.EOF):
			return f.exit(ctx)
		case errors.Is(err, process.ErrGone) && ctx.Err() == nil && f.of.Stopped(ctx) != nil:
			return f.events.Send(ProcessEvent{Type: "stopped", Reason: httpapi.Reason(f.of.Stopped(ctx)), Cursor: f.cursor})
		case err != nil:
			return errors.Join(err, context.Cause(ctx))
		}
		missing := f.Take(chunk)
		if err := f.send(chunk.Stream, missing, false); err != nil {
			return err
		}
	}
	return nil
}

// send sends what there is to show. last is the stream of the newest bytes; only
// with the last of several events has the client everything up to here.
func (f *follower) send(last process.Stream, missing int64, all bool) error {
	for _, s := range []process.Stream{process.Stdout, process.Stderr, process.Terminal} {
		if s != last {
			if err := f.event(s, 0, f.cursor, all); err != nil {
				return err
			}
		}
	}
	if err := f.event(last, missing, int64(f.at), all); err != nil {
		return err
	}
	f.cursor = int64(f.at)
	f.events.SetKeepalive(ProcessEvent{Type: "keepalive", Cursor: f.cursor})
	return nil
}

func (f *follower) event(s process.Stream, missing, cursor int64, all bool) error {
	if s > process.Terminal {
		return nil // between a host and its interpreter
	}
	data := f.Shown(s, all)
	if len(data) == 0 && missing == 0 {
		return nil
	}
	f.tails[s].Add(data)
	e := ProcessEvent{Type: "output", Stream: s.String(), Data: string(data), Dropped: missing, Cursor: cursor}
	if !f.text {
		e.Data = base64.StdEncoding.EncodeToString(data)
	}
	return f.events.Send(e)
}

// exit sends what was held back, and how the process ended.
func (f *follower) exit(ctx context.Context) error {
	f.at = max(f.at, f.after) // what is held is from behind the cursor
	f.Flush()
	if err := f.send(process.Stdout, 0, true); err != nil {
		return err
	}
	e := f.out.Exit()
	hint := ""
	if e.Code != 0 {
		hint = f.of.NetworkHint(f.out.Info().Started, [][]byte{f.tails[process.Stderr], f.tails[process.Stdout], f.tails[process.Terminal]})
	}
	return f.events.Send(ProcessEvent{
		Type: "exit", Hint: hint, ExitCode: &e.Code, Signal: signalName(e.Signal), TimedOut: e.TimedOut, Blocked: e.Blocked, Reason: httpapi.Reason(f.of.Killed(ctx, e)), Cursor: f.cursor,
	})
}
