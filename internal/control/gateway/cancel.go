package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/infra/trace"
)

const (
	// cancelTimeout limits ending a run and recording its end.
	cancelTimeout = 30 * time.Second

	// young is the age by which an executor has an execution, unless its request is
	// still looking for one.
	young = 5 * time.Second

	cancelledByUser = "Cancelled by user"
)

// Cancel ends a tenant's execution immediately and returns its record, which says
// cancelled. It returns a Conflict fault if the execution ended otherwise.
func (g *Gateway) Cancel(ctx context.Context, tenantID, traceID string) (*execution.Execution, error) {
	ctx, span := trace.Start(ctx, "execution.cancel", trace.String(trace.TraceID, traceID))
	defer span.End()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
	defer cancel()
	e, err := g.cfg.Store.Get(ctx, tenantID, traceID)
	if err != nil {
		return nil, err
	}
	if e.Status != execution.Running {
		return nil, finished(e)
	}
	r, err := g.end(ctx, e)
	if err != nil {
		return nil, err
	}
	e, err = g.record(ctx, e.Tenant, *r)
	switch {
	case e == nil:
		return nil, err
	case e.Status != execution.Cancelled:
		return nil, finished(e)
	}
	return e, nil
}

// EndKeyed ends the execution of a tenant's idempotency key and returns its record, even if
// the execution had already ended. It returns nil if the key has no execution.
func (g *Gateway) EndKeyed(ctx context.Context, tenantID, key string) (*execution.Execution, error) {
	e, err := g.cfg.Store.Keyed(ctx, tenantID, key)
	if isNotFound(err) {
		return nil, nil
	}
	if err != nil || e.Status != execution.Running {
		return e, err
	}
	ended, err := g.Cancel(ctx, tenantID, e.TraceID)
	if fault.KindOf(err) == fault.Conflict { // it has ended meanwhile
		return g.cfg.Store.Get(ctx, tenantID, e.TraceID)
	}
	return ended, err
}

func finished(e *execution.Execution) error {
	return fault.New(fault.Conflict, "the execution has already ended (%s)", e.Status)
}

// end ends a running execution and returns its Result.
func (g *Gateway) end(ctx context.Context, e *execution.Execution) (*execution.Result, error) {
	for asked := false; ; {
		err := g.cfg.Runner.Cancel(ctx, e.TraceID)
		if err != nil && !isNotFound(err) {
			return nil, fmt.Errorf("cancel %s: %w", e.TraceID, err)
		}
		unheard := err != nil
		r, err := g.cfg.Log.Result(ctx, e.TraceID)
		switch {
		case err == nil:
			return r, nil
		case !errors.Is(err, execution.ErrNoLog) || !unheard:
			return nil, fmt.Errorf("cancel %s: %w", e.TraceID, err)
		case time.Since(e.CreatedAt) > young:
			voided, err := g.void(ctx, e)
			if err != nil {
				return nil, fmt.Errorf("cancel %s: %w", e.TraceID, err)
			}
			if !voided && !asked { // an executor has just begun it
				asked = true
				continue
			}
			return g.finish(ctx, e, execution.Cancelled, cancelledByUser, true), nil
		}
		select { // it may be on its way to an executor
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// void prevents every executor from starting e later. It returns false if one already has
// permission to start it.
func (g *Gateway) void(ctx context.Context, e *execution.Execution) (bool, error) {
	if g.cfg.Starts == nil {
		return true, nil
	}
	return g.cfg.Starts.Void(ctx, e.TraceID)
}

// finish ends the log of an execution that no executor has, so that its followers
// see the end, and returns the Result to record.
func (g *Gateway) finish(ctx context.Context, e *execution.Execution, s execution.Status, reason string, begun bool) *execution.Result {
	r := &execution.Result{TraceID: e.TraceID, Status: s, ExitCode: -1, Error: reason, LastSeq: 1, CompletedAt: time.Now().UTC()}
	if !begun {
		r.NotStarted, r.Kind = true, fault.Unavailable
	}
	last, err := g.cfg.Log.Last(ctx, e.TraceID)
	if err == nil {
		r.LastSeq = max(last, 1)
		err = g.cfg.Log.Finish(ctx, *r)
	}
	if err != nil { // the record counts, and is what they find in the end
		g.cfg.Logger.WarnContext(ctx, "cannot end the log of an execution", "trace_id", e.TraceID, "error", err)
	}
	return r
}
