package sandboxes

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/session"
)

const (
	maintainEvery = time.Second
	chargeEvery   = 5 * time.Minute
	// saveUsedEvery is how far behind a record may be about when a sandbox was used.
	saveUsedEvery = time.Minute
	// orphanedEvery is how often sandboxes are looked for whose environment is gone.
	orphanedEvery = 10 * time.Second
	// maxMaintenance is how many sandboxes are charged, put to sleep or ended at the same
	// time: one that takes its time does not keep the others.
	maxMaintenance = 4
)

// Run ends sandboxes whose time is over, notices those that ended by themselves,
// puts unused ones to sleep, and charges for those that run, until ctx ends.
func (m *Manager) Run(ctx context.Context) {
	tick := time.NewTicker(maintainEvery)
	defer tick.Stop()
	again := time.NewTicker(m.cfg.AuthTTL)
	defer again.Stop()
	checked := make(chan struct{}, 1)
	checked <- struct{}{}
	defer m.background.Wait()
	var bereft time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			m.maintain(ctx, now)
			if now.Sub(bereft) >= orphanedEvery {
				bereft = now
				m.destroyWithoutEnvironment(ctx)
			}
		case <-again.C:
			select {
			case <-checked: // the last one is over
				m.background.Go(func() { m.Reauthorize(ctx); checked <- struct{}{} })
			default:
			}
		}
	}
}

// destroyWithoutEnvironment destroys sandboxes whose environment was deleted, or whose session
// with an agent has ended. One that is locked is left for the next time.
func (m *Manager) destroyWithoutEnvironment(ctx context.Context) {
	ids, err := m.cfg.Records.ListWithoutEnvironment(ctx, m.cfg.Executor)
	if err != nil && ctx.Err() == nil {
		m.cfg.Log.WarnContext(ctx, "cannot look for named sandboxes without an environment", "error", err)
	}
	for _, id := range ids {
		m.mu.Lock()
		e := m.byID[id]
		m.mu.Unlock()
		if e == nil || !e.tryLock() {
			continue
		}
		m.mu.Lock()
		gone, why := e.removed, "its environment was deleted"
		if session.ID(e.sb.Session).Valid() {
			why = "its session ended, or its environment was deleted"
		}
		m.mu.Unlock()
		if !gone {
			err = m.end(ctx, e, why)
		}
		if e.unlock(); err != nil {
			m.cfg.Log.WarnContext(ctx, "cannot end a named sandbox without an environment", "sandbox_id", string(id), "error", err)
		}
	}
}

// maintain begins what is due of every sandbox. A sandbox that is
// locked, or comes after maxMaintenance others, is left for the next time.
func (m *Manager) maintain(ctx context.Context, now time.Time) {
	m.mu.Lock()
	m.watchBudgets(ctx, now)
	var due []*entry
	for _, e := range m.byID {
		if e.recovering {
			continue
		}
		m.watchLimits(ctx, e)
		m.uploadIdle(ctx, e, now)
		if m.maintenanceDue(e, now) {
			due = append(due, e)
		}
	}
	m.mu.Unlock()
	for _, e := range due {
		select {
		case m.maintenanceSlots <- struct{}{}:
		default:
			return
		}
		if ctx.Err() != nil || !e.tryLock() {
			<-m.maintenanceSlots
			continue
		}
		m.background.Go(func() {
			defer func() { <-m.maintenanceSlots }()
			defer e.unlock()
			if err := m.maintainOne(ctx, e, now); err != nil && ctx.Err() == nil {
				m.cfg.Log.WarnContext(ctx, "cannot maintain a named sandbox", "sandbox_id", string(e.id), "error", err)
			}
		})
	}
}

// maintenanceDue reports whether maintainOne has something to do. m.mu is held.
func (m *Manager) maintenanceDue(e *entry, now time.Time) bool {
	sb := e.sb
	return !e.removed && (m.expiry(e, now) != "" || e.live != nil && hasEnded(e.live) ||
		e.live != nil && now.Sub(sb.MeteredAt) >= chargeEvery || e.usedAt.Sub(sb.UsedAt) >= saveUsedEvery || m.sleepDue(e, now) != "" || m.renewDue(e, now) || m.overBudget(e) != nil)
}

// expiry is why a sandbox's time is over; "" while it is not. m.mu is held.
func (m *Manager) expiry(e *entry, now time.Time) string {
	switch sb := e.sb; {
	case sb.ExpiresAt != nil && !now.Before(*sb.ExpiresAt):
		return "it timed out"
	case e.users == 0 && !m.unusedUntil(e).IsZero() && !now.Before(m.unusedUntil(e)):
		return "it was not used for " + m.cfg.KeepUnused.String()
	}
	return ""
}

// unusedUntil is when a sandbox that sleeps or is lost is destroyed unless it is used
// before; zero for never. m.mu is held.
func (m *Manager) unusedUntil(e *entry) time.Time {
	if m.cfg.KeepUnused <= 0 || e.sb.State != sandbox.Sleeping && e.sb.State != sandbox.Lost {
		return time.Time{}
	}
	return e.usedAt.Add(m.cfg.KeepUnused)
}

// maintainOne does what is due of a sandbox. e is locked.
func (m *Manager) maintainOne(ctx context.Context, e *entry, now time.Time) error {
	m.mu.Lock()
	sb, live, gone, over := e.sb, e.live, e.removed, m.expiry(e, now)
	late, tired := e.usedAt.Sub(sb.UsedAt) >= saveUsedEvery, m.sleepDue(e, now)
	spent, renew := m.overBudget(e), m.renewDue(e, now)
	m.mu.Unlock()
	switch {
	case gone:
		return nil
	case over != "":
		return m.end(ctx, e, over)
	case live != nil && hasEnded(live):
		return m.handleExit(ctx, e)
	case live != nil && now.Sub(sb.MeteredAt) >= chargeEvery:
		m.charge(ctx, e, now)
	}
	if spent != nil {
		return m.suspend(ctx, e, spent, "its tenant's budget of the month is used up")
	}
	switch {
	case tired == sandbox.Frozen:
		return m.freeze(ctx, e)
	case tired == sandbox.OnDisk:
		return m.checkpoint(ctx, e, "")
	case renew:
		return m.renewFileServer(ctx, e, nil)
	}
	if late {
		err := m.save(ctx, e, func(*sandbox.Sandbox) error { return nil })
		if fault.KindOf(err) == fault.NotFound {
			return nil
		}
		return err
	}
	return nil
}
