package sandboxes

import (
	"context"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/infra/trace"
)

// detailRestarted is the Detail of a restarted sandbox.
const detailRestarted = "it was restarted"

// Restart implements sandbox.Node. It checks every reason to refuse while the sandbox is still
// running, except the memory quota. If the quota is exhausted, the sandbox sleeps and its next use
// starts it.
func (m *Manager) Restart(ctx context.Context, grant *sandbox.Grant, session, nameOrID string) (*sandbox.Sandbox, error) {
	e, err := m.find(grant, session, nameOrID)
	if err != nil {
		return nil, err
	}
	if err := m.cfg.AdmitDisk(); err != nil {
		return nil, err
	}
	if err := m.checkBudget(ctx, grant.Tenant); err != nil {
		return nil, err
	}
	if err := e.lock(ctx); err != nil {
		return nil, err
	}
	defer e.unlock()
	sb, err := m.restarted(ctx, e, grant)
	if err != nil {
		return nil, err
	}
	ctx, span := trace.Start(ctx, "sandbox.restart", trace.String("atoll.sandbox_id", string(sb.ID)))
	defer span.End()
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTime) // a caller that disconnects must not leave a partial restart
	defer cancel()
	if err = m.endForRestart(work, e, sb); err == nil {
		err = m.wake(work, e, grant)
	}
	if err != nil {
		span.Fail(err)
		return nil, err
	}
	m.cfg.Log.InfoContext(ctx, "named sandbox restarted", "sandbox_id", string(sb.ID))
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.publicCopy(e), nil
}

// restarted returns the record of e's sandbox after a restart by grant. It fails if the sandbox cannot
// be restarted. The caller must hold e's lock.
func (m *Manager) restarted(ctx context.Context, e *entry, grant *sandbox.Grant) (*sandbox.Sandbox, error) {
	if err := m.ensureOpen(ctx, e); err != nil {
		return nil, err
	}
	sb := m.current(e)
	if sb.State == sandbox.Lost {
		return nil, m.lostError(e)
	}
	if err := m.limitStorage(ctx, e, grant); err != nil {
		return nil, err
	}
	sb = m.current(e)
	spec := &sandbox.Spec{Image: sb.ImageAlias, SleepAfter: sb.SleepAfter, Size: m.ownSize(grant, sb)}
	// A sandbox without a warning was created without an explicit version.
	spec.ImageAssumed = sb.ImageAlias != "" && sb.ImageWarning == "" && m.cfg.Images.Warning(sb.ImageAlias, sb.Image) != ""
	now, err := m.draft(ctx, grant, sb.Session, sb.Name, spec)
	if err != nil {
		return nil, err
	}
	if err := m.compareImage(now, spec); err != nil {
		return nil, err
	}
	sb.Image, sb.ImageWarning, sb.Limits, sb.Disk, sb.Permissions, sb.Connected = now.Image, now.ImageWarning, now.Limits, now.Disk, now.Permissions, now.Connected
	return sb, m.cfg.Engine.Admit(recipeOf(sb))
}

// ownSize returns the requested size of a sandbox without the values that exceed the current
// environment or plan.
func (m *Manager) ownSize(grant *sandbox.Grant, sb *sandbox.Sandbox) sandbox.Size {
	size, most := sb.Own, grant.Limits
	if size.CPU > most.CPU {
		size.CPU = 0
	}
	if size.Memory > most.Memory {
		size.Memory = 0
	}
	if disk := minBound(m.cfg.DiskLimit, grant.Plan.MaxSandboxDisk); disk > 0 && size.Disk > disk {
		size.Disk = 0
	}
	return size
}

// endForRestart ends the processes of e's sandbox and records it as asleep on disk, with the
// settings of as. The caller must hold e's lock.
func (m *Manager) endForRestart(ctx context.Context, e *entry, as *sandbox.Sandbox) error {
	m.mu.Lock()
	live := e.live
	e.stops++
	e.stopReason = fault.New(fault.Conflict, "the sandbox %q was restarted, which ended its programs; its files are kept", as.Name)
	m.mu.Unlock()
	m.beginExclusive(e, true)
	defer m.endExclusive(e)
	if live == nil {
		if err := m.dropMemory(ctx, e); err != nil {
			return err
		}
	} else {
		m.charge(ctx, e, time.Now())
	}
	// Record the sleep first. If ending the processes fails, the sandbox's next use ends them.
	if err := m.save(ctx, e, func(sb *sandbox.Sandbox) error {
		sb.Image, sb.ImageWarning, sb.Limits, sb.Disk, sb.Permissions, sb.Connected = as.Image, as.ImageWarning, as.Limits, as.Disk, as.Permissions, as.Connected
		return sb.FallAsleep(sandbox.OnDisk, detailRestarted)
	}); err != nil {
		return err
	}
	m.mu.Lock()
	e.live, e.checkpointBytes = nil, 0
	m.mu.Unlock()
	e.net.reset()
	if live == nil {
		return nil
	}
	if err := live.EndProcesses(ctx); err != nil {
		return fault.Wrap(fault.Unavailable, err, fmt.Sprintf("Atoll could not end the programs of the sandbox %q; retry in a few seconds, or destroy it", as.Name))
	}
	return nil
}

// dropMemory reduces e's sleeping sandbox to its files on this machine's disk. The caller must hold
// e's lock.
func (m *Manager) dropMemory(ctx context.Context, e *entry) error {
	m.cancelUpload(e)
	if m.current(e).Sleep == sandbox.Stored {
		if err := m.moveToDisk(ctx, e); err != nil {
			return err
		}
	}
	return m.cfg.Engine.DropCheckpoint(ctx, recipeOf(m.current(e)))
}
