package executor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/infra/trace"
	"github.com/atoll-run/atoll/internal/node/disk"
)

// Homes keeps the home directories of threads on this machine.
type Homes interface {
	// Take returns the home of a thread as its State has it. No other caller has it
	// until it is closed.
	Take(ctx context.Context, tenant string, t execution.Thread) (Home, error)
	// Adopt is Take for a home that an earlier process took, and that a program
	// may have changed since; it is not at Dir.
	Adopt(ctx context.Context, tenant string, t execution.Thread) (Home, error)
}

// Home is a thread's home directory for one run.
type Home interface {
	// Dir is where the folder is taken from, and brought back to.
	Dir() string
	// Save stores what folder dir, which is the home wherever it is by now, holds.
	// After an error the thread has what it had.
	Save(ctx context.Context, dir string) (execution.ThreadState, error)
	// Close lets go of the home. With keep, what was saved is at Dir.
	Close(keep bool) error
}

// errTurnThread says why a turn has no thread.
var errTurnThread = fault.New(fault.Invalid, "a job of a turn has no thread: the sandbox of a turn keeps its files by itself; leave one of the two out")

// checkThread refuses a job whose thread cannot be had here.
func (x *Executor) checkThread(job *execution.Job) error {
	switch {
	case job.Thread == nil:
		return nil
	case job.Turn != "":
		return errTurnThread
	case x.cfg.Homes == nil:
		return fault.New(fault.Invalid, "this server keeps no threads")
	}
	return nil
}

// takeHome gets the job's thread its home.
func (t *task) takeHome() (err error) {
	if t.job.Thread == nil {
		return nil
	}
	ctx, span := trace.Start(t.ctx, "thread.take")
	t.home, err = t.x.cfg.Homes.Take(ctx, t.job.Tenant, *t.job.Thread)
	span.Fail(err)
	span.End()
	return err
}

// enterHome puts the home into the sandbox. It may have been there before.
func (t *task) enterHome() error {
	if t.home == nil {
		return nil
	}
	at := t.x.cfg.Sandboxes.HomePath(t.sandbox.Folder())
	if !t.homeAway {
		if err := disk.SetSize(filepath.Dir(at), t.job.Thread.Quota); err != nil {
			return err
		}
		if err := os.Rename(t.home.Dir(), at); err != nil {
			return fmt.Errorf("move the home directory: %w", err)
		}
		t.homeAway = true
	}
	return t.sandbox.Enter(t.ctx, t.job.Thread.State == "")
}

// adoptHome gets the job's thread its home, in a sandbox where an earlier process
// may have put it.
func (t *task) adoptHome() (err error) {
	if t.job.Thread == nil {
		return nil
	}
	at := t.x.cfg.Sandboxes.HomePath(t.sandbox.Folder())
	if _, err := os.Lstat(at); err != nil {
		return t.takeHome()
	}
	t.homeAway = true
	t.home, err = t.x.cfg.Homes.Adopt(t.ctx, t.job.Tenant, *t.job.Thread)
	return err
}

// dropHome lets go of a home whose changes do not count.
func (t *task) dropHome() {
	if t.home == nil {
		return
	}
	// What a sandbox still has goes with it.
	if err := t.home.Close(false); err != nil {
		t.x.cfg.Log.Error("cannot release a home directory", "trace_id", t.job.TraceID, "error", err)
	}
	t.home = nil
}

// saveTime is how long the saving of a home may take: less than 10 GiB take to a
// bucket that is slow, more than one takes that is there.
const saveTime = 10 * time.Minute

// saveHome stores the state of the job's thread, now that its program has ended
// in a way that counts, and notes in e what came of it.
func (t *task) saveHome(e *endRecord) {
	ctx, span := trace.StartKind(trace.Carry(t.x.stopped, t.ctx), "thread.save", trace.Internal)
	defer span.End()
	ctx, cancel := context.WithTimeoutCause(ctx, saveTime, fault.New(fault.Unavailable, "it took longer than %s", saveTime))
	defer cancel()
	state, err := t.save(ctx)
	if t.x.stopped.Err() != nil && err != nil {
		return // the next process does it
	}
	if e.Saved = true; err == nil {
		e.Thread = &state
		t.x.metrics.saves.WithLabelValues("saved").Inc()
		return
	}
	span.Fail(err)
	t.x.cfg.Log.Error("cannot save a thread", "trace_id", t.job.TraceID, "error", err)
	t.x.metrics.saves.WithLabelValues("failed").Inc()
	reason := "the server failed"
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Msg != "" {
		reason = f.Msg
	}
	e.fail("the thread was not saved and is as it was before: " + reason)
}

func (t *task) save(ctx context.Context) (state execution.ThreadState, err error) {
	folder := t.sandbox.Folder()
	at := t.x.cfg.Sandboxes.HomePath(folder)
	if t.home == nil { // an earlier process had it
		if _, err := os.Lstat(at); err != nil {
			return state, fault.Wrap(fault.Internal, err, "the server was restarted while it was saved")
		}
		if t.home, err = t.x.cfg.Homes.Adopt(ctx, t.job.Tenant, *t.job.Thread); err != nil {
			return state, err
		}
	}
	if err := t.x.cfg.Sandboxes.EndHome(ctx, folder, t.program(0, 0)); err != nil {
		return state, fmt.Errorf("end what uses the home directory: %w", err)
	}
	return t.home.Save(ctx, at)
}

// returnHome brings a saved home back, for the thread's next job.
func (t *task) returnHome() {
	if t.home == nil {
		return
	}
	err := os.Rename(t.x.cfg.Sandboxes.HomePath(t.sandbox.Folder()), t.home.Dir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.x.cfg.Log.Warn("cannot cache a home directory", "trace_id", t.job.TraceID, "error", err)
	}
	if err := t.home.Close(err == nil); err != nil {
		t.x.cfg.Log.Error("cannot release a home directory", "trace_id", t.job.TraceID, "error", err)
	}
	t.home = nil
}
