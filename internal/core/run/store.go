package run

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Lease is the right to advance a run. It expires LeaseTime after it was granted or renewed.
type Lease struct {
	Holder string    // id of the process
	Tenant tenant.ID // of the run; its key encrypts the entries
	Epoch  int64     // increases with each lease of a run, to detect stale ones
}

// LeaseTime is how long a process holds a run without renewing.
const LeaseTime = 15 * time.Second

// ErrLeaseLost says that another process holds the run or that the run has ended.
var ErrLeaseLost = fault.New(fault.Conflict, "another process drives this run")

// Due is a run that a process has claimed.
type Due struct {
	Run   Run
	Lease Lease
	// Cancelled says that the process must cancel the run.
	Cancelled bool
}

// Store keeps runs and their logs. Entries are encrypted with the tenant's key.
type Store interface {
	// Create records a run with the first entries of its log and their side records. The holder
	// gets a lease with epoch 1. If the tenant already has limit active runs, Create fails with an
	// error that wraps cause; limit 0 means unlimited.
	Create(ctx context.Context, r *Run, first []Entry, holder string, limit int, cause error, left ...Trace) (Lease, error)
	// Append adds entries to a log with their side records, and sets the resulting status. It
	// returns ErrLeaseLost if lease is not the current one or the log has other entries.
	Append(ctx context.Context, id ID, l Lease, entries []Entry, left ...Trace) error
	// Release gives up a run. Any process may claim it when it is due.
	Release(ctx context.Context, id ID, l Lease, due time.Time) error
	// Renew extends all leases of a process.
	Renew(ctx context.Context, holder string) error
	// Cancelled returns the process's runs that callers asked to cancel.
	Cancelled(ctx context.Context, holder string) ([]ID, error)
	// Claim claims up to limit due runs: those with an expired lease or a due time that has passed.
	// next is when the next run is due; zero for none.
	Claim(ctx context.Context, holder string, limit int) (due []Due, next time.Time, err error)
	// Abandon makes all runs of a process due now, because the process has restarted.
	Abandon(ctx context.Context, holder string) error

	// Run returns the record of a tenant's run.
	Run(ctx context.Context, t tenant.ID, id ID) (*Run, error)
	// Log returns a log, oldest entry first.
	Log(ctx context.Context, id ID) ([]Entry, error)
	// Cancel asks the process that holds a run to cancel it. It returns a Conflict fault if the run
	// has ended.
	Cancel(ctx context.Context, t tenant.ID, id ID) error
	// Expire deletes up to limit runs whose storage time has passed, and returns their ids.
	Expire(ctx context.Context, limit int) ([]ID, error)
	// HasSandbox reports whether a tenant has a run with a sandbox of that name.
	HasSandbox(ctx context.Context, t tenant.ID, sandbox string) (bool, error)
	// Delete deletes a run with its log. It returns a Conflict fault if the run has not ended.
	Delete(ctx context.Context, t tenant.ID, id ID) error
}
