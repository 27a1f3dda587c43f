package sandbox

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Records are the records of one machine's sandboxes, for the Manager that owns them. Methods return a
// NotFound fault for an unknown sandbox.
type Records interface {
	// Create records a sandbox for the holder of a grant, within the quota of the grant's plan. See
	// Store.Create.
	Create(ctx context.Context, grant *Grant, s *Sandbox) (there *Sandbox, err error)
	// Wake records a sandbox that becomes resident, within the same quota. See Store.Wake.
	Wake(ctx context.Context, grant *Grant, s *Sandbox) error
	Save(ctx context.Context, s *Sandbox) error
	SaveEndings(ctx context.Context, id runtime.ID, endings []Ending) error
	// Delete deletes the record of a sandbox whose creation failed.
	Delete(ctx context.Context, id runtime.ID) error
	CheckBudget(ctx context.Context, tenantID tenant.ID) error
	// Get returns a tenant's sandbox, including a destroyed one.
	Get(ctx context.Context, tenantID tenant.ID, id runtime.ID) (*Sandbox, error)
	ListByExecutor(ctx context.Context, executor string) ([]*Sandbox, error)
	ListWithoutEnvironment(ctx context.Context, executor string) ([]runtime.ID, error)
}

// SnapshotRecords are the records of snapshots, for the Manager of a machine.
type SnapshotRecords interface {
	// Begin records a snapshot in progress, within the quota of the grant's plan. See
	// SnapshotStore.Begin.
	Begin(ctx context.Context, grant *Grant, s *Snapshot) error
	// Finish makes the snapshot visible, within the same quota. See SnapshotStore.Finish.
	Finish(ctx context.Context, grant *Grant, s *Snapshot, keep time.Duration) error
	Abandon(ctx context.Context, id SnapshotID) error
	AbandonAll(ctx context.Context, executor string) error
	// Find returns a snapshot of the grant's environment.
	Find(ctx context.Context, grant *Grant, id SnapshotID) (*Snapshot, error)
	MarkGarbage(ctx context.Context, tenantID tenant.ID) error
}
