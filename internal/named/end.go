package named

import (
	"context"
	"errors"
	"time"

	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/tenant"
)

// endTime bounds ending a sandbox, whatever becomes of who asked for it.
const endTime = time.Minute

// Destroy ends p's sandbox, whoever uses it, and removes all there is of it.
func (m *Manager) Destroy(ctx context.Context, p *tenant.Principal, session, nameOrID string) error {
	e, err := m.find(p, session, nameOrID)
	if err != nil {
		return err
	}
	if err := e.lock(ctx); err != nil {
		return err
	}
	defer e.unlock()
	m.mu.Lock()
	gone := e.gone
	m.mu.Unlock()
	if gone {
		return unknown(nameOrID)
	}
	return m.end(ctx, e, "")
}

// end destroys e's sandbox for a reason. The turn at e is held. What is recorded
// as destroyed and not gone is an orphan, which the next start reaps.
func (m *Manager) end(ctx context.Context, e *entry, why string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	m.mine(e)
	m.charge(ctx, e, time.Now())
	if err := m.record(ctx, e, func(sb *Sandbox) error { return sb.move(Destroyed, why) }); err != nil {
		return err
	}
	m.drop(e)
	m.mu.Lock()
	live, id := e.live, e.id
	e.live = nil
	m.mu.Unlock()
	var err error
	if live != nil {
		err = live.Destroy(ctx)
	} else {
		err = m.cfg.Engine.Remove(ctx, id)
	}
	if err != nil {
		m.cfg.Log.WarnContext(ctx, "a destroyed sandbox is not gone altogether", "sandbox_id", string(id), "error", err)
	}
	return nil
}

// lose records that e's sandbox is lost, and removes what is left of it. It is
// charged for up to when it is known to have lived. The turn at e is held.
func (m *Manager) lose(ctx context.Context, e *entry, why string) error {
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	m.mu.Lock()
	until := time.Now()
	if e.live == nil { // nobody here has seen it alive
		until = e.sb.UsedAt
	}
	m.mu.Unlock()
	m.charge(ctx, e, until)
	if err := m.record(ctx, e, func(sb *Sandbox) error { return sb.move(Lost, why) }); err != nil {
		return err
	}
	m.mu.Lock()
	live, id := e.live, e.id
	e.live = nil
	m.mu.Unlock()
	m.cfg.Log.WarnContext(ctx, "named sandbox lost", "sandbox_id", string(id), "reason", why)
	var err error
	if live != nil {
		err = live.Destroy(ctx)
	} else {
		err = m.cfg.Engine.Remove(ctx, id)
	}
	if err != nil {
		m.cfg.Log.WarnContext(ctx, "a lost sandbox is not gone altogether", "sandbox_id", string(id), "error", err)
	}
	return nil
}

// cause is why a sandbox ended by itself.
func cause(live Live, sb *Sandbox) string {
	if u, err := live.Usage(context.Background()); err == nil && u.OOMKills > 0 {
		return "it ran out of memory (" + sandbox.FormatBytes(sb.Limits.Memory) + ")"
	}
	return "it ended by itself"
}

// Orphans lists what there is of sandboxes on this machine that no record knows.
func (m *Manager) Orphans(ctx context.Context) ([]sandbox.ID, error) {
	left, err := m.cfg.Engine.Left(ctx)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []sandbox.ID
	for _, id := range left {
		if m.byID[id] == nil && !m.staged[id] {
			out = append(out, id)
		}
	}
	return out, nil
}

// Reap removes the orphans, and returns which they were.
func (m *Manager) Reap(ctx context.Context) ([]sandbox.ID, error) {
	orphans, err := m.Orphans(ctx)
	if err != nil {
		return nil, err
	}
	var reaped []sandbox.ID
	var errs []error
	for _, id := range orphans {
		if err := m.cfg.Engine.Remove(ctx, id); err != nil {
			errs = append(errs, err)
			continue
		}
		reaped = append(reaped, id)
	}
	return reaped, errors.Join(errs...)
}
