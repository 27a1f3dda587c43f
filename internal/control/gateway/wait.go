package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
)

const (
	// pollEvery is how often a waiting request looks at the record itself: news of
	// an end is not stored for it.
	pollEvery = 10 * time.Second

	// recordPatience is how long an end is tried to be recorded for a waiting
	// caller; the bus goes on trying.
	recordPatience = 30 * time.Second
	recordAgain    = 250 * time.Millisecond
)

// ErrUnrecorded says that a run has ended but its end could not be recorded in
// time. It is on the bus and will be; to run the program again would be a
// second time.
var ErrUnrecorded = errors.New("the execution has ended, but its end cannot be recorded yet")

// watch waits for an execution's end.
type watch struct {
	Waiter
	recorded bool
}

func (g *Gateway) watch(traceID string) *watch { return &watch{Waiter: g.cfg.Await(traceID)} }

func (w *watch) close() { w.Close(w.recorded) }

// wait returns e's record, with its output, once it has ended.
func (g *Gateway) wait(ctx context.Context, e *execution.Execution, w *watch) (*execution.Execution, error) {
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		select {
		case r := <-w.Result():
			e, err := g.record(ctx, e.Tenant, r)
			w.recorded = e != nil
			return e, err
		case <-poll.C:
			now, err := g.cfg.Store.Output(ctx, e.Tenant, e.TraceID)
			if err == nil && now.Status != execution.Running {
				return g.recorded(now)
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// again answers a repeated request with the execution that there is. The first
// request waits for its Result; this one reads the end of its log.
func (g *Gateway) again(ctx context.Context, e *execution.Execution, d execution.Delivery) (*execution.Execution, error) {
	if d != execution.Inline {
		return e, nil
	}
	after, err := g.cfg.Log.Last(ctx, e.TraceID)
	if err != nil {
		after = 1
	}
	return g.Follow(ctx, e, after, func([]execution.Event) error { return nil })
}

// record records r for a caller that waits for it, patiently: a database that
// is away for a moment must not cost the caller a finished run. It returns the
// record, with its output, and in place of a run that never began why.
func (g *Gateway) record(ctx context.Context, tenantID string, r execution.Result) (*execution.Execution, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordPatience)
	defer cancel()
	for {
		c := g.conclude(ctx, r, false)
		switch {
		case c.err == nil && c.execution == nil:
			return nil, execution.ErrNotFound
		case c.err == nil && !c.first:
			return g.output(ctx, tenantID, r.TraceID)
		case c.err == nil && c.execution.NotStarted:
			return c.execution, refusal(c.kind, c.execution.Error)
		case c.err == nil:
			return c.execution, nil
		}
		g.cfg.Logger.WarnContext(ctx, "cannot record an end yet", "trace_id", r.TraceID, "error", c.err)
		select {
		case <-time.After(recordAgain):
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", ErrUnrecorded, c.err)
		}
	}
}

// output returns the record of an execution that has ended, with its output.
func (g *Gateway) output(ctx context.Context, tenantID, traceID string) (*execution.Execution, error) {
	e, err := g.cfg.Store.Output(ctx, tenantID, traceID)
	if err != nil {
		return nil, err
	}
	return g.recorded(e)
}

// recorded answers with the record of an execution that has ended.
func (g *Gateway) recorded(e *execution.Execution) (*execution.Execution, error) {
	if e.NotStarted {
		return e, refusal(fault.Unavailable, e.Error)
	}
	return e, nil
}

func isNotFound(err error) bool {
	return errors.As(err, new(*fault.Error)) && fault.KindOf(err) == fault.NotFound
}
