package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
)

const (
	reconcileEvery = 15 * time.Second
	reconcileBatch = 10_000

	lostReason = "the executor was lost; whether the program ran to its end is not known"
)

// Reconcile ends, until ctx does, executions that are recorded as running but
// that no executor has had for longer than grace.
func (g *Gateway) Reconcile(ctx context.Context, grace time.Duration) error {
	missing := map[string]time.Time{} // by trace id: since when no executor has it
	tick := time.NewTicker(min(reconcileEvery, max(grace/2, 100*time.Millisecond)))
	defer tick.Stop()
	for {
		g.sweep(ctx, time.Now().Add(-grace), grace, missing)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// Sweep ends at once the executions admitted before t that no executor has. It
// is for the start of a process that has the only executor.
func (g *Gateway) Sweep(ctx context.Context, t time.Time) { g.sweep(ctx, t, 0, map[string]time.Time{}) }

func (g *Gateway) sweep(ctx context.Context, before time.Time, grace time.Duration, missing map[string]time.Time) {
	unfinished, err := g.cfg.Store.Unfinished(ctx, before, reconcileBatch)
	if err != nil {
		g.cfg.Logger.WarnContext(ctx, "cannot look for lost executions", "error", err)
		return
	}
	still := make(map[string]bool, len(unfinished))
	for _, e := range unfinished {
		still[e.TraceID] = true
	}
	for id := range missing {
		if !still[id] {
			delete(missing, id)
		}
	}
	for _, e := range unfinished {
		if ctx.Err() != nil {
			return
		}
		if err := g.reconcile(ctx, e, grace, missing); err != nil {
			g.cfg.Logger.WarnContext(ctx, "cannot reconcile an execution", "trace_id", e.TraceID, "error", err)
		}
	}
}

// reconcile looks at one execution that is recorded as running.
func (g *Gateway) reconcile(ctx context.Context, e *execution.Execution, grace time.Duration, missing map[string]time.Time) error {
	alive, err := g.cfg.Runner.Alive(ctx, e.TraceID)
	if err != nil {
		return err
	}
	if alive {
		delete(missing, e.TraceID)
		return nil
	}
	now := time.Now().UTC()
	since, seen := missing[e.TraceID]
	if !seen {
		since = now
		missing[e.TraceID] = now
	}
	if now.Sub(since) < grace {
		return nil
	}
	// It may have ended well, with the record of that still on its way.
	r, err := g.cfg.Log.Result(ctx, e.TraceID)
	if err != nil {
		if !errors.Is(err, execution.ErrNoLog) {
			return err
		}
		g.cfg.Logger.WarnContext(ctx, "an execution was lost with its executor", "trace_id", e.TraceID)
		r = g.finish(ctx, e, execution.Failed, lostReason)
	}
	if c := g.conclude(ctx, *r, false); c.err != nil {
		return c.err
	}
	delete(missing, e.TraceID)
	return nil
}
