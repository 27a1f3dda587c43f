package sandboxes

import (
	"context"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// List returns grant's sandboxes of a session, or of all sessions if that is "", by
// session and name. Those that are destroyed are not among them.
func (m *Manager) List(_ context.Context, grant *sandbox.Grant, session string) ([]*sandbox.Sandbox, error) {
	if err := grant.Check(); err != nil {
		return nil, err
	}
	if session != "" {
		if err := sandbox.CheckSession(session); err != nil {
			return nil, err
		}
	}
	var out []*sandbox.Sandbox
	m.mu.Lock()
	for _, e := range m.byID {
		if e.sb.Tenant == grant.Tenant && e.sb.Environment == grant.Environment && (session == "" || e.sb.Session == session) {
			out = append(out, m.publicCopy(e))
		}
	}
	m.mu.Unlock()
	slices.SortFunc(out, func(a, b *sandbox.Sandbox) int {
		if c := strings.Compare(a.Session, b.Session); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out, nil
}

// Get returns grant's sandbox of a session and name, or of an id: of an id also one
// that is destroyed, as long as that is on record.
func (m *Manager) Get(ctx context.Context, grant *sandbox.Grant, session, nameOrID string) (*sandbox.Sandbox, error) {
	e, err := m.find(grant, session, nameOrID)
	if err == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.publicCopy(e), nil
	}
	id := runtime.ID(nameOrID)
	if !id.Valid() || grant.Environment == "" {
		return nil, err
	}
	sb, recorded := m.cfg.Records.Get(ctx, grant.Tenant, id)
	switch {
	case recorded != nil && fault.KindOf(recorded) != fault.NotFound:
		return nil, recorded
	case recorded != nil, sb.Environment != grant.Environment:
		return nil, err
	}
	return sb, nil
}

// publicCopy is e's sandbox as callers see it. Manager.mu is held.
func (m *Manager) publicCopy(e *entry) *sandbox.Sandbox {
	sb := e.sb.Clone()
	if e.usedAt.After(sb.UsedAt) {
		sb.UsedAt = e.usedAt.UTC()
	}
	if at := m.unusedUntil(e); !at.IsZero() {
		sb.UnusedUntil = new(at.UTC())
	}
	return sb
}

// Usage returns what grant's sandbox uses.
func (m *Manager) Usage(ctx context.Context, grant *sandbox.Grant, session, nameOrID string) (sandbox.Usage, error) {
	e, err := m.find(grant, session, nameOrID)
	if err != nil {
		return sandbox.Usage{}, err
	}
	m.mu.Lock()
	live := e.live
	m.mu.Unlock()
	if live == nil {
		return sandbox.Usage{}, nil
	}
	u, err := live.Usage(ctx)
	if err != nil {
		return sandbox.Usage{}, err
	}
	used, err := live.Measure(ctx, noLimit)
	return sandbox.Usage{Usage: u, Disk: used}, err
}

// noLimit is more than any folder takes.
const noLimit = 1 << 62
