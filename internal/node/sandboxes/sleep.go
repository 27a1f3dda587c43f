package sandboxes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/infra/trace"
)

// checkpointTime bounds writing a sandbox's checkpoint to disk.
const checkpointTime = 2 * time.Minute

// Sleep has grant's sandbox sleep at once, with a checkpoint on disk. Where that cannot be it
// is frozen, or goes on; its Detail says why. One that is in use is a Conflict.
func (m *Manager) Sleep(ctx context.Context, grant *sandbox.Grant, session, nameOrID string) (*sandbox.Sandbox, error) {
	e, err := m.find(grant, session, nameOrID)
	if err != nil {
		return nil, err
	}
	m.awaitUsers(ctx, e)
	if err := e.lock(ctx); err != nil {
		return nil, err
	}
	defer e.unlock()
	if err := m.ensureOpen(ctx, e); err != nil {
		return nil, err
	}
	m.mu.Lock()
	sb, live, users := e.sb, e.live, e.users
	m.mu.Unlock()
	switch {
	case sb.State == sandbox.Lost:
		return nil, m.lostError(e)
	case users > 0:
		return nil, fault.New(fault.Conflict, "the sandbox %q is in use; end its calls, terminals and connections first, or wait for them", sb.Name)
	case live != nil && hasEnded(live):
		return nil, m.exitError(ctx, e)
	}
	work := context.WithoutCancel(ctx) // who goes away leaves nothing half asleep
	if sb.State == sandbox.Running {
		if err := m.freeze(work, e); err != nil {
			return nil, err
		}
	}
	if live != nil {
		if err := m.checkpoint(work, e, ""); err != nil {
			return nil, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.publicCopy(e), nil
}

// leaveTime is how long those may still be there who have told their callers that all is over.
const leaveTime = time.Second

// awaitUsers waits until nobody uses a sandbox, or leaveTime is over.
func (m *Manager) awaitUsers(ctx context.Context, e *entry) {
	ctx, cancel := context.WithTimeout(ctx, leaveTime)
	defer cancel()
	for ctx.Err() == nil {
		m.mu.Lock()
		users := e.users
		m.mu.Unlock()
		if users == 0 {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(leaveTime / 100):
		}
	}
}

// sleepDue is how an unused sandbox should begin to sleep by now; "" for as
// it does. m.mu is held.
func (m *Manager) sleepDue(e *entry, now time.Time) sandbox.Sleep {
	sb, idle := e.sb, now.Sub(e.usedAt)
	switch {
	case e.live == nil || e.users > 0 || e.cannotSleep || m.closed || sb.SleepAfter <= 0:
		return ""
	case sb.State == sandbox.Running && idle >= sb.SleepAfter:
		return sandbox.Frozen
	case sb.State == sandbox.Sleeping && sb.Sleep == sandbox.Frozen && m.cfg.KeepFrozen >= 0 && idle >= sb.SleepAfter+m.cfg.KeepFrozen:
		return sandbox.OnDisk
	}
	return ""
}

// beginExclusive keeps new uses of a sandbox waiting for its lock, unless it is in use and
// must not be.
func (m *Manager) beginExclusive(e *entry, used bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.users > 0 && !used {
		return false
	}
	e.exclusive = true
	return true
}

func (m *Manager) endExclusive(e *entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e.exclusive = false
}

// keepAwake notes why a sandbox cannot sleep as it should. It is tried again once it
// was used.
func (m *Manager) keepAwake(ctx context.Context, e *entry, why string) error {
	m.mu.Lock()
	e.cannotSleep = true
	sb := e.sb
	m.mu.Unlock()
	m.cfg.Log.InfoContext(ctx, "a named sandbox cannot sleep as it should", "sandbox_id", string(sb.ID), "reason", why)
	return m.save(ctx, e, func(sb *sandbox.Sandbox) error { sb.Detail = why; return nil })
}

// freeze stops e's sandbox, unless it is in use. e is locked.
func (m *Manager) freeze(ctx context.Context, e *entry) error {
	if !m.beginExclusive(e, false) {
		return nil
	}
	defer m.endExclusive(e)
	m.mu.Lock()
	live := e.live
	m.mu.Unlock()
	m.charge(ctx, e, time.Now())
	if err := live.Freeze(ctx); err != nil {
		return m.keepAwake(ctx, e, "it cannot be frozen, and continues: "+err.Error())
	}
	if err := m.save(ctx, e, func(sb *sandbox.Sandbox) error { return sb.FallAsleep(sandbox.Frozen, "") }); err != nil {
		return errors.Join(err, live.Thaw(ctx))
	}
	return nil
}

// checkpoint writes a checkpoint of e's frozen sandbox to disk and ends its processes,
// unless it is in use; its Detail says why, if there is more to it than that.
// e is locked.
//
// Whenever the server is killed in here there is one of two: a sandbox that lives,
// frozen or stopped, or a whole checkpoint of one that has not run since.
func (m *Manager) checkpoint(ctx context.Context, e *entry, detail string) error {
	if !m.beginExclusive(e, false) {
		return nil
	}
	defer m.endExclusive(e)
	ctx, cancel := context.WithTimeoutCause(ctx, checkpointTime, fmt.Errorf("its memory was not written within %s", checkpointTime))
	defer cancel()
	m.mu.Lock()
	sb, live := e.sb, e.live
	m.mu.Unlock()
	if sb.State != sandbox.Sleeping {
		return nil // it could not even be frozen
	}
	undo := context.WithoutCancel(ctx)
	if why := m.checkpointRefused(ctx, live); why != "" {
		return m.keepAwake(undo, e, "it sleeps in memory: "+why)
	}
	m.charge(ctx, e, time.Now())
	if err := live.Checkpoint(ctx); err != nil {
		if hasEnded(live) {
			return m.handleExit(undo, e)
		}
		why := err.Error()
		if cannot, ok := errors.AsType[*runtime.SaveError](err); ok {
			why = cannot.Reason
		}
		if err := live.Freeze(undo); err != nil {
			return err
		}
		return m.keepAwake(undo, e, "it sleeps in memory, since it cannot be written to disk: "+why)
	}
	if err := m.save(undo, e, func(sb *sandbox.Sandbox) error { return sb.FallAsleep(sandbox.OnDisk, detail) }); err != nil {
		return errors.Join(err, live.Resume(undo), live.Freeze(undo))
	}
	m.mu.Lock()
	e.live, e.checkpointBytes = nil, m.cfg.Engine.CheckpointSize(e.id)
	m.mu.Unlock()
	e.net.reset()
	return live.EndProcesses(undo)
}

// checkpointRefused is why there is no room on disk for a sandbox's checkpoint; "" if
// there is.
func (m *Manager) checkpointRefused(ctx context.Context, live Live) string {
	u, err := live.Usage(ctx)
	if err != nil {
		return "" // it has just ended, which the next step finds
	}
	if m.cfg.AdmitBytes(u.Memory) != nil {
		return "the server is low on disk space"
	}
	if most := m.cfg.CheckpointDisk; most > 0 && m.checkpointsSize()+u.Memory > most {
		return "the checkpoints of sleeping sandboxes may take " + runtime.FormatBytes(most) + " of disk together (checkpoint_disk)"
	}
	return ""
}

// checkpointsSize is how many bytes of disk checkpoints take.
func (m *Manager) checkpointsSize() (bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.byID {
		bytes += e.checkpointBytes
	}
	return bytes
}

// wake has a sleeping sandbox run again, on behalf of grant. e is locked.
func (m *Manager) wake(ctx context.Context, e *entry, grant *sandbox.Grant) (err error) {
	sb := m.current(e)
	ctx, span := trace.Start(ctx, "sandbox.wake", trace.String("atoll.sandbox_id", string(sb.ID)))
	defer func() {
		span.Fail(err)
		span.End()
	}()
	m.refreshCreator(ctx, e, grant)
	how, was := sb.Sleep, sb.Detail
	if err := sb.Move(sandbox.Running, ""); err != nil {
		return err
	}
	if how != sandbox.Frozen {
		sb.MeteredAt = time.Now().UTC()
	}
	if err := m.cfg.Records.Wake(ctx, grant, sb); err != nil {
		return err
	}
	m.publish(e, sb)
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTime) // who goes away leaves nothing half awake
	defer cancel()
	m.mu.Lock()
	live := e.live
	m.mu.Unlock()
	if how == sandbox.Frozen {
		if err := live.Thaw(work); err != nil {
			return errors.Join(err, m.save(context.WithoutCancel(ctx), e, func(sb *sandbox.Sandbox) error {
				return sb.FallAsleep(sandbox.Frozen, "it cannot be thawed: "+err.Error())
			}))
		}
	} else {
		if live, err = m.restore(work, e, how, was); err != nil {
			return err
		}
	}
	m.mu.Lock()
	e.live, e.usedAt, e.checkpointBytes = live, time.Now(), 0
	m.mu.Unlock()
	if err := m.clearStored(work, e); err != nil {
		return err
	}
	return m.applyNetwork(grant, e, live)
}

// restore makes e's sandbox from its checkpoint; where that can never be, anew from its
// files, which its Detail then says. It was another while it slept.
func (m *Manager) restore(ctx context.Context, e *entry, how sandbox.Sleep, was string) (live Live, err error) {
	r := recipeOf(m.current(e))
	m.cancelUpload(e)
	if how == sandbox.Stored {
		err = m.fetchStored(ctx, e)
	}
	if err == nil {
		live, err = m.cfg.Engine.Restore(ctx, r)
	}
	if errors.Is(err, ErrCheckpoint) {
		level := slog.LevelWarn
		why := fmt.Sprintf("it was started anew with its files, without the processes it had: %v", err)
		for _, known := range []string{detailWithdrawn, detailOutOfMemory, detailRestarted} {
			if strings.HasPrefix(was, known) {
				level, why = slog.LevelInfo, "it was started anew with its files, without the processes it had: "+known
			}
		}
		m.cfg.Log.Log(ctx, level, "a named sandbox was made anew from its files", "sandbox_id", string(r.ID), "error", err)
		r.FromFiles = true
		if err = m.cfg.Engine.EndProcesses(ctx, r); err == nil { // what had storage withdrawn, and could not be ended then
			live, err = m.cfg.Engine.Create(ctx, r)
		}
		if err == nil {
			if err = m.save(ctx, e, func(sb *sandbox.Sandbox) error { sb.Detail = why; return nil }); err != nil {
				m.cfg.Log.WarnContext(ctx, "cannot record why", "sandbox_id", string(r.ID), "error", err)
			}
			return live, nil
		}
	}
	if err == nil {
		return live, nil
	}
	// The time to wake it may be over, which is no reason not to say so.
	back := m.save(context.WithoutCancel(ctx), e, func(sb *sandbox.Sandbox) error { return sb.FallAsleep(how, "it could not be woken: "+err.Error()) })
	if how == sandbox.Stored {
		back = errors.Join(back, m.cfg.Engine.Remove(context.WithoutCancel(ctx), r.ID))
		if fault.KindOf(err) == fault.Conflict { // it is damaged
			return nil, errors.Join(err, back)
		}
	}
	return nil, errors.Join(fault.Wrap(fault.Unavailable, err, fmt.Sprintf("the sandbox %q could not be woken; it sleeps on as it was, retry in a few seconds", e.sb.Name)), back)
}
