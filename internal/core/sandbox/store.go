package sandbox

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/usage"
)

// Quota is what a tenant's plan allows its sandboxes; 0 is no limit.
type Quota struct {
	Sandboxes int     // at the same time, sleeping ones too
	Memory    int64   // bytes of those that are resident, together
	Credits   float64 // budget of a calendar month
}

// MaxHolders is how many keys of a sandbox are found.
const MaxHolders = 1000

// Store keeps the records of named sandboxes. What does not exist is a NotFound
// fault. Each sandbox is changed by the one Manager that has it.
type Store interface {
	// Create records a sandbox, unless there is one of its tenant, environment,
	// session and name that is not destroyed: that one is returned and nothing
	// recorded. Beyond the quota the error is an Exhausted fault. CreatedAt,
	// UsedAt and MeteredAt are set by the store's clock.
	Create(ctx context.Context, s *Sandbox, quota Quota) (there *Sandbox, err error)
	// Save records State, Sleep, Kept, Detail, Permissions, Mounts, SleepAfter, UsedAt
	// and ExpiresAt of a sandbox that is not destroyed.
	Save(ctx context.Context, s *Sandbox) error
	// SaveEndings records Endings of a sandbox that is not destroyed.
	SaveEndings(ctx context.Context, id runtime.ID, endings []Ending) error
	// Wake is Save for a sandbox that becomes resident: it must fit the quota, too.
	Wake(ctx context.Context, s *Sandbox, quota Quota) error
	// CheckBudget is an Exhausted fault if a tenant's budget of the month is used up.
	CheckBudget(ctx context.Context, tenantID tenant.ID) error
	// Delete removes the record of a sandbox that never was one.
	Delete(ctx context.Context, id runtime.ID) error

	// Get finds one of a tenant, destroyed ones too.
	Get(ctx context.Context, tenantID tenant.ID, id runtime.ID) (*Sandbox, error)
	// Find finds the sandbox of an environment, session and name that is not destroyed.
	Find(ctx context.Context, tenantID tenant.ID, environment, session, name string) (*Sandbox, error)
	// Locate says which executor has a sandbox that is not destroyed.
	Locate(ctx context.Context, id runtime.ID) (executor string, err error)
	// Holders are the ids of the keys that a sandbox which is not destroyed can be used
	// with, of its tenant and environment and not revoked, at most MaxHolders; the one that
	// made it is first.
	Holders(ctx context.Context, id runtime.ID) (tenant.ID, []string, error)
	// ListElsewhere lists the sandboxes of an environment that are not destroyed and that
	// other executors have, of a session or of all if that is "", by session and name.
	ListElsewhere(ctx context.Context, tenantID tenant.ID, environment, session, executor string) ([]*Sandbox, error)
	// ListByExecutor lists the sandboxes of an executor that are not destroyed, oldest first.
	ListByExecutor(ctx context.Context, executor string) ([]*Sandbox, error)
	// ListWithoutEnvironment lists those of them whose environment was deleted, or whose
	// session with an agent has ended.
	ListWithoutEnvironment(ctx context.Context, executor string) ([]runtime.ID, error)
	// Purge deletes records of sandboxes destroyed longer than keep ago, at most
	// most of them, and returns how many went.
	Purge(ctx context.Context, keep time.Duration, most int) (int, error)

	// Meter adds an entry to the ledger for a sandbox's time up to until, and
	// records that. An entry that comes again for the same time changes nothing.
	Meter(ctx context.Context, id runtime.ID, until time.Time, e usage.Entry) error
	// Record adds an audit row and what the call used, both or none. A row without a
	// retention keeps to its tenant's; a zero entry is none.
	Record(ctx context.Context, row audit.Row, e usage.Entry) error
}
