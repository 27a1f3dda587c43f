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
	// recheckEvery is how often the gateway rechecks executions without an executor, so that
	// their callers do not wait much longer than the grace.
	recheckEvery = 3 * time.Second

	lostReason    = "the executor was lost; whether the program ran to its end is not known"
	unbegunReason = "the server stopped before the program began; nothing was run. Retry in a few seconds"
)

// Reconcile ends executions that are recorded as running but that no executor has
// had for longer than grace. It runs until ctx ends.
func (g *Gateway) Reconcile(ctx context.Context, grace time.Duration) error {
	l := &lookout{grace: grace, missing: map[string]absence{}}
	tick := time.NewTicker(min(recheckEvery, max(grace/2, 100*time.Millisecond)))
	defer tick.Stop()
	for swept := (time.Time{}); ; {
		if now := time.Now(); now.Sub(swept) >= min(reconcileEvery, grace/2) {
			g.sweep(ctx, now.Add(-min(grace, young)), l)
			swept = now
		} else {
			g.recheck(ctx, l)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// recheck reconciles the executions that had no executor.
func (g *Gateway) recheck(ctx context.Context, l *lookout) {
	for _, a := range l.missing {
		if ctx.Err() != nil {
			return
		}
		if err := g.reconcile(ctx, a.execution, l); err != nil {
			g.cfg.Logger.WarnContext(ctx, "cannot reconcile an execution", "trace_id", a.execution.TraceID, "error", err)
		}
	}
}

// Sweep immediately ends the executions admitted before t that no executor has. A
// process that has the only executor calls it at its start. That executor knows every
// execution that began since complete, unless complete is zero. Sweep therefore tells the
// callers of the later ones that nothing ran and that they can retry.
func (g *Gateway) Sweep(ctx context.Context, t, complete time.Time) {
	g.sweep(ctx, t, &lookout{missing: map[string]absence{}, complete: complete})
}

// lookout tracks the executions that no executor has.
type lookout struct {
	grace   time.Duration
	missing map[string]absence // by trace id

	complete time.Time // unless zero: executions admitted since then never began
}

// absence is an execution that no executor has.
type absence struct {
	execution *execution.Execution
	since     time.Time
	begun     bool // an executor was allowed to start it
}

func (g *Gateway) sweep(ctx context.Context, before time.Time, l *lookout) {
	unfinished, err := g.cfg.Store.Unfinished(ctx, before, reconcileBatch)
	if err != nil {
		g.cfg.Logger.WarnContext(ctx, "cannot look for lost executions", "error", err)
		return
	}
	still := make(map[string]bool, len(unfinished))
	for _, e := range unfinished {
		still[e.TraceID] = true
	}
	for id := range l.missing {
		if !still[id] {
			delete(l.missing, id)
		}
	}
	for _, e := range unfinished {
		if ctx.Err() != nil {
			return
		}
		if err := g.reconcile(ctx, e, l); err != nil {
			g.cfg.Logger.WarnContext(ctx, "cannot reconcile an execution", "trace_id", e.TraceID, "error", err)
		}
	}
}

// reconcile ends an execution recorded as running if no executor has it.
func (g *Gateway) reconcile(ctx context.Context, e *execution.Execution, l *lookout) error {
	alive, err := g.cfg.Runner.Alive(ctx, e.TraceID)
	if err != nil {
		return err
	}
	if alive {
		delete(l.missing, e.TraceID)
		return nil
	}
	now := time.Now().UTC()
	a, seen := l.missing[e.TraceID]
	if !seen {
		a = absence{e, now, false}
		l.missing[e.TraceID] = a
	}
	if now.Sub(a.since) < l.grace {
		return nil
	}
	// It may have ended well, with the record of that still on its way.
	r, err := g.cfg.Log.Result(ctx, e.TraceID)
	known := err == nil
	if err != nil {
		if !errors.Is(err, execution.ErrNoLog) {
			return err
		}
		voided, err := g.void(ctx, e)
		if err != nil {
			return err
		}
		if !voided && !a.begun { // an executor has just begun it, so look again after the grace
			l.missing[e.TraceID] = absence{e, now, true}
			if l.grace > 0 {
				return nil
			}
		}
		if !l.complete.IsZero() && e.CreatedAt.After(l.complete) {
			g.cfg.Logger.InfoContext(ctx, "an execution had not begun when the server stopped", "trace_id", e.TraceID)
			r = g.finish(ctx, e, execution.Failed, unbegunReason, false)
		} else {
			g.cfg.Logger.WarnContext(ctx, "an execution was lost with its executor", "trace_id", e.TraceID)
			r = g.finish(ctx, e, execution.Failed, lostReason, true)
		}
	}
	c := g.conclude(ctx, *r, false)
	if c.err != nil {
		return c.err
	}
	delete(l.missing, e.TraceID)
	if !known && len(c.execution.Files.Files) == 0 {
		// Its files may be there, of a process that did not live to record them.
		return g.cfg.Outputs.Delete(ctx, execution.FilesName(e.Tenant, e.TraceID))
	}
	return nil
}
