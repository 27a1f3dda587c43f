package sandboxes

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/thread"
)

const (
	keepDestroyed = 24 * time.Hour // the record of a destroyed sandbox
	// keepGarbage is how long Sweep still looks at a tenant that left data in the blob store,
	// because a collection spares recent data.
	keepGarbage = 7 * 24 * time.Hour
)

// Retention deletes expired records and snapshots, and data in the blob store that nothing references.
type Retention struct {
	Sandboxes sandbox.Store
	Snapshots sandbox.SnapshotStore
	// Collect deletes a tenant's data in the blob store that no state in live references. live
	// lists the states that snapshots and sandboxes reference.
	Collect func(ctx context.Context, tenantID tenant.ID, live func(context.Context) ([]string, error)) (thread.Collected, error)
	Log     *slog.Logger
}

// Purge deletes up to most records of sandboxes destroyed more than 24 hours ago, and returns how many.
func (r Retention) Purge(ctx context.Context, most int) (int, error) {
	return r.Sandboxes.Purge(ctx, keepDestroyed, most)
}

// Expire deletes up to most expired snapshots and returns how many.
func (r Retention) Expire(ctx context.Context, most int) (int, error) {
	return r.Snapshots.Expire(ctx, most)
}

// Sweep deletes data in the blob store that no snapshot and no sandbox references.
func (r Retention) Sweep(ctx context.Context) error {
	tenants, err := r.Snapshots.TenantsWithGarbage(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range tenants {
		errs = append(errs, r.sweep(ctx, id))
	}
	return errors.Join(errs...)
}

func (r Retention) sweep(ctx context.Context, id tenant.ID) error {
	done, err := r.Collect(ctx, id, func(ctx context.Context) ([]string, error) { return r.Snapshots.ReferencedStates(ctx, id) })
	if err != nil {
		return err
	}
	if done.Packs > 0 || done.States > 0 {
		r.Log.InfoContext(ctx, "deleted unreferenced snapshot data", "tenant", id, "states", done.States, "packs", done.Packs, "bytes", done.Bytes)
	}
	return r.Snapshots.ClearGarbage(ctx, id, keepGarbage)
}
