package sandboxes

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/process"
)

const (
	// heldFor is how long output is held that may begin a secret. The user of a terminal expects
	// to see typed characters, and a program may wait for an answer to its output.
	heldFor = 100 * time.Millisecond
	// abandonTime limits how long Abandon waits.
	abandonTime = time.Minute
)

// Output is the redacted output of a process. Close it.
type Output struct {
	process.Output
	view *view
	use  *Use
	made bool // the process was started for this Output
}

// Run starts a process with the given variables, and follows its output from the beginning. Data
// can end within a character.
func (u *Use) Run(ctx context.Context, spec process.Spec, env map[string]string) (*Output, error) {
	u.trail.starts(&spec)
	return u.run(ctx, withEnv(spec, env))
}

func (u *Use) run(ctx context.Context, spec process.Spec) (*Output, error) {
	covers, err := u.Redactor(ctx)
	if err != nil {
		return nil, err
	}
	out, err := u.Guest().Run(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &Output{Output: out, view: newView(covers, 0, false), use: u, made: true}, nil
}

// Follow follows the output of a process after a cursor. text keeps characters whole.
func (u *Use) Follow(ctx context.Context, id process.ID, after process.Seq, text bool) (*Output, error) {
	covers, err := u.Redactor(ctx)
	if err != nil {
		return nil, err
	}
	v := newView(covers, after, text)
	out, err := u.Guest().Follow(ctx, id, v.at)
	if err != nil {
		return nil, err
	}
	return &Output{Output: out, view: v, use: u}, nil
}

// Cursor returns the position up to which Show has shown the output.
func (o *Output) Cursor() process.Seq { return o.view.at }

// Abandon ends the process if it was started for o. Call it if the client has gone, or never
// learned the process's id.
func (o *Output) Abandon(ctx context.Context) error {
	if !o.made {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonTime)
	defer cancel()
	return o.use.Guest().Discard(ctx, o.Info().ID)
}

// Show calls show with output as it arrives, and alive with each tick; both are nil for none. Show
// returns io.EOF after the end of the process, and the cause of ctx when ctx ends. The caller
// closes o afterwards.
func (o *Output) Show(ctx context.Context, show func(s process.Stream, data []byte) error, tick <-chan time.Time, alive func() error) error {
	v, chunks, failed, taken, left := o.view, make(chan process.Chunk), make(chan error, 1), make(chan struct{}), make(chan struct{})
	defer close(left)
	go func() { // ends with o
		for {
			chunk, err := o.Next()
			if err != nil {
				failed <- err
				return
			}
			select {
			case chunks <- chunk:
			case <-left:
				return
			}
			select {
			case <-taken: // its bytes are valid until the next call of Next
			case <-left:
				return
			}
		}
	}()
	held := time.NewTimer(heldFor)
	defer held.Stop()
	for {
		var err error
		select {
		case chunk := <-chunks:
			v.take(chunk)
			taken <- struct{}{}
			held.Reset(heldFor)
		case <-held.C:
			v.flush()
		case <-tick:
			err = alive()
		case err = <-failed:
			v.flush()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		for s := process.Stdout; s <= process.Terminal; s++ {
			if data := v.shown(s, true); len(data) > 0 {
				if err := show(s, data); err != nil {
					return err
				}
			}
		}
		if err != nil {
			return err
		}
	}
}

// Reader receives the output of a process in pieces.
type Reader interface {
	// Data receives a piece. Before it, dropped bytes are missing. A reader that has it can
	// continue at cursor, but may get pieces with the same cursor again.
	Data(s process.Stream, data []byte, dropped int64, cursor process.Seq) error
	// Reached says that the reader has everything before cursor.
	Reached(cursor process.Seq)
	// Exited receives the end of the process. It comes last.
	Exited(e *Exit) error
	// Stopped comes last if the server ended the programs of the sandbox.
	Stopped(why error) error
}

// Exit says how a process ended.
type Exit struct {
	process.Exit
	Killed error  // why the server ended it; nil if it did not
	Hint   string // how to fix a failure that the network policy may have caused
	Cursor process.Seq
}

// Read passes output to a reader until the process ends, or only the stored output if follow is
// false.
func (o *Output) Read(ctx context.Context, follow bool, to Reader) error {
	f := &reading{Output: o, to: to, cursor: o.view.after}
	last := o.Info().Last
	for follow || o.view.at < last || o.Info().Exit != nil {
		chunk, err := o.Next()
		switch {
		case errors.Is(err, io.EOF):
			return f.exit(ctx)
		case errors.Is(err, process.ErrGone) && ctx.Err() == nil && o.use.Stopped(ctx) != nil:
			return to.Stopped(o.use.Stopped(ctx))
		case err != nil:
			return errors.Join(err, context.Cause(ctx))
		}
		missing := o.view.take(chunk)
		if err := f.send(chunk.Stream, missing, false); err != nil {
			return err
		}
	}
	return nil
}

// reading is one Read.
type reading struct {
	*Output
	to     Reader
	tails  [process.Control]execution.Tail
	cursor process.Seq // up to which the reader has everything
}

// send sends the output that can be shown. last is the stream of the newest bytes. Only the last
// piece carries the new cursor.
func (f *reading) send(last process.Stream, missing int64, all bool) error {
	for _, s := range []process.Stream{process.Stdout, process.Stderr, process.Terminal} {
		if s != last {
			if err := f.piece(s, 0, f.cursor, all); err != nil {
				return err
			}
		}
	}
	if err := f.piece(last, missing, f.view.at, all); err != nil {
		return err
	}
	f.cursor = f.view.at
	f.to.Reached(f.cursor)
	return nil
}

func (f *reading) piece(s process.Stream, missing int64, cursor process.Seq, all bool) error {
	if s > process.Terminal {
		return nil // between a host and its interpreter
	}
	data := f.view.shown(s, all)
	if len(data) == 0 && missing == 0 {
		return nil
	}
	f.tails[s].Add(data)
	return f.to.Data(s, data, missing, cursor)
}

// exit sends the held output, and the end of the process.
func (f *reading) exit(ctx context.Context) error {
	f.view.at = max(f.view.at, f.view.after) // held bytes are from behind the cursor
	f.view.flush()
	if err := f.send(process.Stdout, 0, true); err != nil {
		return err
	}
	e := &Exit{Exit: f.Exit(), Cursor: f.cursor}
	if e.Code != 0 {
		e.Hint = f.use.NetworkHint(f.Info().Started, [][]byte{f.tails[process.Stderr], f.tails[process.Stdout], f.tails[process.Terminal]})
	}
	e.Killed = f.use.Killed(ctx, e.Exit)
	return f.to.Exited(e)
}
