package sandbox

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/usage"
)

// Quota is the plan's limit on a tenant's sandboxes; 0 means unlimited.
type Quota struct {
	Sandboxes int     // concurrent, including sleeping ones
	Memory    int64   // total bytes of resident sandboxes
	Credits   float64 // budget per calendar month
}

// MaxHolders limits how many keys Holders returns.
const MaxHolders = 1000

// Store keeps the records of named sandboxes. It returns a NotFound fault for an unknown sandbox.
// Only the Manager that owns a sandbox changes its record.
type Store interface {
	// Create records a sandbox. If one with the same tenant, environment, session and name exists
	// and is not destroyed, Create returns that one and records nothing. It returns an Exhausted
	// fault beyond the quota. The store sets CreatedAt, UsedAt and MeteredAt.
	Create(ctx context.Context, s *Sandbox, quota Quota) (there *Sandbox, err error)
	// Save records State, Sleep, Stored, Detail, Permissions, Mounts, SleepAfter, UsedAt and
	// ExpiresAt of a sandbox that is not destroyed.
	Save(ctx context.Context, s *Sandbox) error
	// SaveEndings records Endings of a sandbox that is not destroyed.
	SaveEndings(ctx context.Context, id runtime.ID, endings []Ending) error
	// Wake is Save for a sandbox that becomes resident. It also checks the quota.
	Wake(ctx context.Context, s *Sandbox, quota Quota) error
	// CheckBudget returns an Exhausted fault if the tenant has used up its budget for the month.
	CheckBudget(ctx context.Context, tenantID tenant.ID) error
	// Delete deletes the record of a sandbox whose creation failed.
	Delete(ctx context.Context, id runtime.ID) error

	// Get returns a tenant's sandbox, including a destroyed one.
	Get(ctx context.Context, tenantID tenant.ID, id runtime.ID) (*Sandbox, error)
	// Find returns the sandbox of an environment, session and name that is not destroyed.
	Find(ctx context.Context, tenantID tenant.ID, environment, session, name string) (*Sandbox, error)
	// Locate returns the executor of a sandbox that is not destroyed.
	Locate(ctx context.Context, id runtime.ID) (executor string, err error)
	// Holders returns up to MaxHolders ids of valid keys of the sandbox's tenant and environment
	// that may use it, the creating key first.
	Holders(ctx context.Context, id runtime.ID) (tenant.ID, []string, error)
	// Holds reports whether an executor has a sandbox of a tenant that is not destroyed. A non-empty
	// environment or key must match the sandbox, too; key is the creating key.
	Holds(ctx context.Context, executor string, tenantID tenant.ID, environment, key string) (bool, error)
	// ListElsewhere lists the sandboxes of an environment on other executors that are not
	// destroyed, of one session or all if session is "", ordered by session and name.
	ListElsewhere(ctx context.Context, tenantID tenant.ID, environment, session, executor string) ([]*Sandbox, error)
	// ListByExecutor lists an executor's sandboxes that are not destroyed, oldest first.
	ListByExecutor(ctx context.Context, executor string) ([]*Sandbox, error)
	// ListWithoutEnvironment lists those of an executor's sandboxes whose environment was deleted
	// or whose agent session has ended.
	ListWithoutEnvironment(ctx context.Context, executor string) ([]runtime.ID, error)
	// Purge deletes up to most records of sandboxes destroyed longer than keep ago, and returns how
	// many.
	Purge(ctx context.Context, keep time.Duration, most int) (int, error)

	// Meter adds a ledger entry for a sandbox's time up to until and records until. Repeating the
	// entry for the same time has no effect.
	Meter(ctx context.Context, id runtime.ID, until time.Time, e usage.Entry) error
	// Record adds an audit row and the usage of the call in one transaction. A row without a
	// retention gets its tenant's; a zero entry is skipped.
	Record(ctx context.Context, row audit.Row, e usage.Entry) error
}
