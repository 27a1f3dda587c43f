package sandbox

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// SnapshotID names a snapshot: "snap-" and 16 hexadecimal digits.
type SnapshotID string

var snapshotPattern = regexp.MustCompile(`^snap-[0-9a-f]{16}$`)

// Valid reports whether id is well-formed.
func (id SnapshotID) Valid() bool { return snapshotPattern.MatchString(string(id)) }

// NewSnapshotID returns a unique ID.
func NewSnapshotID() SnapshotID {
	var b [8]byte
	rand.Read(b[:])
	return SnapshotID("snap-" + hex.EncodeToString(b[:]))
}

// Snapshot is the state of a sandbox at one moment, in the blob store. It outlives the sandbox and
// its machine.
type Snapshot struct {
	ID          SnapshotID
	Tenant      tenant.ID
	Environment string
	Key         string // id of the key that created it
	Executor    string // the installation that created it

	// The sandbox that it is of.
	Sandbox           runtime.ID
	Session, Name     string
	Image, ImageAlias string
	Limits            runtime.Limits
	Own               Size  // the size that the sandbox's caller requested
	DiskLimit         int64 // its Disk; 0 for unlimited
	Permissions       runtime.Permissions
	Connected         bool
	Mounts            []storage.Mount // referenced by its memory
	Env               map[string]string
	SleepAfter        time.Duration

	Stored    StoredCopy
	Detail    string // why the snapshot has no memory
	CreatedAt time.Time
	ExpiresAt *time.Time // when Atoll deletes it; nil for never
}

// SnapshotOf returns the record of a new snapshot of a sandbox.
func SnapshotOf(sb *Sandbox) *Snapshot {
	return &Snapshot{
		ID: NewSnapshotID(), Tenant: sb.Tenant, Environment: sb.Environment,
		Sandbox: sb.ID, Session: sb.Session, Name: sb.Name, Image: sb.Image, ImageAlias: sb.ImageAlias, Limits: sb.Limits, Own: sb.Own, DiskLimit: sb.Disk,
		Permissions: sb.Permissions, Connected: sb.Connected, Mounts: slices.Clone(sb.Mounts), Env: maps.Clone(sb.Env), SleepAfter: sb.SleepAfter,
	}
}

// SnapshotQuota is the plan's limit on a tenant's snapshots; 0 means unlimited.
type SnapshotQuota struct {
	Snapshots int
	Bytes     int64 // of all snapshots together
}

// SnapshotFilter selects snapshots, newest first.
type SnapshotFilter struct {
	Tenant      tenant.ID
	Environment string
	Cursor      string // from an earlier page
	Limit       int    // 1 to 100
}

// SnapshotStore keeps the records of snapshots. It returns a NotFound fault for snapshots of
// another tenant or environment.
type SnapshotStore interface {
	// Begin records a snapshot in progress. It cannot be found yet but reserves its size. Begin
	// returns an Exhausted fault if the snapshot exceeds room.
	Begin(ctx context.Context, s *Snapshot, room SnapshotQuota) error
	// Finish records the final size, if it fits into room, and makes the snapshot visible. The
	// store sets CreatedAt, and ExpiresAt to keep after it.
	Finish(ctx context.Context, s *Snapshot, keep time.Duration, room SnapshotQuota) error
	// Begun returns a snapshot in progress of any tenant, without its variables.
	Begun(ctx context.Context, id SnapshotID) (*Snapshot, error)
	// Abandon deletes a snapshot in progress; AbandonAll deletes those of an executor.
	Abandon(ctx context.Context, id SnapshotID) error
	AbandonAll(ctx context.Context, executor string) error

	Get(ctx context.Context, tenantID tenant.ID, environment string, id SnapshotID) (*Snapshot, error)
	List(ctx context.Context, f SnapshotFilter) (page []*Snapshot, next string, err error)
	Delete(ctx context.Context, tenantID tenant.ID, environment string, id SnapshotID) error
	// Expire deletes up to most expired snapshots and returns how many.
	Expire(ctx context.Context, most int) (int, error)

	// MarkGarbage records that a tenant has, or may soon have, unreferenced data in the blob store.
	// Every operation that may leave some calls it. TenantsWithGarbage lists those tenants.
	// ClearGarbage removes a tenant from the list unless it was marked within the last age.
	// ReferencedStates lists the states that a tenant's snapshots and sandboxes reference.
	MarkGarbage(ctx context.Context, tenantID tenant.ID) error
	TenantsWithGarbage(ctx context.Context) ([]tenant.ID, error)
	ReferencedStates(ctx context.Context, tenantID tenant.ID) ([]string, error)
	ClearGarbage(ctx context.Context, tenantID tenant.ID, age time.Duration) error
}
