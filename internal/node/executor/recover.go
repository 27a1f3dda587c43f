package executor

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/infra/trace"
	"github.com/atoll-run/atoll/internal/node/cleanup"
)

// Recover takes over what an earlier process left, and then lets jobs in. When
// it returns, p knows of every run; they go on in the background.
func (x *Executor) Recover(ctx context.Context, p Presence) error {
	x.mu.Lock()
	x.presence = p
	x.mu.Unlock()
	complete, err := readMark(x.cfg.Mark)
	if err != nil { // as without a mark
		x.retries.Count(cleanup.Takeover, x.cfg.Mark, err)
	}
	left, err := x.cfg.Sandboxes.Left(ctx)
	if err != nil {
		return fmt.Errorf("look for what an earlier process left: %w", err)
	}
	for _, folder := range left {
		if err := x.takeOver(ctx, folder); err != nil {
			x.cfg.Log.Error("cannot take over a sandbox", "sandbox_id", filepath.Base(folder), "error", err)
			x.metrics.takeovers.WithLabelValues(takeoverUnreadable).Inc()
			complete = time.Time{}
			x.retries.Try(ctx, cleanup.Takeover, filepath.Base(folder), func(ctx context.Context) error {
				return errors.Join(x.cfg.Sandboxes.Remove(ctx, folder), removeOutputs(x.outputPath(folder)))
			})
		}
	}
	if len(left) > 0 {
		x.cfg.Log.Info("took over the runs of an earlier process", "count", len(left))
	}
	if err := x.sweepOutputs(ctx, left); err != nil {
		return fmt.Errorf("sweep outputs of an earlier process: %w", err)
	}
	all, err := x.takeUpWaiting(ctx)
	if err != nil {
		return err
	}
	if !all {
		complete = time.Time{}
	}
	if err := leaveMark(x.cfg.Mark); err != nil {
		return err
	}
	x.complete = complete
	x.mu.Lock()
	defer x.mu.Unlock()
	x.open = true
	return nil
}

// Complete returns, after Recover, since when all that this executor has taken on is known
// here: a job of later that it does not have, and that has no Result, was never begun.
// It is zero if that is not known.
func (x *Executor) Complete() time.Time { return x.complete }

// takeUpWaiting runs the jobs that an earlier process had taken on and not
// begun, unless another call has by now. It reports whether it could read all of them.
func (x *Executor) takeUpWaiting(ctx context.Context) (all bool, err error) {
	w, left, unreadable, err := openWaiting(x.cfg.Waiting)
	if err != nil {
		return false, err
	}
	if unreadable > 0 {
		x.retries.Count(cleanup.Job, x.cfg.Waiting, fmt.Errorf("%d jobs in the file cannot be read and will not run", unreadable))
	}
	x.mu.Lock()
	x.waiting = w // no job is admitted yet
	x.mu.Unlock()
	for _, rec := range left {
		t := &task{x: x, job: rec.Job, created: rec.Created, origin: rec.Trace, done: make(chan struct{}), waits: true}
		if !x.retries.Try(ctx, cleanup.Job, t.job.TraceID, func(ctx context.Context) error { return x.takeUpOne(ctx, t) }) {
			unreadable++
		}
	}
	if len(left) > 0 {
		x.cfg.Log.Info("took up jobs that an earlier process had not begun", "count", len(left))
	}
	return unreadable == 0, nil
}

// takeUpOne begins a job that waits, unless it has begun, ended or become too old.
func (x *Executor) takeUpOne(ctx context.Context, t *task) error {
	last, err := x.cfg.Writer.Last(ctx, t.job.TraceID)
	if err != nil {
		return fmt.Errorf("look for the log of a job that waits: %w", err)
	}
	x.mu.Lock()
	known := x.live[t.job.TraceID] != nil || last > 1
	x.mu.Unlock()
	if known || x.cfg.WaitFor > 0 && time.Since(t.created) > x.cfg.WaitFor {
		t.begun() // where no executor has it, the gateways find that out
		return nil
	}
	err = x.takeUp(ctx, t)
	if x.drained.Err() != nil {
		return err // the next process takes it up
	}
	if err != nil {
		x.cfg.Log.Error("cannot run a waiting job", "trace_id", t.job.TraceID, "error", err)
		t.begun()
		if p := x.presence; p != nil {
			p.Release(t.job.TraceID) // otherwise gateways believe that the job continues
		}
	}
	return nil
}

