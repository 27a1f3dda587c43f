package executors

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/remote/control"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// BeginSnapshot records a snapshot in progress of a sandbox of the executor, within the quota of the
// tenant. The sandbox's record decides about the snapshot's identity and variables. Repeating the
// call for the same snapshot has no effect.
func (s *Service) BeginSnapshot(ctx context.Context, from string, in control.NewSnapshot) error {
	record, err := s.own(ctx, from, in.Snapshot.Tenant, in.Snapshot.Sandbox)
	switch {
	case err != nil:
		return err
	case record.State == sandbox.Destroyed:
		return sandbox.ErrNotFound
	case in.Pass.Tenant != record.Tenant || in.Pass.Environment != record.Environment:
		return sandbox.ErrNoValidKey
	}
	grant, err := s.Grant(ctx, from, in.Pass)
	if err != nil {
		return err
	}
	sn, made := &in.Snapshot, sandbox.SnapshotOf(record)
	if !sn.ID.Valid() || sn.Stored.Bytes < 0 || sn.Stored.Bytes > sandbox.MaxBytes {
		return fault.New(fault.Invalid, "the executor reported a snapshot without an id, or of %d bytes; run the same version on all servers", sn.Stored.Bytes)
	}
	if err := sandbox.CheckLimits(sn.Limits, sn.DiskLimit); err != nil {
		return err
	}
	made.ID, made.Key, made.Executor = sn.ID, grant.Key, from
	// The executor knows these better: its last report about the sandbox may be on its way.
	made.Image, made.Limits, made.DiskLimit, made.Permissions, made.Connected = sn.Image, sn.Limits, sn.DiskLimit, sn.Permissions, sn.Connected
	made.Mounts, made.SleepAfter, made.Stored.Bytes = sn.Mounts, sn.SleepAfter, sn.Stored.Bytes
	if begun, err := s.cfg.Snapshots.Begun(ctx, sn.ID); err == nil && begun.Executor == from && begun.Sandbox == made.Sandbox {
		return nil
	}
	return s.cfg.Snapshots.Begin(ctx, made, grant.SnapshotQuota())
}

// FinishSnapshot makes a snapshot of the executor visible, within the quota of the tenant. The
// snapshot in progress shows that the executor may, also if its sandbox is destroyed. Repeating the
// call has no effect.
func (s *Service) FinishSnapshot(ctx context.Context, from string, in control.Finished) (control.Kept, error) {
	if err := in.Stored.Check(); err != nil {
		return control.Kept{}, err
	}
	sn, err := s.cfg.Snapshots.Begun(ctx, in.ID)
	if fault.KindOf(err) == fault.NotFound {
		return s.finished(ctx, from, &in)
	}
	if err != nil {
		return control.Kept{}, err
	}
	if sn.Executor != from {
		return control.Kept{}, sandbox.ErrSnapshotGivenUp
	}
	grant, err := s.cfg.Grants.Grant(ctx, sn.Tenant, sn.Key, sn.Environment)
	if err != nil {
		return control.Kept{}, err
	}
	sn.Stored, sn.Detail = in.Stored, short(in.Detail)
	if err := s.cfg.Snapshots.Finish(ctx, sn, max(in.Keep, 0), grant.SnapshotQuota()); err != nil {
		return control.Kept{}, err
	}
	return control.Kept{CreatedAt: sn.CreatedAt, ExpiresAt: sn.ExpiresAt}, nil
}

// finished answers a repeated FinishSnapshot.
func (s *Service) finished(ctx context.Context, from string, in *control.Finished) (control.Kept, error) {
	sn, err := s.cfg.Snapshots.Get(ctx, in.Tenant, in.Environment, in.ID)
	switch {
	case fault.KindOf(err) == fault.NotFound, err == nil && (sn.Executor != from || sn.Stored != in.Stored):
		return control.Kept{}, sandbox.ErrSnapshotGivenUp
	case err != nil:
		return control.Kept{}, err
	}
	return control.Kept{CreatedAt: sn.CreatedAt, ExpiresAt: sn.ExpiresAt}, nil
}

// AbandonSnapshot deletes a snapshot in progress of the executor.
func (s *Service) AbandonSnapshot(ctx context.Context, from string, id sandbox.SnapshotID) error {
	sn, err := s.cfg.Snapshots.Begun(ctx, id)
	if fault.KindOf(err) == fault.NotFound || err == nil && sn.Executor != from {
		return nil
	}
	if err != nil {
		return err
	}
	return s.cfg.Snapshots.Abandon(ctx, id)
}

// FindSnapshot returns a snapshot of an environment in which the executor has a sandbox, or for which
// it has a valid proof.
func (s *Service) FindSnapshot(ctx context.Context, from string, in control.SnapshotRef) (*sandbox.Snapshot, error) {
	if in.Pass.Environment == "" {
		return nil, sandbox.UnknownSnapshot(in.ID)
	}
	enters, err := s.enters(ctx, from, &in.Pass, in.Pass.Environment)
	if err != nil {
		return nil, err
	}
	if !enters {
		return nil, sandbox.UnknownSnapshot(in.ID)
	}
	return sandbox.FindSnapshot(ctx, s.cfg.Snapshots, in.Pass.Tenant, in.Pass.Environment, in.ID)
}

// MarkGarbage records that a tenant with a sandbox of the executor may soon have unreferenced data in
// the blob store.
func (s *Service) MarkGarbage(ctx context.Context, from string, tenantID tenant.ID) error {
	holds, err := s.holds(ctx, from, tenantID, "")
	if err != nil || !holds {
		return err
	}
	return s.cfg.Snapshots.MarkGarbage(ctx, tenantID)
}

// SnapshotKey returns the key of a tenant's snapshots to an executor that has a sandbox of the tenant,
// or a valid proof of one of its grants. The key reads all snapshots of the tenant.
func (s *Service) SnapshotKey(ctx context.Context, from string, in control.SnapshotKeyRequest) ([]byte, error) {
	if in.Pass.Tenant != in.Tenant {
		in.Pass = sandbox.Pass{Tenant: in.Tenant}
	}
	enters, err := s.enters(ctx, from, &in.Pass, "")
	if err != nil {
		return nil, err
	}
	if !enters {
		return nil, sandbox.ErrNotFound
	}
	return s.cfg.SnapshotKey(in.Tenant), nil
}
