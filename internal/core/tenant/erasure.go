package tenant

import "context"

// Remains counts what of a tenant is still at work.
type Remains struct {
	Executions, Runs, Sandboxes int
	Executor                    string // that has one of the sandboxes
}

// Any reports whether something is.
func (r Remains) Any() bool { return r.Executions+r.Runs+r.Sandboxes > 0 }

// ErasureStore deletes the records of tenants whose deletion was asked for. Each step can be
// repeated, so that a process goes on where another one ended.
type ErasureStore interface {
	// Deleted lists tenants whose deletion was asked for and that are not erased.
	Deleted(ctx context.Context) ([]Tenant, error)
	// Halt cancels a tenant's runs, empties the queues of its sessions, and leaves its
	// sandboxes to be destroyed by the machines that have them.
	Halt(ctx context.Context, id ID) error
	Remains(ctx context.Context, id ID) (Remains, error)
	// ExpireRuns makes the runs of a tenant ones that are kept no longer.
	ExpireRuns(ctx context.Context, id ID) error
	// Erase deletes up to most rows of a tenant, and returns how many. Audit rows and policy
	// events stay.
	Erase(ctx context.Context, id ID, most int) (int, error)
	// Finish records that a tenant is erased. Its name is free from then on.
	Finish(ctx context.Context, id ID) error
}
