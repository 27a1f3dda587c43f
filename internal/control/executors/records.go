// Package executors answers executors: it keeps the records of their sandboxes.
package executors

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// Records implements sandbox.Records for a machine in the same process.
type Records struct{ sandbox.Store }

var _ sandbox.Records = Records{}

// Create implements sandbox.Records.
func (r Records) Create(ctx context.Context, grant *sandbox.Grant, s *sandbox.Sandbox) (*sandbox.Sandbox, error) {
	return r.Store.Create(ctx, s, grant.Quota())
}

// Wake implements sandbox.Records.
func (r Records) Wake(ctx context.Context, grant *sandbox.Grant, s *sandbox.Sandbox) error {
	return r.Store.Wake(ctx, s, grant.Quota())
}

// SnapshotRecords implements sandbox.SnapshotRecords for a machine in the same process.
type SnapshotRecords struct{ sandbox.SnapshotStore }

var _ sandbox.SnapshotRecords = SnapshotRecords{}

// Begin implements sandbox.SnapshotRecords.
func (r SnapshotRecords) Begin(ctx context.Context, grant *sandbox.Grant, s *sandbox.Snapshot) error {
	return r.SnapshotStore.Begin(ctx, s, grant.SnapshotQuota())
}

// Finish implements sandbox.SnapshotRecords.
func (r SnapshotRecords) Finish(ctx context.Context, grant *sandbox.Grant, s *sandbox.Snapshot, keep time.Duration) error {
	return r.SnapshotStore.Finish(ctx, s, keep, grant.SnapshotQuota())
}

// Find implements sandbox.SnapshotRecords.
func (r SnapshotRecords) Find(ctx context.Context, grant *sandbox.Grant, id sandbox.SnapshotID) (*sandbox.Snapshot, error) {
	return sandbox.FindSnapshot(ctx, r.SnapshotStore, grant.Tenant, grant.Environment, id)
}
