package engine

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
)

// fullCheck is how often AwaitFull looks at the pool.
const fullCheck = 100 * time.Millisecond

// AwaitFull returns when all that the configured environment is to have ready is ready,
// with an error if ctx ends before.
func (e *Engine) AwaitFull(ctx context.Context) error {
	tick := time.NewTicker(fullCheck)
	defer tick.Stop()
	for !e.pool.Full() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// Expect has the pool make one sandbox of each kind that a program in the language of a
// job can need, as a run of the job at the time last would have: in the bounds of the
// pool, and until no demand has followed for a while. Of the job it takes what decides
// about the sandbox; nothing is run. It returns how many sandboxes are expected, 0 where
// nothing is kept ready for such a job.
func (e *Engine) Expect(ctx context.Context, job *execution.Job, last time.Time) (n int, err error) {
	if e.cfg.PoolSize == 0 || job.Thread != nil && e.host.homes == "" {
		return 0, nil
	}
	stores := len(job.Mounts) > 0
	if stores && !e.cfg.mounts() {
		return 0, nil
	}
	soon, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	if job, err = e.resolved(soon, job, false); err != nil {
		return 0, err
	}
	env, _, err := e.use(job)
	if err != nil {
		return 0, err
	}
	defer e.unuse(env)
	if stores && !e.mountsLate(env, job) {
		return 0, nil
	}
	for _, key := range env.maker.Kinds() {
		if key.Language == job.Language && key.Home == (job.Thread != nil) && key.Storage == stores {
			e.pool.Recall(key, 1, poolGrowth*e.cfg.size(key), last)
			n++
		}
	}
	return n, nil
}
