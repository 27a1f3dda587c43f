package execution

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/usage"
)

// Store keeps the records of executions. Every method that takes a tenant
// treats another tenant's record as one that does not exist (NotFound).
type Store interface {
	// Admit records e as running. It fails with an Exhausted fault, and records
	// nothing, when the tenant already has a.Concurrency running or has used up
	// its budget, or when its executions keep a.Outputs.Max bytes. With an idempotency key that the tenant has used in the last
	// day it records nothing and returns the earlier execution, or a Conflict
	// fault if that was asked for with another body. An execution that was
	// concluded as NotStarted gives its key up: trying again is safe. A thread that
	// another running execution or an edit has is a Conflict, a new one beyond
	// a.Threads an Exhausted fault.
	Admit(ctx context.Context, e *Execution, a Admission) (earlier *Execution, err error)

	// Conclude records r as the end of its execution and what follows from it, in
	// one transaction; follow is asked with the concluded record, again if the
	// transaction has to be repeated, and must not use the store. The state that r
	// has of the execution's thread becomes that of the thread. Only the first
	// Result counts: for any other, and for an unknown execution, first is false
	// and nothing changes. The record is returned in every case it exists.
	Conclude(ctx context.Context, r Result, follow func(*Execution) Consequences) (e *Execution, first bool, err error)

	// Get returns a record without its output, Output with it.
	Get(ctx context.Context, tenant, traceID string) (*Execution, error)
	Output(ctx context.Context, tenant, traceID string) (*Execution, error)

	// Keyed returns the execution of a tenant that an idempotency key stands for, without
	// its output.
	Keyed(ctx context.Context, tenant, key string) (*Execution, error)

	// List returns records without output, newest first.
	List(ctx context.Context, f Filter) (page []*Execution, next string, err error)

	// Unfinished returns the executions of all tenants that are running and were
	// admitted before t, oldest first, at most limit.
	Unfinished(ctx context.Context, t time.Time, limit int) ([]*Execution, error)

	// SetWebhookStatus records the state of an execution's webhook.
	SetWebhookStatus(ctx context.Context, traceID string, s WebhookStatus) error
	// Redeliver enqueues the webhook of an ended execution once more, pending from
	// then on: a Conflict fault unless it was delivered or has failed.
	Redeliver(ctx context.Context, e *Execution) error

	// Expired returns executions of all tenants that ended longer ago than keep, by
	// the store's clock, oldest first, at most limit, without their output. Those of a run
	// that is gone are among them however old they are; those with files of a run that is
	// there are not. OfRun returns those of a run that have ended. Delete removes the
	// records, but those that are running, and what they kept counts no more.
	OfRun(ctx context.Context, run string, limit int) ([]*Execution, error)
	// OfTenant returns executions of a tenant that have ended, at most limit, without output.
	OfTenant(ctx context.Context, tenant string, limit int) ([]*Execution, error)
	Expired(ctx context.Context, keep time.Duration, limit int) ([]*Execution, error)
	Delete(ctx context.Context, traceIDs []string) error

	// Recent returns what executions of SourceAPI of all tenants have started in,
	// those that ended within a time by the store's clock, the newest first, at most
	// limit. It may leave out what was in use before many newer executions.
	Recent(ctx context.Context, within time.Duration, limit int) ([]Use, error)

	// PurgeKeys deletes idempotency keys that stand for nothing any more, at most
	// most of them, and returns how many went.
	PurgeKeys(ctx context.Context, most int) (int, error)
}

// Use is what executions had in common that a warm sandbox of one kind suits.
type Use struct {
	Tenant      string // id
	Key         string // id
	Environment string // id
	Language    Language
	Thread      bool      // they had a thread
	Last        time.Time // when the newest of them ended
}

// Admission is what a new execution must keep to.
type Admission struct {
	Concurrency int     // executions of the tenant at the same time; 0 for any number
	Cause       error   // the Err of the refusal for it, which says what lifts it; may be nil
	Credits     float64 // the tenant's budget for the calendar month (UTC); 0 for none

	Threads int // threads the tenant may have; 0 for any number
	Outputs OutputQuota

	IdempotencyKey  string   // "" for none
	IdempotencyBody [32]byte // digest of what the key stands for
}

// Full is the refusal of an execution for which n others have left no room.
func (a Admission) Full(n int) error {
	f := fault.Limit("concurrency", time.Time{}, "concurrent execution limit reached (%d/%d).", n, a.Concurrency)
	f.Err = a.Cause
	return f
}

// OutputQuota bounds what a tenant's ended executions and responses keep: Execution.Kept,
// and the logs of responses, of those that ended within Keep, whole days (UTC) counted. One more execution than fits may be
// admitted by each request at the same time, because what it will keep is not known.
type OutputQuota struct {
	Max   int64         // bytes; 0 for any number
	Keep  time.Duration // how long executions are kept
	Cause error         // the Err of the refusal, which says what lifts it; may be nil
}

// DimensionOutputs is the Dimension of a refusal for an OutputQuota.
const DimensionOutputs = "outputs"

// Check is the refusal where k leaves no room, nil where there is some.
func (q OutputQuota) Check(k usage.Kept) error {
	if q.Max <= 0 || k.Bytes < q.Max {
		return nil
	}
	return q.Full(k.Bytes, k.ResetsAt)
}

// Full is the refusal of an execution while others keep used bytes, some of them until
// resets.
func (q OutputQuota) Full(used int64, resets time.Time) error {
	f := fault.Limit(DimensionOutputs, resets, "stored outputs use %s of %s (max_outputs). Delete executions and responses that you do not need, or wait until the oldest expire.",
		runtime.FormatBytes(round(used)), runtime.FormatBytes(round(q.Max)))
	f.Err = q.Cause
	return f
}

// round rounds bytes to something that people read: a tenth of their unit, about.
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

// Consequences are recorded together with the end of an execution.
type Consequences struct {
	Audit   audit.Row // with Retention 0 it is kept for the tenant's AuditDays
	Usage   usage.Entry
	Webhook bool // enqueue its delivery
}

// Filter selects executions. Zero fields select everything but Tenant, which
// is required.
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
