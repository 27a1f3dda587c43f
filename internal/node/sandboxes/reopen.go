package sandboxes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// takeOver opens a sandbox that is in memory, and has it run or stand still as is
// recorded: it may have been about to do the other. asleep says that it is not, but
// sleeps on disk, whatever is recorded.
func (m *Manager) takeOver(ctx context.Context, sb *sandbox.Sandbox) (live Live, asleep bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	live, err = m.cfg.Engine.Open(ctx, recipeOf(sb))
	if err != nil {
		return nil, errors.Is(err, runtime.ErrNotFound) && (sb.Stored != nil || m.cfg.Engine.HasCheckpoint(sb.ID)), err
	}
	if sb.State == sandbox.Sleeping {
		err = live.Freeze(ctx)
	} else {
		err = live.Thaw(ctx)
	}
	if err != nil {
		return nil, false, errors.Join(err, live.Detach())
	}
	return live, false, nil
}

// saveAsleep records that e's sandbox sleeps on disk, or where it was being woken
// from: it fell asleep, or did not wake, while that could not be recorded. e is
// locked.
func (m *Manager) saveAsleep(ctx context.Context, e *entry) error {
	if m.current(e).Stored != nil {
		if err := m.cfg.Engine.Remove(ctx, e.id); err != nil {
			return err
		}
		return m.save(ctx, e, func(sb *sandbox.Sandbox) error { return sb.FallAsleep(sandbox.Stored, "") })
	}
	if err := m.endProcesses(ctx, e); err != nil {
		return err
	}
	return m.save(ctx, e, func(sb *sandbox.Sandbox) error { return sb.FallAsleep(sandbox.OnDisk, "") })
}

// ensureOpen is an error unless e's sandbox is there, and open if it is in memory. e is
// locked.
func (m *Manager) ensureOpen(ctx context.Context, e *entry) error {
	m.mu.Lock()
	gone, name, closed := e.removed, e.sb.Name, m.closed
	m.mu.Unlock()
	switch {
	case gone:
		return sandbox.Unknown(name)
	case closed:
		return errClosing
	}
	return m.reopen(ctx, e)
}

// reopen takes over a sandbox that is in memory, as far as is recorded, and is not
// open, though it may live: for want of descriptors or memory when this process
// began, say, or of a database when it fell asleep again. e is locked.
func (m *Manager) reopen(ctx context.Context, e *entry) error {
	m.mu.Lock()
	sb, live := e.sb, e.live
	m.mu.Unlock()
	if live != nil || !sb.Resident() {
		return nil
	}
	live, asleep, err := m.takeOver(ctx, sb)
	if asleep {
		if err := m.saveAsleep(context.WithoutCancel(ctx), e); err != nil {
			return fault.Wrap(fault.Unavailable, err, fmt.Sprintf("the sandbox %q sleeps, and cannot be woken right now; nothing was run. Retry later", sb.Name))
		}
		return nil
	}
	if errors.Is(err, runtime.ErrNotFound) {
		return errors.Join(m.lose(context.WithoutCancel(ctx), e, "it ended before the server could take it over"), m.lostError(e))
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, fmt.Sprintf("the sandbox %q cannot be taken over right now; nothing was run. Retry later, or destroy it", sb.Name))
	}
	m.mu.Lock()
	e.live, e.usedAt = live, time.Now()
	m.mu.Unlock()
	return m.clearStored(ctx, e)
}
