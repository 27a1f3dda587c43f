package tenant

import "context"

// Remains counts the work and sandboxes that a tenant still has.
type Remains struct {
	Executions, Runs, Sandboxes int
	Executor                    string // an executor that still holds one of the sandboxes
}

// Any reports whether any count is above zero.
func (r Remains) Any() bool { return r.Executions+r.Runs+r.Sandboxes > 0 }

// ErasureStore deletes the records of tenants that are being deleted. Every step is idempotent, so
// another process can resume an erasure.
type ErasureStore interface {
	// Deleted lists the tenants that are being deleted but are not erased yet.
	Deleted(ctx context.Context) ([]Tenant, error)
	// Halt cancels a tenant's runs, empties its sessions' queues, and marks its sandboxes, which
	// their machines then destroy.
	Halt(ctx context.Context, id ID) error
	Remains(ctx context.Context, id ID) (Remains, error)
	// ExpireRuns ends the retention of a tenant's runs, so the store purges them.
	ExpireRuns(ctx context.Context, id ID) error
	// Erase deletes up to most rows of a tenant and returns the number. It keeps audit rows and
	// policy events.
	Erase(ctx context.Context, id ID, most int) (int, error)
	// Finish records that a tenant is erased, and frees its name.
	Finish(ctx context.Context, id ID) error
}
