package run

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Lease is the right to drive a run. It ends LeaseTime after it was given or renewed.
type Lease struct {
	Holder string    // of the process
	Tenant tenant.ID // of the run, whose key its entries are encrypted with
	Epoch  int64     // rises with each lease of a run, so that the last one is known
}

// LeaseTime is how long a run belongs to a process that says nothing more.
const LeaseTime = 15 * time.Second

// ErrLeaseLost says that another process drives the run, or that it has ended.
var ErrLeaseLost = fault.New(fault.Conflict, "another process runs this run")

// Due is a run that a process has taken on.
type Due struct {
	Run   Run
	Lease Lease
	// Cancelled says that the run is to be cancelled.
	Cancelled bool
}

// Store keeps runs and their logs. Entries are encrypted with the key of their tenant.
type Store interface {
	// Create records a run with the first entries of its log and what they leave beside it. It is driven under the
	// lease, whose epoch is 1. It is refused when limit runs of the tenant have not ended;
	// cause is then in the error's chain. 0 is no limit.
	Create(ctx context.Context, r *Run, first []Entry, holder string, limit int, cause error, left ...Trace) (Lease, error)
	// Append adds entries to a log with what they leave beside it, and sets the status that
	// they lead to. It returns ErrLeaseLost when lease is not the last one given, or the log
	// has other entries.
	Append(ctx context.Context, id ID, l Lease, entries []Entry, left ...Trace) error
	// Release gives a run back. Any process may take it on when it is due.
	Release(ctx context.Context, id ID, l Lease, due time.Time) error
	// Renew prolongs all leases of a process.
	Renew(ctx context.Context, holder string) error
	// Cancelled returns the runs of a process that are to be cancelled.
	Cancelled(ctx context.Context, holder string) ([]ID, error)
	// Claim takes on up to limit runs that are due: whose lease has ended, or whose time
	// has come. next is when the next one is due after that; zero for none.
	Claim(ctx context.Context, holder string, limit int) (due []Due, next time.Time, err error)
	// Abandon makes all runs of a process due now: it has started anew.
	Abandon(ctx context.Context, holder string) error

	// Run returns the record of a run of a tenant.
	Run(ctx context.Context, t tenant.ID, id ID) (*Run, error)
	// Log returns a log, oldest entry first.
	Log(ctx context.Context, id ID) ([]Entry, error)
	// Cancel asks for a run to be cancelled, by the process that drives it. A run that has
	// ended is a Conflict.
	Cancel(ctx context.Context, t tenant.ID, id ID) error
	// Expire removes up to limit runs that are kept no longer, and returns their ids.
	Expire(ctx context.Context, limit int) ([]ID, error)
	// HasSandbox reports whether a run of a tenant has a sandbox of that name.
	HasSandbox(ctx context.Context, t tenant.ID, sandbox string) (bool, error)
	// Delete removes a run with its log. One that has not ended is a Conflict.
	Delete(ctx context.Context, t tenant.ID, id ID) error
}
