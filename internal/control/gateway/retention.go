package gateway

import (
	"context"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// purgeBatch is how many records are deleted together.
const purgeBatch = 500

// Purge deletes the executions that ended longer ago than keep and those of runs that are
// gone, outputs first, so that no output is left without a record to find it by. It returns
// how many went.
func (g *Gateway) Purge(ctx context.Context, keep time.Duration) (int, error) {
	total := 0
	for {
		old, err := g.cfg.Store.Expired(ctx, keep, purgeBatch)
		if err != nil || len(old) == 0 {
			return total, err
		}
		if err := g.remove(ctx, old); err != nil {
			return total, err
		}
		total += len(old)
	}
}

// Forget deletes the executions of a run that is gone. Purge does so later with what is
// left.
func (g *Gateway) Forget(ctx context.Context, run string) error {
	return g.forget(ctx, func() ([]*execution.Execution, error) { return g.cfg.Store.OfRun(ctx, run, purgeBatch) })
}

// ForgetTenant deletes the executions of a tenant that have ended.
func (g *Gateway) ForgetTenant(ctx context.Context, id tenant.ID) error {
	return g.forget(ctx, func() ([]*execution.Execution, error) { return g.cfg.Store.OfTenant(ctx, id, purgeBatch) })
}

// CancelTenant ends the executions of a tenant that run.
func (g *Gateway) CancelTenant(ctx context.Context, id tenant.ID) error {
	for {
		running, _, err := g.cfg.Store.List(ctx, execution.Filter{Tenant: id, Status: execution.Running, Limit: 100})
		if err != nil || len(running) == 0 {
			return err
		}
		for _, e := range running {
			_, err := g.Cancel(ctx, id, e.TraceID)
			if k := fault.KindOf(err); err != nil && k != fault.Conflict && k != fault.NotFound {
				return err
			}
		}
	}
}

// forget deletes executions that have ended, with their logs.
func (g *Gateway) forget(ctx context.Context, some func() ([]*execution.Execution, error)) error {
	for {
		all, err := some()
		if err != nil || len(all) == 0 {
			return err
		}
		for _, e := range all { // which lives for log_age otherwise
			if err := g.cfg.Log.Purge(ctx, e.TraceID); err != nil {
				return fmt.Errorf("delete the log of %s: %w", e.TraceID, err)
			}
		}
		if err := g.remove(ctx, all); err != nil {
			return err
		}
	}
}

// remove deletes executions that have ended.
func (g *Gateway) remove(ctx context.Context, all []*execution.Execution) error {
	ids := make([]string, len(all))
	for i, e := range all {
		ids[i] = e.TraceID
		if len(e.Files.Files) > 0 {
			if err := g.cfg.Outputs.Delete(ctx, execution.FilesName(e.Tenant, e.TraceID)); err != nil {
				return fmt.Errorf("delete the files of %s: %w", e.TraceID, err)
			}
		}
		if !e.Stored {
			continue
		}
		for _, s := range []execution.Stream{execution.Stdout, execution.Stderr} {
			if err := g.cfg.Outputs.Delete(ctx, execution.OutputName(e.Tenant, e.TraceID, s)); err != nil {
				return fmt.Errorf("delete the output of %s: %w", e.TraceID, err)
			}
		}
	}
	return g.cfg.Store.Delete(ctx, ids)
}

// deleteTimeout bounds the deletion of one execution.
const deleteTimeout = 30 * time.Second

// Delete deletes a tenant's execution as Purge would, before its time: a Conflict fault
// while it is running. Its audit row and what it used stay.
func (g *Gateway) Delete(ctx context.Context, tenantID tenant.ID, traceID string) error {
	e, err := g.cfg.Store.Get(ctx, tenantID, traceID)
	if err != nil {
		return err
	}
	if e.Status == execution.Running {
		return fault.New(fault.Conflict, "the execution is still running: cancel it, or wait until it ends")
	}
	// A caller that leaves does not leave half of it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteTimeout)
	defer cancel()
	if err := g.cfg.Log.Purge(ctx, traceID); err != nil {
		return fmt.Errorf("delete the log of %s: %w", traceID, err)
	}
	return g.remove(ctx, []*execution.Execution{e})
}
