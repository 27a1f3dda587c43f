// Package directory finds the machine of a named sandbox and forwards calls to it.
//
// It finds this machine's sandboxes in memory. It queries the records only for sandboxes of
// other machines, and only if other machines exist. A gateway without sandboxes has no local
// machine: it finds every sandbox in the records, and places new ones on the machines that
// announce themselves.
package directory

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/control/placement"
	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/usage"
)

// Peers finds the other machines.
type Peers interface {
	// Node returns the sandboxes of an executor's machine, or an error if that machine is
	// unreachable.
	Node(ctx context.Context, executor string) (sandbox.Node, error)
	// Candidates returns the machines that announce themselves, for the placement of new
	// sandboxes.
	Candidates(ctx context.Context) ([]placement.Candidate, error)
}

// Config configures a Directory. All fields except Peers are required, unless a field says otherwise.
type Config struct {
	Local     sandbox.Node // nil for a gateway without sandboxes, which requires Peers
	Executor  string       // name of this machine's executor; "" without Local
	Peers     Peers        // nil where this machine is the only one
	Store     sandbox.Store
	Snapshots sandbox.SnapshotStore
	Prices    usage.Prices
	// Refusals takes the audit rows of refused calls.
	Refusals Refusals
	// Recordable rejects callers whose calls the audit trail cannot record; nil means no
	// limit.
	Recordable func(ctx context.Context, p *tenant.Principal) error
	// Text returns the activity's text for a caller's command; with nil, the activity has no texts.
	Text func(p *tenant.Principal, command string) (string, error)
	// Fold records a sandbox that a machine returned from a command, before its events arrive, so
	// that lists and new calls see the change. The Directory calls it only without Local; nil does
	// nothing. A failure does not fail the command, because the machine's events repeat the change.
	Fold func(ctx context.Context, executor string, sb *sandbox.Sandbox) error
	Log  *slog.Logger // nil discards
}

// Refusals records the audit rows of calls that never reached a sandbox.
type Refusals interface {
	Append(ctx context.Context, r audit.Row) error
}

// Directory manages the named sandboxes of all machines. It is safe for concurrent use.
type Directory struct{ cfg Config }

var _ sandbox.Directory = (*Directory)(nil)

