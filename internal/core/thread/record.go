// Package thread keeps track of a tenant's threads and their states, and changes threads between
// executions.
//
// Only one user at a time has a thread: an execution, from its admission to the record of its end,
// or an edit, which holds a lease.
package thread

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
)

// Thread is the record of a thread.
type Thread struct {
	Tenant    string // id
	ID        string // the caller's name for it
	State     string // the last saved state; "" for none
	Bytes     int64  // of its files
	Files     int64
	CreatedAt time.Time
	UpdatedAt time.Time  // when it was last saved
	ExpiresAt *time.Time // when Atoll deletes it; nil to apply keep_threads
}

// Records keeps the records of threads. Methods return a NotFound fault for another tenant's
// thread, and a Conflict fault for a change to a thread in use.
type Records interface {
	Thread(ctx context.Context, tenant, id string) (*Thread, error)
	Threads(ctx context.Context, f Filter) (page []*Thread, next string, err error)

	// Lease reserves a thread for the holder of the token for d: no other caller can change it and
	// no execution can start with it. Lease creates a missing thread unless the tenant already has
	// most threads (0 for unlimited), which is an Exhausted fault. Extend restarts d and returns a
	// Conflict fault if the lease was lost.
	Lease(ctx context.Context, tenant, id, token string, d time.Duration, most int) (*Thread, error)
	Extend(ctx context.Context, tenant, id, token string, d time.Duration) error
	// Commit sets the thread's state to s and ends the lease; Release only ends the lease. A thread
	// that was never saved is deleted with its lease.
	Commit(ctx context.Context, tenant, id, token string, s execution.ThreadState) error
	Release(ctx context.Context, tenant, id, token string) error

	// SetExpiry sets when Atoll deletes a thread; nil removes the thread's own expiry.
	SetExpiry(ctx context.Context, tenant, id string, at *time.Time) error
	// DeleteThread deletes the record. Collect deletes the state's blobs later.
	DeleteThread(ctx context.Context, tenant, id string) error

	// ExpireThreads deletes up to most threads of all tenants that have expired, or that have no
	// expiry and were saved longer than keep ago (0 keeps them), by the store's clock. It returns
	// how many.
	ExpireThreads(ctx context.Context, keep time.Duration, most int) (int, error)

	// TenantsWithGarbage lists tenants with saved states that no thread references.
	// ReferencedStates lists the states that threads reference. ClearGarbage removes a tenant from
	// the list unless new garbage appeared within the last age.
	TenantsWithGarbage(ctx context.Context) ([]string, error)
	ReferencedStates(ctx context.Context, tenant string) ([]string, error)
	ClearGarbage(ctx context.Context, tenant string, age time.Duration) error
}

// Filter selects threads of a tenant, ordered by id.
type Filter struct {
	Tenant string
	Prefix string // of the id
	Cursor string // from an earlier page
	Limit  int    // 1 to 100
}
