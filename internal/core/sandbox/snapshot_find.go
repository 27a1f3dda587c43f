package sandbox

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// GetSnapshot returns p's snapshot.
func GetSnapshot(ctx context.Context, store SnapshotStore, p *tenant.Principal, id SnapshotID) (*Snapshot, error) {
	if err := CheckCaller(p); err != nil {
		return nil, err
	}
	return FindSnapshot(ctx, store, p.Tenant.ID, p.Environment.ID, id)
}

// FindSnapshot returns a snapshot of an environment.
func FindSnapshot(ctx context.Context, store SnapshotStore, tenantID tenant.ID, environment string, id SnapshotID) (*Snapshot, error) {
	if !id.Valid() {
		return nil, UnknownSnapshot(id)
	}
	sn, err := store.Get(ctx, tenantID, environment, id)
	if fault.KindOf(err) == fault.NotFound {
		return nil, UnknownSnapshot(id)
	}
	return sn, err
}

// UnknownSnapshot is returned to callers for a snapshot that does not exist or is not theirs.
func UnknownSnapshot(id SnapshotID) error {
	return fault.New(fault.NotFound, "snapshot %.80q not found", id)
}

// ListSnapshots returns p's snapshots, newest first.
func ListSnapshots(ctx context.Context, store SnapshotStore, p *tenant.Principal, cursor string, limit int) (page []*Snapshot, next string, err error) {
	if err := CheckCaller(p); err != nil {
		return nil, "", err
	}
	return store.List(ctx, SnapshotFilter{Tenant: p.Tenant.ID, Environment: p.Environment.ID, Cursor: cursor, Limit: limit})
}

// DeleteSnapshot deletes p's snapshot. Sandboxes that were made from it go on.
func DeleteSnapshot(ctx context.Context, store SnapshotStore, p *tenant.Principal, id SnapshotID) error {
	sn, err := GetSnapshot(ctx, store, p, id)
	if err != nil {
		return err
	}
	return store.Delete(ctx, sn.Tenant, sn.Environment, id)
}