// New returns a Directory.
func New(cfg Config) *Directory {
	if cfg.Recordable == nil {
		cfg.Recordable = func(context.Context, *tenant.Principal) error { return nil }
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Directory{cfg}
}

// recorded is call for what leaves a row of the audit trail and nothing else has bounds for.
func recorded[T any](ctx context.Context, d *Directory, p *tenant.Principal, session, nameOrID string, do func(sandbox.Node, *sandbox.Grant) (T, error)) (none T, err error) {
	if err := d.cfg.Recordable(ctx, p); err != nil {
		return none, err
	}
	return call(ctx, d, p, session, nameOrID, do)
}

// elsewhere returns the machine that has p's sandbox, if that is not this one; nil if the
// records have no such sandbox, or have it here.
func (d *Directory) elsewhere(ctx context.Context, p *tenant.Principal, session, nameOrID string) (sandbox.Node, error) {
	if d.cfg.Peers == nil || p.Environment.ID == "" {
		return nil, nil
	}
	var sb *sandbox.Sandbox
	var err error
	if id := runtime.ID(nameOrID); id.Valid() {
		sb, err = d.cfg.Store.Get(ctx, p.Tenant.ID, id)
	} else {
		sb, err = d.cfg.Store.Find(ctx, p.Tenant.ID, p.Environment.ID, session, nameOrID)
	}
	switch {
	case err != nil && fault.KindOf(err) == fault.NotFound:
		return nil, nil
	case err != nil:
		return nil, err
	case sb.Environment != p.Environment.ID, sb.State == sandbox.Destroyed, sb.Executor == d.cfg.Executor:
		return nil, nil
	}
	return d.cfg.Peers.Node(ctx, sb.Executor)
}

// call makes a call about p's sandbox where that is.
func call[T any](ctx context.Context, d *Directory, p *tenant.Principal, session, nameOrID string, do func(sandbox.Node, *sandbox.Grant) (T, error)) (none T, err error) {
	if err := sandbox.CheckCaller(p); err != nil {
		return none, err
	}
	grant := sandbox.GrantOf(p)
	if d.cfg.Local == nil {
		return remote(ctx, d, grant, session, nameOrID, do)
	}
	out, err := do(d.cfg.Local, grant)
	if err == nil || fault.KindOf(err) != fault.NotFound {
		return out, err
	}
	other, failed := d.elsewhere(ctx, p, session, nameOrID)
	switch {
	case failed != nil:
		return out, failed
	case other == nil:
		return out, err
	}
	return do(other, grant)
}

// Ensure implements sandbox.Directory.
func (d *Directory) Ensure(ctx context.Context, p *tenant.Principal, session, name string, spec *sandbox.Spec) (*sandbox.Sandbox, bool, error) {
	if err := d.cfg.Recordable(ctx, p); err != nil {
		return nil, false, err
	}
	if err := sandbox.CheckCaller(p); err != nil {
		return nil, false, err
	}
	grant := sandbox.GrantOf(p)
	if d.cfg.Local == nil {
		return d.ensure(ctx, grant, session, name, spec)
	}
	sb, created, err := d.cfg.Local.Ensure(ctx, grant, session, name, spec)
	there, ok := errors.AsType[*sandbox.ElsewhereError](err)
	if !ok {
		return sb, created, err
	}
	if d.cfg.Peers == nil {
		return nil, false, fault.Wrap(fault.Unavailable, err, err.Error()+", which this server does not know")
	}
	node, err := d.cfg.Peers.Node(ctx, there.Executor)
	if err != nil {
		return nil, false, err
	}
	return node.Ensure(ctx, grant, session, name, spec)
}

// Use implements sandbox.Directory.
func (d *Directory) Use(ctx context.Context, p *tenant.Principal, session, nameOrID string) (sandbox.Handle, error) {
	return recorded(ctx, d, p, session, nameOrID, func(n sandbox.Node, grant *sandbox.Grant) (sandbox.Handle, error) {
		return n.Use(ctx, grant, session, nameOrID)
	})
}

// Reach implements sandbox.Directory.
func (d *Directory) Reach(ctx context.Context, id runtime.ID) (sandbox.Handle, error) {
	if d.cfg.Local == nil {
		return d.reach(ctx, id)
	}
	h, err := d.cfg.Local.Reach(ctx, id)
	if err == nil || fault.KindOf(err) != fault.NotFound || d.cfg.Peers == nil {
		return h, err
	}
	executor, failed := d.cfg.Store.Locate(ctx, id)
	switch {
	case failed != nil && fault.KindOf(failed) == fault.NotFound, failed == nil && executor == d.cfg.Executor:
		return nil, err
	case failed != nil:
		return nil, failed
	}
	node, err := d.cfg.Peers.Node(ctx, executor)
	if err != nil {
		return nil, err
	}
	return node.Reach(ctx, id)
}

// Get implements sandbox.Directory. For a sandbox of another machine it returns the record, whose
// UsedAt may be a minute old.
func (d *Directory) Get(ctx context.Context, p *tenant.Principal, session, nameOrID string) (*sandbox.Sandbox, error) {
	if err := sandbox.CheckCaller(p); err != nil {
		return nil, err
	}
	if d.cfg.Local == nil {
		return d.findRecord(ctx, sandbox.GrantOf(p), session, nameOrID)
	}
	sb, err := d.cfg.Local.Get(ctx, sandbox.GrantOf(p), session, nameOrID)
	if err == nil || fault.KindOf(err) != fault.NotFound || d.cfg.Peers == nil || runtime.ID(nameOrID).Valid() {
		return sb, err
	}
	there, failed := d.cfg.Store.Find(ctx, p.Tenant.ID, p.Environment.ID, session, nameOrID)
	if failed != nil && fault.KindOf(failed) == fault.NotFound {
		return nil, err
	}
	return there, failed
}

// List implements sandbox.Directory. For sandboxes of other machines it returns the records.
func (d *Directory) List(ctx context.Context, p *tenant.Principal, session string) ([]*sandbox.Sandbox, error) {
	if err := sandbox.CheckCaller(p); err != nil {
		return nil, err
	}
	if d.cfg.Local == nil {
		return d.list(ctx, p, session)
	}
	all, err := d.cfg.Local.List(ctx, sandbox.GrantOf(p), session)
	if err != nil || d.cfg.Peers == nil {
		return all, err
	}
	others, err := d.cfg.Store.ListElsewhere(ctx, p.Tenant.ID, p.Environment.ID, session, d.cfg.Executor)
	if err != nil {
		return nil, err
	}
	all = append(all, others...)
	slices.SortStableFunc(all, func(a, b *sandbox.Sandbox) int {
		if c := strings.Compare(a.Session, b.Session); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return all, nil
}

// LackNetwork counts an environment's sandboxes that a restart would give more of the network.
// policy is the environment's current policy.
func (d *Directory) LackNetwork(ctx context.Context, tenantID tenant.ID, environment string, policy runtime.NetworkPolicy) (n int, err error) {
	if policy.Blocked() {
		return 0, nil
	}
	all, err := d.cfg.Store.ListElsewhere(ctx, tenantID, environment, "", "") // of every executor
	for _, sb := range all {
		if sb.LacksNetwork(policy) {
			n++
		}
	}
	return n, err
}

// Usage implements sandbox.Directory.
func (d *Directory) Usage(ctx context.Context, p *tenant.Principal, session, nameOrID string) (sandbox.Usage, error) {
	return call(ctx, d, p, session, nameOrID, func(n sandbox.Node, grant *sandbox.Grant) (sandbox.Usage, error) {
		return n.Usage(ctx, grant, session, nameOrID)
	})
}

// Update implements sandbox.Directory.
func (d *Directory) Update(ctx context.Context, p *tenant.Principal, session, nameOrID string, c sandbox.Change) (*sandbox.Sandbox, error) {
	return recorded(ctx, d, p, session, nameOrID, func(n sandbox.Node, grant *sandbox.Grant) (*sandbox.Sandbox, error) {
		return n.Update(ctx, grant, session, nameOrID, c)
	})
}

// Sleep implements sandbox.Directory.
func (d *Directory) Sleep(ctx context.Context, p *tenant.Principal, session, nameOrID string) (*sandbox.Sandbox, error) {
	return recorded(ctx, d, p, session, nameOrID, func(n sandbox.Node, grant *sandbox.Grant) (*sandbox.Sandbox, error) {
		return n.Sleep(ctx, grant, session, nameOrID)
	})
}

// Restart implements sandbox.Directory.
func (d *Directory) Restart(ctx context.Context, p *tenant.Principal, session, nameOrID string) (*sandbox.Sandbox, error) {
	return recorded(ctx, d, p, session, nameOrID, func(n sandbox.Node, grant *sandbox.Grant) (*sandbox.Sandbox, error) {
		return n.Restart(ctx, grant, session, nameOrID)
	})
}

// Fork implements sandbox.Directory.
func (d *Directory) Fork(ctx context.Context, p *tenant.Principal, session, nameOrID string, count int) ([]*sandbox.Sandbox, error) {
	return recorded(ctx, d, p, session, nameOrID, func(n sandbox.Node, grant *sandbox.Grant) ([]*sandbox.Sandbox, error) {
		return n.Fork(ctx, grant, session, nameOrID, count)
	})
}

// Destroy implements sandbox.Directory.
func (d *Directory) Destroy(ctx context.Context, p *tenant.Principal, session, nameOrID string) error {
	_, err := call(ctx, d, p, session, nameOrID, func(n sandbox.Node, grant *sandbox.Grant) (*sandbox.Sandbox, error) {
		return n.Destroy(ctx, grant, session, nameOrID)
	})
	return err
}

// Snapshot implements sandbox.Directory.
func (d *Directory) Snapshot(ctx context.Context, p *tenant.Principal, session, nameOrID string, keep time.Duration) (*sandbox.Snapshot, error) {
	return recorded(ctx, d, p, session, nameOrID, func(n sandbox.Node, grant *sandbox.Grant) (*sandbox.Snapshot, error) {
		return n.Snapshot(ctx, grant, session, nameOrID, keep)
	})
}

// Orphans lists sandboxes on this machine that have no record. Without a local machine it asks all
// machines.
func (d *Directory) Orphans(ctx context.Context) ([]runtime.ID, error) {
	if d.cfg.Local == nil {
		return d.onAll(ctx, sandbox.Node.Orphans)
	}
	return d.cfg.Local.Orphans(ctx)
}

// Reap deletes the orphans and returns them.
func (d *Directory) Reap(ctx context.Context) ([]runtime.ID, error) {
	if d.cfg.Local == nil {
		return d.onAll(ctx, sandbox.Node.Reap)
	}
	return d.cfg.Local.Reap(ctx)
}
