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

// Valid reports whether id is one that a snapshot can have.
func (id SnapshotID) Valid() bool { return snapshotPattern.MatchString(string(id)) }

// NewSnapshotID returns an ID that no snapshot has.
func NewSnapshotID() SnapshotID {
	var b [8]byte
	rand.Read(b[:])
	return SnapshotID("snap-" + hex.EncodeToString(b[:]))
}

// Snapshot is a sandbox as it was at one moment, kept in the blob store. It
// outlives the sandbox and its machine.
type Snapshot struct {
	ID          SnapshotID
	Tenant      tenant.ID
	Environment string
	Key         string // id of the key that made it
	Executor    string // the installation that made it

	// The sandbox that it is of.
	Sandbox           runtime.ID
	Session, Name     string
	Image, ImageAlias string
	Limits            runtime.Limits
	Own               Size  // the size that the sandbox's caller requested
	DiskLimit         int64 // its Disk; 0 for no bound
	Permissions       runtime.Permissions
	Connected         bool
	Mounts            []storage.Mount // that its memory knows of
	Env               map[string]string
	SleepAfter        time.Duration

	Stored    StoredCopy
	Detail    string // why it has no memory
	CreatedAt time.Time
	ExpiresAt *time.Time // when it is deleted; nil for never
}

// snapshotOf is a snapshot that is to be made of a sandbox.
func SnapshotOf(sb *Sandbox) *Snapshot {
	return &Snapshot{
		ID: NewSnapshotID(), Tenant: sb.Tenant, Environment: sb.Environment,
		Sandbox: sb.ID, Session: sb.Session, Name: sb.Name, Image: sb.Image, ImageAlias: sb.ImageAlias, Limits: sb.Limits, Own: sb.Own, DiskLimit: sb.Disk,
		Permissions: sb.Permissions, Connected: sb.Connected, Mounts: slices.Clone(sb.Mounts), Env: maps.Clone(sb.Env), SleepAfter: sb.SleepAfter,
	}
}

// SnapshotRoom is what of a tenant's plan its snapshots must fit in; 0 is no bound.
type SnapshotQuota struct {
	Snapshots int
	Bytes     int64 // of all of them, together
}

// SnapshotFilter selects snapshots, newest first.
type SnapshotFilter struct {
	Tenant      tenant.ID
	Environment string
	Cursor      string // from an earlier page
	Limit       int    // 1 to 100
}

// SnapshotStore keeps the records of snapshots. One of another tenant or
// environment is as unknown as one that never was (NotFound).
type SnapshotStore interface {
	// Begin records a snapshot that is being made: it cannot be found yet, but it takes
	// room, Kept.Bytes of it. Without room for it the error is an Exhausted fault.
	Begin(ctx context.Context, s *Snapshot, room SnapshotQuota) error
	// Finish records what was kept of it, if that fits in room, and from then on it
	// is found. CreatedAt is set by the store's clock, ExpiresAt so long after it.
	Finish(ctx context.Context, s *Snapshot, keep time.Duration, room SnapshotQuota) error
	// Abandon forgets one that is being made, AbandonAll those of an executor.
	Abandon(ctx context.Context, id SnapshotID) error
	AbandonAll(ctx context.Context, executor string) error

	Get(ctx context.Context, tenantID tenant.ID, environment string, id SnapshotID) (*Snapshot, error)
	List(ctx context.Context, f SnapshotFilter) (page []*Snapshot, next string, err error)
	Delete(ctx context.Context, tenantID tenant.ID, environment string, id SnapshotID) error
	// Expire deletes snapshots whose time is over, at most most of them, and returns
	// how many went.
	Expire(ctx context.Context, most int) (int, error)

	// Litter notes that a tenant has, or may soon have, something in the blob store
	// that nothing refers to; so does everything that may leave it. Littered lists
	// such tenants, and Swept forgets one, unless there was something new within
	// the last age. States lists what snapshots and sandboxes of a tenant refer to.
	MarkGarbage(ctx context.Context, tenantID tenant.ID) error
	TenantsWithGarbage(ctx context.Context) ([]tenant.ID, error)
	ReferencedStates(ctx context.Context, tenantID tenant.ID) ([]string, error)
	ClearGarbage(ctx context.Context, tenantID tenant.ID, age time.Duration) error
}
