package sandboxes

import (
	"context"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// List returns p's sandboxes of a session, or of all sessions if that is "", by
// session and name. Those that are destroyed are not among them.
func (m *Manager) List(_ context.Context, p *tenant.Principal, session string) ([]*Sandbox, error) {
	if err := checkCaller(p); err != nil {
		return nil, err
	}
	if session != "" {
		if err := CheckSession(session); err != nil {
			return nil, err
		}
	}
	var out []*Sandbox
	m.mu.Lock()
	for _, e := range m.byID {
		if e.sb.Tenant == p.Tenant.ID && e.sb.Environment == p.Environment.ID && (session == "" || e.sb.Session == session) {
			out = append(out, e.seen())
		}
	}
	m.mu.Unlock()
	slices.SortFunc(out, func(a, b *Sandbox) int {
		if c := strings.Compare(a.Session, b.Session); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out, nil
}

// Get returns p's sandbox of a session and name, or of an id: of an id also one
// that is destroyed, as long as that is on record.
func (m *Manager) Get(ctx context.Context, p *tenant.Principal, session, nameOrID string) (*Sandbox, error) {
	e, err := m.find(p, session, nameOrID)
	if err == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		return e.seen(), nil
	}
	id := runtime.ID(nameOrID)
	if !id.Valid() || p.Environment.ID == "" {
		return nil, err
	}
	sb, recorded := m.cfg.Store.Get(ctx, p.Tenant.ID, id)
	if recorded != nil {
		return nil, recorded
	}
	if sb.Environment != p.Environment.ID {
		return nil, err
	}
	return sb, nil
}

// seen is e's sandbox as callers see it. Manager.mu is held.
func (e *entry) seen() *Sandbox {
	sb := e.sb.clone()
	if e.used.After(sb.UsedAt) {
		sb.UsedAt = e.used.UTC()
	}
	return sb
}

// Usage is what a sandbox uses: zero for one that has no memory of this machine.
// It wakes nothing.
type Usage struct {
	runtime.Usage
	Disk int64 // bytes of its home, /tmp and /var/tmp
}

// Usage returns what p's sandbox uses.
func (m *Manager) Usage(ctx context.Context, p *tenant.Principal, session, nameOrID string) (Usage, error) {
	e, err := m.find(p, session, nameOrID)
	if err != nil {
		return Usage{}, err
	}
	m.mu.Lock()
	live := e.live
	m.mu.Unlock()
	if live == nil {
		return Usage{}, nil
	}
	u, err := live.Usage(ctx)
	if err != nil {
		return Usage{}, err
	}
	used, err := live.Measure(ctx, everything)
	return Usage{u, used}, err
}

// everything is more than any folder takes.
const everything = 1 << 62
