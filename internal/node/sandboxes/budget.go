package sandboxes

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// budgetTTL is how long it holds that a tenant has credits left, or none.
const budgetTTL = 5 * time.Second

// budgets remembers which tenants have used up the credits of the month.
type budgets struct {
	mu    sync.Mutex // taken after Manager.mu
	known map[tenant.ID]budget
	next  time.Time // when those of running sandboxes are asked about
}

type budget struct {
	at  time.Time
	err error // an Exhausted fault, or nil
}

// checkBudget says why a tenant's sandboxes must not run: its budget is used up.
func (m *Manager) checkBudget(ctx context.Context, id tenant.ID) error {
	b := &m.budgets
	b.mu.Lock()
	known, ok := b.known[id]
	b.mu.Unlock()
	if ok && time.Since(known.at) < budgetTTL {
		return known.err
	}
	err := m.cfg.Records.CheckBudget(ctx, id)
	if err != nil && fault.KindOf(err) != fault.Exhausted {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known == nil || len(b.known) > 10_000 {
		b.known = map[tenant.ID]budget{}
	}
	b.known[id] = budget{time.Now(), err}
	return err
}

// watchBudgets asks about the tenants whose sandboxes run, from time to time. m.mu
// is held.
func (m *Manager) watchBudgets(ctx context.Context, now time.Time) {
	b := &m.budgets
	b.mu.Lock()
	late := !now.Before(b.next)
	if late {
		b.next = now.Add(budgetTTL)
	}
	b.mu.Unlock()
	if !late {
		return
	}
	running := map[tenant.ID]bool{}
	for _, e := range m.byID {
		if e.live != nil {
			running[e.sb.Tenant] = true
		}
	}
	m.background.Go(func() {
		for id := range running {
			if err := m.checkBudget(ctx, id); err != nil && fault.KindOf(err) != fault.Exhausted && ctx.Err() == nil {
				m.cfg.Log.WarnContext(ctx, "cannot read whether a tenant's budget is used up", "tenant", id, "error", err)
			}
		}
	})
}

// overBudget is why e's sandbox must not run on, as was last heard; nil if it may, or
// does not. m.mu is held.
func (m *Manager) overBudget(e *entry) error {
	if e.live == nil || e.cannotSleep || e.sb.State == sandbox.Sleeping && e.users > 0 {
		return nil
	}
	b := &m.budgets
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.known[e.sb.Tenant].err
}

// suspend has e's sandbox sleep, also while it is in use: its users are told why, and its Detail
// says it of the sandbox. e is locked.
func (m *Manager) suspend(ctx context.Context, e *entry, why error, detail string) error {
	m.mu.Lock()
	sb, live := e.sb, e.live
	if sb.State == sandbox.Running {
		e.stops++
		e.stopReason = why
	}
	m.mu.Unlock()
	if sb.State == sandbox.Running {
		if err := m.freezeInUse(ctx, e, live, detail); err != nil {
			return err
		}
		m.cfg.Log.InfoContext(ctx, "a named sandbox was put to sleep", "sandbox_id", string(e.id), "tenant", sb.Tenant, "reason", detail)
	}
	return m.checkpoint(ctx, e, detail) // unless a use has not ended yet
}

// freezeInUse freezes a running sandbox in the middle of whatever it does.
func (m *Manager) freezeInUse(ctx context.Context, e *entry, live Live, detail string) error {
	m.beginExclusive(e, true)
	defer m.endExclusive(e)
	m.charge(ctx, e, time.Now())
	if err := errors.Join(live.CloseGuest(), live.Freeze(ctx)); err != nil {
		return m.keepAwake(ctx, e, detail+", but it cannot be frozen: "+err.Error())
	}
	if err := m.save(ctx, e, func(sb *sandbox.Sandbox) error { return sb.FallAsleep(sandbox.Frozen, detail) }); err != nil {
		return errors.Join(err, live.Thaw(ctx))
	}
	return nil
}
