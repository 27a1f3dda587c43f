package sandbox

import (
	"context"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Directory manages the named sandboxes of all machines for authenticated callers. Methods return a
// NotFound fault for a sandbox of another tenant or environment.
type Directory interface {
	// Ensure returns p's sandbox of a session and name, and creates it if it does not exist. A nil
	// spec accepts any sandbox; otherwise a different image is a Conflict fault.
	Ensure(ctx context.Context, p *tenant.Principal, session, name string, spec *Spec) (sb *Sandbox, created bool, err error)
	// Use opens p's sandbox for use and wakes it if it sleeps.
	Use(ctx context.Context, p *tenant.Principal, session, nameOrID string) (Handle, error)
	// Reach is Use for callers without a key, such as preview clients, who know the sandbox's id.
	Reach(ctx context.Context, id runtime.ID) (Handle, error)

	// Get returns p's sandbox by session and name, or by id. By id it also finds a destroyed
	// sandbox while its record exists.
	Get(ctx context.Context, p *tenant.Principal, session, nameOrID string) (*Sandbox, error)
	// List returns p's sandboxes of a session, or of all sessions if session is "", ordered by
	// session and name.
	List(ctx context.Context, p *tenant.Principal, session string) ([]*Sandbox, error)
	Usage(ctx context.Context, p *tenant.Principal, session, nameOrID string) (Usage, error)
	Update(ctx context.Context, p *tenant.Principal, session, nameOrID string, c Change) (*Sandbox, error)
	Sleep(ctx context.Context, p *tenant.Principal, session, nameOrID string) (*Sandbox, error)
	// Restart ends the sandbox's processes and starts it again under its name, with the current
	// image, limits, permissions and network of its environment. It keeps files only in
	// /home/user, /tmp and /var/tmp.
	Restart(ctx context.Context, p *tenant.Principal, session, nameOrID string) (*Sandbox, error)
	// Fork copies p's sandbox with its files, processes and memory. It creates all copies or none.
	Fork(ctx context.Context, p *tenant.Principal, session, nameOrID string, count int) ([]*Sandbox, error)
	// Destroy ends p's sandbox, even while it is in use, and deletes its data.
	Destroy(ctx context.Context, p *tenant.Principal, session, nameOrID string) error
	// Snapshot stores the state of p's sandbox in the blob store for keep; 0 uses the server's
	// default.
	Snapshot(ctx context.Context, p *tenant.Principal, session, nameOrID string, keep time.Duration) (*Snapshot, error)
}

// Node manages the named sandboxes of one machine for a Directory on any machine. Its methods do what
// Directory's methods of the same names do, for the holder of a grant. They return an *ElsewhereError
// for a sandbox on another machine.
type Node interface {
	Ensure(ctx context.Context, grant *Grant, session, name string, spec *Spec) (sb *Sandbox, created bool, err error)
	Use(ctx context.Context, grant *Grant, session, nameOrID string) (Handle, error)
	Reach(ctx context.Context, id runtime.ID) (Handle, error)
	Get(ctx context.Context, grant *Grant, session, nameOrID string) (*Sandbox, error)
	List(ctx context.Context, grant *Grant, session string) ([]*Sandbox, error)
	Usage(ctx context.Context, grant *Grant, session, nameOrID string) (Usage, error)
	Update(ctx context.Context, grant *Grant, session, nameOrID string, c Change) (*Sandbox, error)
	Sleep(ctx context.Context, grant *Grant, session, nameOrID string) (*Sandbox, error)
	Restart(ctx context.Context, grant *Grant, session, nameOrID string) (*Sandbox, error)
	Fork(ctx context.Context, grant *Grant, session, nameOrID string, count int) ([]*Sandbox, error)
	// Destroy returns the record of the destroyed sandbox.
	Destroy(ctx context.Context, grant *Grant, session, nameOrID string) (*Sandbox, error)
	Snapshot(ctx context.Context, grant *Grant, session, nameOrID string, keep time.Duration) (*Snapshot, error)

	// Orphans lists sandboxes on this machine that have no record. Reap deletes them.
	Orphans(ctx context.Context) ([]runtime.ID, error)
	Reap(ctx context.Context) ([]runtime.ID, error)
}

// MaxForks limits the copies of one Fork.
const MaxForks = 50

// ElsewhereError says that a sandbox is on another machine.
type ElsewhereError struct {
	Sandbox  *Sandbox
	Executor string // the installation that runs it
}

// Error implements error.
func (e *ElsewhereError) Error() string {
	return fmt.Sprintf("the sandbox %q is on another machine (%s)", e.Sandbox.Name, e.Executor)
}