// takeUp begins a job that waits.
func (x *Executor) takeUp(ctx context.Context, t *task) error {
	if p := x.presence; p != nil {
		if err := p.Hold(t.job.TraceID, t.job.Tenant); err != nil {
			return err
		}
		if t.job.Turn != "" {
			if err := p.HoldTurn(ctx, t.job.Turn); err != nil {
				return err
			}
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.drained.Err(); err != nil {
		return err
	}
	if t.job.Turn != "" {
		var err error
		if t.turn, err = x.join(&t.job); err != nil {
			return err
		}
	}
	if err := x.line.enter(t.job.Tenant); err != nil {
		if t.turn != nil {
			x.leave(t.turn)
		}
		return err
	}
	x.begin(trace.Extract(ctx, t.origin), t, t.run)
	return nil
}

// takeOver begins a task of what is in a sandbox's folder.
func (x *Executor) takeOver(ctx context.Context, folder string) error {
	j, rec, idle, err := openJournal(folder)
	if err != nil {
		return err
	}
	if idle != nil {
		return errors.Join(j.close(), x.takeOverIdle(ctx, folder, idle))
	}
	t := &task{
		x: x, job: rec.Job, created: rec.Created, started: rec.Started, start: rec.start(), reused: rec.Reused, isolation: rec.Isolation, origin: rec.Trace,
		window: rec.Window, windows: rec.Windows, done: make(chan struct{}),
	}
	p := x.presence // only this goroutine sets it
	if p != nil {
		if err := p.Hold(t.job.TraceID, t.job.Tenant); err != nil {
			return errors.Join(err, j.close())
		}
	}
	held := t.job.Turn != ""
	if p != nil && held {
		if err := p.HoldTurn(ctx, t.job.Turn); err != nil {
			x.cfg.Log.Warn("another executor continues a turn", "trace_id", t.job.TraceID, "error", err)
			held = false // the run ends in a sandbox of its own, which no later job uses
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if held {
		if t.turn = x.joinFirst(&t.job); t.turn != nil {
			t.turn.made, t.turn.window, t.turn.trusts, t.turn.skills = settingOf(&t.job), t.window, len(t.job.BoundSecrets) > 0, rec.Skills
		}
	}
	release := x.line.force(t.job.Tenant)
	x.begin(trace.Extract(ctx, t.origin), t, func() {
		defer release()
		if t.turn != nil {
			defer t.leaveTurn()
			defer t.turn.give()
		}
		t.resume(folder, j, rec)
	})
	return nil
}

// joinFirst makes a job, or its sandbox, the first of its turn here, with which the turn is
// busy. It returns nil if the turn has another one: a kill can leave two sandboxes, one of
// them of a turn that had ended. x.mu is held.
func (x *Executor) joinFirst(job *execution.Job) *turn {
	if x.turns[job.Turn] != nil {
		return nil
	}
	t, err := x.join(job)
	if err != nil {
		return nil
	}
	t.room = true
	x.rooms++
	t.busy <- struct{}{}
	return t
}

// openTimeout is how long a sandbox may take to answer that was left by another
// process.
const openTimeout = 30 * time.Second

// resume goes on with a run whose journal another process has begun.
func (t *task) resume(folder string, j *journal, rec jobRecord) {
	x := t.x
	out, end, err := t.replay(folder, j)
	if err != nil {
		_ = j.close()
		t.lose(folder, err)
		return
	}
	defer out.close()
	defer t.dropHome() // nil by then, unless nothing of it counts
	// Whatever is wished of the run, only an open sandbox can be told.
	ctx, cancel := context.WithTimeout(x.stopped, openTimeout)
	t.sandbox, err = x.cfg.Sandboxes.Open(ctx, folder, &t.job)
	cancel()
	switch {
	case x.stopped.Err() != nil:
		t.sandbox = remains{x: x, folder: folder} // so that it is left alone
		t.detach()
		return
	case end != nil:
		x.metrics.takeovers.WithLabelValues(takeoverEnded).Inc()
		if err != nil {
			t.sandbox = remains{x: x, folder: folder}
		}
		t.turn.placed(&t.job)
		out.start(j)
		if end.Collects {
			t.collectAgain(out, end, err)
		}
		t.conclude(out, *end, err != nil)
		return
	case err != nil:
		t.abandon(out, j, folder, fmt.Errorf("its sandbox has ended: %w", err))
		return
	}
	out.start(j)
	skip := out.raw
	// The guest keeps the time; this is for one that does not.
	rest := max(t.job.Timeout-time.Since(t.started), 0)
	stop := t.watchHome()
	outcome, err := t.sandbox.Attach(t.ctx, t.program(rec.Run, rest), skip, out.write)
	stop()
	switch {
	case errors.Is(err, execution.ErrNoRun) && skip == [2]int64{} && out.seq == 1:
		// The process before this one came to its end between the journal and
		// the program. A guest that had run one would say so.
		x.metrics.takeovers.WithLabelValues(takeoverStarted).Inc()
		if err = errors.Join(t.adoptHome(), t.loadSkills()); err == nil {
			outcome, err = t.runProgram(rec.Run, out)
		}
	case err == nil || errors.Is(err, execution.ErrLetGo):
		x.metrics.takeovers.WithLabelValues(takeoverResumed).Inc()
		t.turn.placed(&t.job)
	default:
		t.abandon(out, j, folder, err)
		return
	}
	t.settle(out, outcome, err)
}

// replay makes the output what it was when the earlier process came to its end.
func (t *task) replay(folder string, j *journal) (*output, *endRecord, error) {
	var stored int64
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		var err error
		if stored, err = t.x.cfg.Writer.Last(t.x.stopped, t.job.TraceID); err == nil {
			break
		}
		t.x.cfg.Log.Warn("cannot read an output log's end; trying again", "trace_id", t.job.TraceID, "error", err)
		if !pause(t.x.stopped, wait) {
			return nil, nil, err
		}
	}
	out, err := t.x.newOutput(&t.job, folder, func() { t.cancel(errInternal) })
	if err != nil {
		return nil, nil, err
	}
	end, err := out.replay(j, stored)
	if err != nil {
		out.close()
		return nil, nil, fmt.Errorf("replay the journal: %w", err)
	}
	return out, end, nil
}

// abandon ends a run that cannot be taken over, with the output that is known.
func (t *task) abandon(out *output, j *journal, folder string, err error) {
	t.x.cfg.Log.Error("cannot take over a run", "trace_id", t.job.TraceID, "error", err)
	t.x.metrics.takeovers.WithLabelValues(takeoverFailed).Inc()
	if t.sandbox == nil {
		t.sandbox = remains{x: t.x, folder: folder}
	}
	out.start(j)
	t.conclude(out, endRecord{
		Status: execution.Failed, ExitCode: -1, Bytes: out.raw, CompletedAt: time.Now(),
		Error: "the server was restarted and the run could not be taken over: " + reason(err),
	}, true)
	if !t.told {
		return // the next process reads them again
	}
	if err := removeOutputs(out.answer.path); err != nil {
		t.x.cfg.Log.Warn("cannot remove an output", "trace_id", t.job.TraceID, "error", err)
	}
}

// lose is abandon for a run whose output is not known either.
func (t *task) lose(folder string, err error) {
	if t.x.stopped.Err() != nil {
		t.letGo = true // the next process may have more luck
		return
	}
	t.x.cfg.Log.Error("cannot take over a run", "trace_id", t.job.TraceID, "error", err)
	t.x.metrics.takeovers.WithLabelValues(takeoverFailed).Inc()
	t.sandbox = remains{x: t.x, folder: folder}
	if err := removeOutputs(t.x.outputPath(folder)); err != nil {
		t.x.cfg.Log.Warn("cannot remove an output", "trace_id", t.job.TraceID, "error", err)
	}
	t.store(execution.Result{
		Status: execution.Failed, ExitCode: -1,
		Error: "the server was restarted and the run could not be taken over: its stored state cannot be read",
	})
	t.discard()
}

// reason is what a caller may be told of why a run is lost.
func reason(err error) string {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.Msg
	}
	if errors.Is(err, execution.ErrNoRun) {
		return "its sandbox no longer knows it"
	}
	return "its sandbox had ended or did not answer"
}

// remains are what is left of a sandbox that cannot be opened.
type remains struct {
	Claimed
	x      *Executor
	folder string
}

func (r remains) Folder() string                    { return r.folder }
func (r remains) Destroy(ctx context.Context) error { return r.x.cfg.Sandboxes.Remove(ctx, r.folder) }
func (r remains) Detach() error                     { return nil }
