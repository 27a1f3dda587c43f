package sandboxes

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

const (
	lookEvery   = time.Second
	chargeEvery = 5 * time.Minute
	// usedEvery is how far behind a record may be about when a sandbox was used.
	usedEvery = time.Minute
	// bereftEvery is how often sandboxes are looked for whose environment is gone.
	bereftEvery = 10 * time.Second
	// tendAtOnce is how many sandboxes are charged, put to sleep or ended at the same
	// time: one that takes its time does not keep the others.
	tendAtOnce = 4
	purgeKept  = 24 * time.Hour // how long a destroyed sandbox is on record
)

// Run ends sandboxes whose time is over, notices those that ended by themselves,
// has those sleep that nobody uses, and charges for those that run, until ctx ends.
func (m *Manager) Run(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	again := time.NewTicker(m.cfg.AuthTTL)
	defer again.Stop()
	checked := make(chan struct{}, 1)
	checked <- struct{}{}
	defer m.looks.Wait()
	var bereft time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			m.look(ctx, now)
			if now.Sub(bereft) >= bereftEvery {
				bereft = now
				m.endBereft(ctx)
			}
		case <-again.C:
			select {
			case <-checked: // the last one is over
				m.looks.Go(func() { m.Check(ctx); checked <- struct{}{} })
			default:
			}
		}
	}
}

// endBereft destroys sandboxes whose environment was deleted. Whoever is at the turn
// of one has it done next time.
func (m *Manager) endBereft(ctx context.Context) {
	ids, err := m.cfg.Store.ListWithoutEnvironment(ctx, m.cfg.Executor)
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
		gone := e.gone
		m.mu.Unlock()
		if !gone {
			err = m.end(ctx, e, "its environment was deleted")
		}
		if e.unlock(); err != nil {
			m.cfg.Log.WarnContext(ctx, "cannot end a named sandbox without an environment", "sandbox_id", string(id), "error", err)
		}
	}
}

// Purge deletes records of sandboxes that were destroyed, at most most of them.
func (m *Manager) Purge(ctx context.Context, most int) (int, error) {
	return m.cfg.Store.Purge(ctx, purgeKept, most)
}

// look begins what is due of every sandbox. Whoever is at its turn, or finds too many
// under way, has it done next time.
func (m *Manager) look(ctx context.Context, now time.Time) {
	m.mu.Lock()
	m.watchBudgets(ctx, now)
	var due []*entry
	for _, e := range m.byID {
		m.watchFiles(ctx, e)
		m.storeIdle(ctx, e, now)
		if m.due(e, now) {
			due = append(due, e)
		}
	}
	m.mu.Unlock()
	for _, e := range due {
		select {
		case m.tending <- struct{}{}:
		default:
			return
		}
		if ctx.Err() != nil || !e.tryLock() {
			<-m.tending
			continue
		}
		m.looks.Go(func() {
			defer func() { <-m.tending }()
			defer e.unlock()
			if err := m.tend(ctx, e, now); err != nil && ctx.Err() == nil {
				m.cfg.Log.WarnContext(ctx, "cannot tend a named sandbox", "sandbox_id", string(e.id), "error", err)
			}
		})
	}
}

// due reports whether tend has something to do. m.mu is held.
func (m *Manager) due(e *entry, now time.Time) bool {
	sb := e.sb
	return !e.gone && (m.over(e, now) != "" || e.live != nil && ended(e.live) ||
		e.live != nil && now.Sub(sb.MeteredAt) >= chargeEvery || e.used.Sub(sb.UsedAt) >= usedEvery || m.tired(e, now) != "" || m.spent(e) != nil)
}

// over is why a sandbox's time is over; "" while it is not. m.mu is held.
func (m *Manager) over(e *entry, now time.Time) string {
	switch sb := e.sb; {
	case sb.ExpiresAt != nil && !now.Before(*sb.ExpiresAt):
		return "its time was over"
	case m.cfg.Keep > 0 && (sb.State == sandbox.Sleeping || sb.State == sandbox.Lost) && e.users == 0 && now.Sub(e.used) >= m.cfg.Keep:
		return "nobody had used it for " + m.cfg.Keep.String()
	}
	return ""
}

// tend does what is due of a sandbox. The turn at e is held.
func (m *Manager) tend(ctx context.Context, e *entry, now time.Time) error {
	m.mu.Lock()
	sb, live, gone, over := e.sb, e.live, e.gone, m.over(e, now)
	late, tired := e.used.Sub(sb.UsedAt) >= usedEvery, m.tired(e, now)
	spent := m.spent(e)
	m.mu.Unlock()
	switch {
	case gone:
		return nil
	case over != "":
		return m.end(ctx, e, over)
	case live != nil && ended(live):
		return m.perish(ctx, e)
	case live != nil && now.Sub(sb.MeteredAt) >= chargeEvery:
		m.charge(ctx, e, now)
	}
	if spent != nil {
		return m.suspend(ctx, e, spent, "its tenant's budget of the month is used up")
	}
	switch tired {
	case sandbox.Frozen:
		return m.freeze(ctx, e)
	case sandbox.OnDisk:
		return m.rest(ctx, e, "")
	}
	if late {
		err := m.record(ctx, e, func(*sandbox.Sandbox) error { return nil })
		if fault.KindOf(err) == fault.NotFound {
			return nil
		}
		return err
	}
	return nil
}
