package executor

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/node/cleanup"
)

// takeOverIdle has a turn keep the sandbox that no job used when the earlier process ended.
// Opening it takes a while, for which jobs of the turn wait.
func (x *Executor) takeOverIdle(ctx context.Context, folder string, r *idleRecord) error {
	if err := removeOutputs(x.outputPath(folder)); err != nil { // of its last job
		return err
	}
	if p := x.presence; p != nil {
		if err := p.HoldTurn(ctx, r.Job.Turn); err != nil {
			x.cfg.Log.Warn("another executor continues a turn", "trace_id", r.Job.TraceID, "error", err)
			return x.removeIdle(ctx, folder)
		}
	}
	x.mu.Lock()
	u := x.joinFirst(&r.Job)
	x.mu.Unlock()
	if u == nil {
		return x.removeIdle(ctx, folder)
	}
	u.made, u.window, u.trusts, u.skills = settingOf(&r.Job), r.Window, r.Trusts, r.Skills
	x.tasks.Go(func() {
		x.openIdle(u, folder, &r.Job)
		u.give()
		x.mu.Lock()
		defer x.mu.Unlock()
		x.leave(u)
	})
	return nil
}

// openIdle opens the sandbox of a turn, or ends it where that fails.
func (x *Executor) openIdle(u *turn, folder string, last *execution.Job) {
	ctx, cancel := context.WithTimeout(x.stopped, openTimeout)
	defer cancel()
	c, err := x.cfg.Sandboxes.OpenIdle(ctx, folder, last)
	switch {
	case err == nil:
		u.sandbox, u.noted = c, true
		x.metrics.takeovers.WithLabelValues(takeoverIdle).Inc()
	case x.stopped.Err() == nil: // else the next process may have more luck
		x.cfg.Log.Error("cannot take over the sandbox of a turn", "trace_id", last.TraceID, "error", err)
		x.metrics.takeovers.WithLabelValues(takeoverFailed).Inc()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), destroyTimeout)
		defer cancel()
		if err := x.removeIdle(ctx, folder); err != nil {
			x.retries.Later(cleanup.Sandbox, filepath.Base(folder), err, func(ctx context.Context) error { return x.removeIdle(ctx, folder) })
		}
	}
}

// removeIdle ends a sandbox that no turn keeps.
func (x *Executor) removeIdle(ctx context.Context, folder string) error {
	return errors.Join(forget(folder), x.cfg.Sandboxes.Remove(ctx, folder))
}
