// Package thread says which threads a tenant has and in which state each of
// them is, and changes threads between executions.
//
// A thread is used by one at a time: an execution, from its admission to the
// record of its end, or an edit, which holds a lease meanwhile.
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
	State     string // what was saved of it last; "" for nothing
	Bytes     int64  // of its files
	Files     int64
	CreatedAt time.Time
	UpdatedAt time.Time  // when it was saved last
	ExpiresAt *time.Time // when it is deleted; nil for when keep_threads says
}

// Records keeps the records of threads. Every method treats another tenant's
// thread as one that does not exist (NotFound), and a thread that is being used
// as a Conflict where it is to be changed.
type Records interface {
	Thread(ctx context.Context, tenant, id string) (*Thread, error)
	Threads(ctx context.Context, f Filter) (page []*Thread, next string, err error)

	// Lease gives a thread to the holder of the token, for d: no other caller changes
	// it meanwhile, and no execution begins with it. A thread that does not exist
	// begins to if most, unless it is 0, allows one more; otherwise that is an
	// Exhausted fault. Extend makes d begin anew, and fails with a Conflict once
	// the lease is lost.
	Lease(ctx context.Context, tenant, id, token string, d time.Duration, most int) (*Thread, error)
	Extend(ctx context.Context, tenant, id, token string, d time.Duration) error
	// Commit makes s the thread's state and ends the lease; Release ends it. A
	// thread that was never saved ends with its lease.
	Commit(ctx context.Context, tenant, id, token string, s execution.ThreadState) error
	Release(ctx context.Context, tenant, id, token string) error

	// SetExpiry says when a thread is to be deleted, nil for never of its own
	// accord.
	SetExpiry(ctx context.Context, tenant, id string, at *time.Time) error
	// DeleteThread deletes the record; the state's blobs are collected later.
	DeleteThread(ctx context.Context, tenant, id string) error

	// ExpireThreads deletes threads of all tenants whose time has come, and those
	// that were saved longer ago than keep and have no time of their own (0 keeps
	// them), by the store's clock, at most most of them, and returns how many went.
	ExpireThreads(ctx context.Context, keep time.Duration, most int) (int, error)

	// TenantsWithGarbage lists tenants with saved states that no thread has any more, States
	// those that one has. Swept forgets the litter of a tenant, unless there was
	// new one within the last age: then it stays listed.
	TenantsWithGarbage(ctx context.Context) ([]string, error)
	ReferencedStates(ctx context.Context, tenant string) ([]string, error)
	ClearGarbage(ctx context.Context, tenant string, age time.Duration) error
}

// Filter selects threads of a tenant, by id.
type Filter struct {
	Tenant string
	Prefix string // of the id
	Cursor string // from an earlier page
	Limit  int    // 1 to 100
}
