package control

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/remote"
	"github.com/atoll-run/atoll/internal/core/remote/control"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/node/home"
)

var none remote.None

// Snapshots implements sandbox.SnapshotRecords for the executor of the Client.
type Snapshots struct{ *Client }

var _ sandbox.SnapshotRecords = Snapshots{}

// Begin implements sandbox.SnapshotRecords.
func (r Snapshots) Begin(ctx context.Context, grant *sandbox.Grant, s *sandbox.Snapshot) error {
	in := control.NewSnapshot{Pass: r.pass(grant), Snapshot: *s}
	in.Snapshot.Env = nil // the gateway knows them
	return done(repeat(ctx, r.Client, control.BeginSnapshot, in))
}

// Finish implements sandbox.SnapshotRecords.
func (r Snapshots) Finish(ctx context.Context, _ *sandbox.Grant, s *sandbox.Snapshot, keep time.Duration) error {
	kept, err := repeat(ctx, r.Client, control.FinishSnapshot, control.Finished{
		Tenant: s.Tenant, Environment: s.Environment, ID: s.ID, Stored: s.Stored, Detail: s.Detail, Keep: keep,
	})
	if err == nil {
		s.CreatedAt, s.ExpiresAt = kept.CreatedAt, kept.ExpiresAt
	}
	return err
}

// Abandon implements sandbox.SnapshotRecords.
func (r Snapshots) Abandon(ctx context.Context, id sandbox.SnapshotID) error {
	return done(repeat(ctx, r.Client, control.AbandonSnapshot, id))
}

// AbandonAll implements sandbox.SnapshotRecords. It abandons the snapshots of this executor, whatever
// the argument, and waits for a gateway until ctx ends.
func (r Snapshots) AbandonAll(ctx context.Context, _ string) error {
	return done(await(ctx, r.Client, control.AbandonAllSnapshots, none))
}

// Find implements sandbox.SnapshotRecords.
func (r Snapshots) Find(ctx context.Context, grant *sandbox.Grant, id sandbox.SnapshotID) (*sandbox.Snapshot, error) {
	sn, err := repeat(ctx, r.Client, control.FindSnapshot, control.SnapshotRef{Pass: r.pass(grant), ID: id})
	if err == nil && sn == nil {
		err = sandbox.UnknownSnapshot(id)
	}
	return sn, err
}

// MarkGarbage implements sandbox.SnapshotRecords.
func (r Snapshots) MarkGarbage(ctx context.Context, tenantID tenant.ID) error {
	return done(repeat(ctx, r.Client, control.MarkGarbage, tenantID))
}

// SnapshotKey returns the key of a tenant's snapshots, 64 bytes, if this executor has a sandbox
// of the tenant or was recently asked for one.
func (c *Client) SnapshotKey(ctx context.Context, tenantID tenant.ID) ([]byte, error) {
	key, err := repeat(ctx, c, control.GetSnapshotKey, control.SnapshotKeyRequest{Tenant: tenantID, Pass: c.passes.findAny(tenantID)})
	if err == nil && len(key) != home.TenantKeySize {
		return nil, fault.New(fault.Internal, "the gateway returned a key of %d bytes for snapshots; run the same version on all servers", len(key))
	}
	return key, err
}
