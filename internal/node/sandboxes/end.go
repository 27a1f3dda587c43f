package sandboxes

import (
	"context"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/node/cleanup"
)

// endTime bounds ending a sandbox, whatever becomes of who asked for it.
const endTime = time.Minute

// Destroy implements sandbox.Node.
func (m *Manager) Destroy(ctx context.Context, grant *sandbox.Grant, session, nameOrID string) (*sandbox.Sandbox, error) {
	e, err := m.find(grant, session, nameOrID)
	if err != nil {
		return nil, err
	}
	if err := e.lock(ctx); err != nil {
		return nil, err
	}
	defer e.unlock()
	m.mu.Lock()
	gone := e.removed
	m.mu.Unlock()
	if gone {
		return nil, sandbox.Unknown(nameOrID)
	}
	if err := m.end(ctx, e, ""); err != nil {
		return nil, err
	}
	return m.current(e), nil
}

// end destroys e's sandbox for a reason. e is locked. What is recorded
// as destroyed and not gone is an orphan: the cleanup queue or the next start removes it.
func (m *Manager) end(ctx context.Context, e *entry, why string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	m.cancelUpload(e)
	m.charge(ctx, e, time.Now())
	if err := m.save(ctx, e, func(sb *sandbox.Sandbox) error { return sb.Move(sandbox.Destroyed, why) }); err != nil {
		return err
	}
	m.unregister(e)
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
		m.removeLater(id, err)
	}
	return nil
}

// removeLater removes the remains of a sandbox that has ended, after a try failed with err.
func (m *Manager) removeLater(id runtime.ID, err error) {
	m.cfg.Cleanup.Later(cleanup.Named, string(id), err, func(ctx context.Context) error { return m.cfg.Engine.Remove(ctx, id) })
}

// lose records that e's sandbox is lost, and removes what is left of it. It is
// charged for up to when it is known to have lived. e is locked.
func (m *Manager) lose(ctx context.Context, e *entry, why string) error {
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	m.mu.Lock()
	until := time.Now()
	if e.live == nil { // this process has not seen it alive
		until = e.sb.UsedAt
	}
	m.mu.Unlock()
	m.charge(ctx, e, until)
	if err := m.save(ctx, e, func(sb *sandbox.Sandbox) error { return sb.Move(sandbox.Lost, why) }); err != nil {
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
		m.removeLater(id, err)
	}
	return nil
}

// detailOutOfMemory begins the Detail of a sandbox whose kernel was ended with its
// programs, because they took more memory than it has.
const detailOutOfMemory = "it ran out of memory"

// oomKilled reports whether the host has ended something of a sandbox for its memory.
func oomKilled(live Live) bool {
	u, err := live.Usage(context.Background())
	return err == nil && u.OOMKills > 0
}

// handleExit sees to e's sandbox, which has ended by itself. One that ran out of memory
// sleeps from now on: its files are whole, and the next use starts it anew with
// them. Any other is lost. e is locked.
func (m *Manager) handleExit(ctx context.Context, e *entry) error {
	ctx = context.WithoutCancel(ctx)
	m.mu.Lock()
	sb, live := e.sb, e.live
	m.mu.Unlock()
	if !oomKilled(live) {
		return m.lose(ctx, e, "it ended by itself")
	}
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	m.mu.Lock()
	e.stops++
	e.stopReason = memoryLimit(sb)
	m.mu.Unlock()
	m.beginExclusive(e, true)
	defer m.endExclusive(e)
	m.charge(ctx, e, time.Now())
	why := detailOutOfMemory + " (" + runtime.FormatBytes(sb.Limits.Memory) + "), so its programs were ended"
	if err := m.save(ctx, e, func(sb *sandbox.Sandbox) error { return sb.FallAsleep(sandbox.OnDisk, why) }); err != nil {
		return err
	}
	m.mu.Lock()
	e.live, e.checkpointBytes = nil, 0
	m.mu.Unlock()
	e.net.reset()
	m.cfg.Log.InfoContext(ctx, "a named sandbox ran out of memory", "sandbox_id", string(e.id))
	if err := live.EndProcesses(ctx); err != nil {
		return fault.Wrap(fault.Unavailable, err, fmt.Sprintf("the sandbox %q ran out of memory, and its remaining programs could not be removed; retry in a few seconds, or destroy it", sb.Name))
	}
	return nil
}

// exitError is handleExit for a caller that wanted to do something else with the sandbox.
func (m *Manager) exitError(ctx context.Context, e *entry) error {
	if err := m.handleExit(ctx, e); err != nil {
		return err
	}
	m.mu.Lock()
	lost, why := e.sb.State == sandbox.Lost, e.stopReason
	m.mu.Unlock()
	if lost {
		return m.lostError(e)
	}
	return why
}

// Orphans lists what there is of sandboxes on this machine that no record knows.
func (m *Manager) Orphans(ctx context.Context) ([]runtime.ID, error) {
	left, err := m.cfg.Engine.List(ctx)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []runtime.ID
	for _, id := range left {
		if m.byID[id] == nil && !m.staged[id] {
			out = append(out, id)
		}
	}
	return out, nil
}

// Reap removes the orphans, and returns which they were.
func (m *Manager) Reap(ctx context.Context) ([]runtime.ID, error) {
	orphans, err := m.Orphans(ctx)
	if err != nil {
		return nil, err
	}
	var reaped []runtime.ID
	for _, id := range orphans {
		if m.cfg.Cleanup.Try(ctx, cleanup.Named, string(id), func(ctx context.Context) error { return m.cfg.Engine.Remove(ctx, id) }) {
			reaped = append(reaped, id)
		}
	}
	return reaped, nil
}
