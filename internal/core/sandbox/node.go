package sandbox

import (
	"context"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Node is the named sandboxes of one machine, as callers of any machine use them.
// Another tenant's sandbox, or another environment's, is as unknown (NotFound) as one
// that never was. A sandbox that the records have on another machine is an
// *ElsewhereError.
type Node interface {
	// Ensure returns p's sandbox of a session and name, and makes it if there is none. A
	// nil spec means that any will do; otherwise one of another image is a Conflict.
	Ensure(ctx context.Context, p *tenant.Principal, session, name string, spec *Spec) (sb *Sandbox, created bool, err error)
	// Use returns p's sandbox to be used, and wakes it if it sleeps.
	Use(ctx context.Context, p *tenant.Principal, session, nameOrID string) (Handle, error)
	// Reach is Use for callers without a key, such as a preview's: they were given the
	// sandbox's id.
	Reach(ctx context.Context, id runtime.ID) (Handle, error)

	// Get returns p's sandbox of a session and name, or of an id: of an id also one that
	// is destroyed, as long as that is on record.
	Get(ctx context.Context, p *tenant.Principal, session, nameOrID string) (*Sandbox, error)
	// List returns p's sandboxes of a session, or of all sessions if that is "", by
	// session and name.
	List(ctx context.Context, p *tenant.Principal, session string) ([]*Sandbox, error)
	Usage(ctx context.Context, p *tenant.Principal, session, nameOrID string) (Usage, error)
	Update(ctx context.Context, p *tenant.Principal, session, nameOrID string, c Change) (*Sandbox, error)
	Sleep(ctx context.Context, p *tenant.Principal, session, nameOrID string) (*Sandbox, error)
	// Restart ends the sandbox's processes and starts it again under its name, with the current
	// image, limits, permissions and network of its environment. It keeps files only in
	// /home/user, /tmp and /var/tmp.
	Restart(ctx context.Context, p *tenant.Principal, session, nameOrID string) (*Sandbox, error)
	// Fork makes copies of p's sandbox, with its files, processes and memory; either all
	// are made or none.
	Fork(ctx context.Context, p *tenant.Principal, session, nameOrID string, count int) ([]*Sandbox, error)
	// Destroy ends p's sandbox, also while it is in use, and removes all there is of it.
	Destroy(ctx context.Context, p *tenant.Principal, session, nameOrID string) error
	// Snapshot keeps p's sandbox in the blob store as it is at one moment, for a time; 0
	// is as long as the server's rule says.
	Snapshot(ctx context.Context, p *tenant.Principal, session, nameOrID string, keep time.Duration) (*Snapshot, error)

	// Orphans lists what there is of sandboxes on this machine that no record knows; Reap
	// removes them.
	Orphans(ctx context.Context) ([]runtime.ID, error)
	Reap(ctx context.Context) ([]runtime.ID, error)
}

// MaxForks bounds the copies that one Fork makes.
const MaxForks = 50

// ElsewhereError says that a sandbox is on another machine than the one that was asked.
type ElsewhereError struct {
	Sandbox  *Sandbox
	Executor string // the installation that has it
}

// Error implements error.
func (e *ElsewhereError) Error() string {
	return fmt.Sprintf("the sandbox %q is on another machine (%s)", e.Sandbox.Name, e.Executor)
}
