package gateway

import (
	"context"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
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
	for {
		all, err := g.cfg.Store.OfRun(ctx, run, purgeBatch)
		if err != nil || len(all) == 0 {
			return err
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
