package execution

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/usage"
)

// Store keeps the records of executions. Methods that take a tenant treat another tenant's record
// as not found.
type Store interface {
	// Admit records e as running. It fails with an Exhausted fault, and records nothing, if the
	// tenant already runs a.Concurrency executions, has used up its budget, or keeps a.Outputs.Max
	// bytes.
	//
	// If the tenant has used the idempotency key in the last day, Admit records nothing and returns
	// the earlier execution, or a Conflict fault if the body differs. An execution that ended as
	// NotStarted releases its key, because a retry is safe.
	//
	// A thread in use by another running execution or an edit is a Conflict fault; a new thread
	// beyond a.Threads is an Exhausted fault.
	Admit(ctx context.Context, e *Execution, a Admission) (earlier *Execution, err error)

	// Conclude records r as the end of its execution, with its consequences, in one transaction. It
	// calls follow with the concluded record, again if the transaction retries; follow must not use
	// the store. The thread state in r becomes the thread's state.
	//
	// Only the first Result counts. For a later Result or an unknown execution, first is false and
	// nothing changes. Conclude returns the record whenever it exists.
	Conclude(ctx context.Context, r Result, follow func(*Execution) Consequences) (e *Execution, first bool, err error)

	// Get returns a record without its output; Output includes it.
	Get(ctx context.Context, tenant, traceID string) (*Execution, error)
	Output(ctx context.Context, tenant, traceID string) (*Execution, error)

	// Keyed returns the tenant's execution for an idempotency key, without its output.
	Keyed(ctx context.Context, tenant, key string) (*Execution, error)

	// List returns records without output, newest first.
	List(ctx context.Context, f Filter) (page []*Execution, next string, err error)

	// Unfinished returns up to limit running executions of all tenants that were admitted before t,
	// oldest first.
	Unfinished(ctx context.Context, t time.Time, limit int) ([]*Execution, error)

	// SetWebhookStatus records the state of an execution's webhook.
	SetWebhookStatus(ctx context.Context, traceID string, s WebhookStatus) error
	// Redeliver enqueues the webhook of an ended execution again and marks it pending. It returns a
	// Conflict fault unless the webhook was delivered or has failed.
	Redeliver(ctx context.Context, e *Execution) error

	// OfRun returns up to limit ended executions of a run.
	OfRun(ctx context.Context, run string, limit int) ([]*Execution, error)
	// OfTenant returns up to limit ended executions of a tenant, without output.
	OfTenant(ctx context.Context, tenant string, limit int) ([]*Execution, error)
	// Expired returns up to limit executions of all tenants that ended longer ago than keep, by the
	// store's clock, oldest first, without output. It includes those of deleted runs whatever their
	// age, and excludes those with files of runs that still exist.
	Expired(ctx context.Context, keep time.Duration, limit int) ([]*Execution, error)
	// Delete removes records, except those of running executions, and frees their share of the
	// OutputQuota.
	Delete(ctx context.Context, traceIDs []string) error

	// Recent groups the SourceAPI executions of all tenants that ended within a time by the store's
	// clock, and returns up to limit groups, newest first. It may omit a group if many newer
	// executions exist.
	Recent(ctx context.Context, within time.Duration, limit int) ([]Use, error)

	// PurgeKeys deletes up to most expired idempotency keys and returns how many.
	PurgeKeys(ctx context.Context, most int) (int, error)
}

// Use groups executions that a warm sandbox of one kind fits.
type Use struct {
	Tenant      string // id
	Key         string // id
	Environment string // id
	Language    Language
	Thread      bool      // the executions used a thread
	Last        time.Time // when the newest one ended
}

// Admission holds the limits for a new execution.
type Admission struct {
	Concurrency int     // running executions of the tenant; 0 for unlimited
	Cause       error   // Err of the fault, which says how to raise the limit; may be nil
	Credits     float64 // the tenant's budget for the calendar month (UTC); 0 for unlimited

	Threads int // threads the tenant may have; 0 for unlimited
	Outputs OutputQuota

	IdempotencyKey  string   // "" for none
	IdempotencyBody [32]byte // digest of the request that the key identifies
}

// Full returns the fault for an execution rejected because n others are running.
func (a Admission) Full(n int) error {
	f := fault.Limit("concurrency", time.Time{}, "concurrent execution limit reached (%d/%d).", n, a.Concurrency)
	f.Err = a.Cause
	return f
}

// OutputQuota limits what a tenant's ended executions and responses store: Execution.Kept and the
// logs of responses that ended within Keep, in whole UTC days. Concurrent requests may each admit
// one execution too many, because its output size is not known in advance.
type OutputQuota struct {
	Max   int64         // bytes; 0 for unlimited
	Keep  time.Duration // how long Atoll keeps executions
	Cause error         // Err of the fault, which says how to raise the limit; may be nil
}

// DimensionOutputs is the Dimension of faults for an OutputQuota.
const DimensionOutputs = "outputs"

// Check returns a fault if k exceeds the quota.
func (q OutputQuota) Check(k usage.Kept) error {
	if q.Max <= 0 || k.Bytes < q.Max {
		return nil
	}
	return q.Full(k.Bytes, k.ResetsAt)
}

// Full returns the fault for a tenant that stores used bytes. The oldest bytes expire at resets.
func (q OutputQuota) Full(used int64, resets time.Time) error {
	f := fault.Limit(DimensionOutputs, resets, "stored outputs use %s of %s (max_outputs). Delete executions and responses that you do not need, or wait until the oldest expire.",
		runtime.FormatBytes(round(used)), runtime.FormatBytes(round(q.Max)))
	f.Err = q.Cause
	return f
}

// round rounds bytes to a readable value, to about a tenth of the unit.
func round(n int64) int64 {
	unit := int64(1)
	for n/unit >= 1024 {
		unit *= 1024
	}
	if unit > 1 {
		unit /= 8 // an eighth has few digits
	}
	return (n + unit/2) / unit * unit
}

// Consequences are recorded in the same transaction as the end of an execution.
type Consequences struct {
	Audit   audit.Row // Retention 0 means the tenant's AuditDays
	Usage   usage.Entry
	Webhook bool // enqueue its delivery
}

// Filter selects executions. Tenant is required; any other zero field matches every execution.
type Filter struct {
	Tenant        string
	Key           string
	Status        Status
	Language      Language
	Thread        string
	Metadata      map[string]string // all must match
	Since, Before time.Time         // CreatedAt in [Since, Before)
	Cursor        string            // from an earlier page
	Limit         int               // 1 to 100
}
