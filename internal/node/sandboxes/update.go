package sandboxes

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// Update changes grant's sandbox, whether it runs or sleeps.
func (m *Manager) Update(ctx context.Context, grant *sandbox.Grant, session, nameOrID string, c sandbox.Change) (*sandbox.Sandbox, error) {
	e, err := m.find(grant, session, nameOrID)
	if err != nil {
		return nil, err
	}
	if err := e.lock(ctx); err != nil {
		return nil, err
	}
	defer e.unlock()
	m.mu.Lock()
	live, gone, lost := e.live, e.removed, e.sb.State == sandbox.Lost
	m.mu.Unlock()
	switch {
	case gone:
		return nil, sandbox.Unknown(nameOrID)
	case lost:
		return nil, m.lostError(e)
	}
	err = m.save(ctx, e, func(sb *sandbox.Sandbox) error {
		if c.Timeout != nil {
			if err := setTimeout(grant, sb, *c.Timeout, time.Now().UTC()); err != nil {
				return err
			}
		}
		if c.SleepAfter != nil {
			if sb.SleepAfter = *c.SleepAfter; sb.SleepAfter == 0 {
				sb.SleepAfter = m.cfg.SleepAfter
			}
		}
		if c.Network != nil {
			return setNetwork(grant, sb, *c.Network)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if c.Network != nil && live != nil {
		if err := m.applyNetwork(grant, e, live); err != nil {
			return nil, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.publicCopy(e), nil
}

// setTimeout has a sandbox destroyed so long after now, or as late as grant's plan
// allows.
func setTimeout(grant *sandbox.Grant, sb *sandbox.Sandbox, timeout time.Duration, now time.Time) error {
	if timeout < 0 {
		return fault.New(fault.Invalid, "timeout: want a time from now on, or 0 for the longest there is")
	}
	most := grant.Plan.MaxSandboxLife
	end := now.Add(timeout)
	last := sb.CreatedAt.Add(most)
	switch {
	case most == 0 && timeout == 0:
		sb.ExpiresAt = nil
		return nil
	case timeout == 0:
		end = last
	case most > 0 && end.After(last):
		return fault.Limit("sandbox_life", time.Time{}, "sandbox %q: its time would be over %s after it was made; with the plan %s a sandbox lives %s at most",
			sb.Name, end.Sub(sb.CreatedAt).Round(time.Second), grant.Plan.Name, most)
	}
	sb.ExpiresAt = &end
	return nil
}
