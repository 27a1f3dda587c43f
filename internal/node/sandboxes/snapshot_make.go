package sandboxes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/infra/trace"
	"github.com/atoll-run/atoll/internal/node/disk"
)

// Snapshot keeps grant's sandbox in the blob store as it is at one moment, with its
// processes and memory, or with its files alone where those cannot be written:
// Detail then says why. It is kept for a time; for 0, as long as the server's rule
// says. The sandbox goes on as it was: it stands still while it is written to
// disk, not while that is stored, and connections to its guest daemon end as by Fork.
func (m *Manager) Snapshot(ctx context.Context, grant *sandbox.Grant, session, nameOrID string, keep time.Duration) (_ *sandbox.Snapshot, err error) {
	if keep < 0 {
		return nil, fault.New(fault.Invalid, "keep: want a time from now on, or 0 for as long as the server's rule says")
	}
	e, err := m.find(grant, session, nameOrID)
	if err != nil {
		return nil, err
	}
	if err := m.cfg.AdmitDisk(); err != nil {
		return nil, err
	}
	ctx, span := trace.Start(ctx, "sandbox.snapshot", trace.String("atoll.sandbox_id", string(e.id)))
	defer span.End()
	defer func() { span.Fail(err) }()
	if err := e.lock(ctx); err != nil {
		return nil, err
	}
	sn, stage, err := m.stage(ctx, grant, e)
	e.unlock()
	if sn == nil {
		return nil, err
	}
	undo := context.WithoutCancel(ctx)
	if err == nil && stage != "" {
		sn.Stored, err = m.cfg.SnapshotFiles.Save(ctx, sn.Tenant, stage)
	}
	if stage != "" {
		err = errors.Join(err, m.unstage(undo, stage))
	}
	if keep == 0 {
		keep = m.cfg.KeepSnapshots
	}
	if err == nil {
		err = m.cfg.Snapshots.Finish(undo, grant, sn, keep)
	}
	if err != nil {
		return nil, errors.Join(err, m.cfg.Snapshots.Abandon(undo, sn.ID))
	}
	m.cfg.Log.InfoContext(ctx, "snapshot made", "sandbox_id", string(sn.Sandbox), "snapshot_id", string(sn.ID), "memory", sn.Stored.Checkpoint, "bytes", sn.Stored.Bytes)
	return sn, nil
}

// stage records a snapshot of e's sandbox, and copies that to a sandbox of this
// machine that cannot be found. There is no copy of one that is in the blob store
// already. A snapshot is returned with an error if it was recorded. e is
// locked.
func (m *Manager) stage(ctx context.Context, grant *sandbox.Grant, e *entry) (*sandbox.Snapshot, runtime.ID, error) {
	sb, err := m.forkable(ctx, e, grant)
	if err != nil {
		return nil, "", err
	}
	sn := sandbox.SnapshotOf(sb)
	sn.Key, sn.Executor = grant.Key, m.cfg.Executor
	if !m.hasCheckpoint(sb) {
		sn.Detail = "its files alone: it sleeps without processes"
	}
	if sb.Sleep == sandbox.Stored {
		sn.Stored = *sb.Stored
	} else if sn.Stored.Bytes, err = m.snapshotSize(ctx, e); err != nil {
		return nil, "", err
	}
	if err := m.cfg.Snapshots.Begin(ctx, grant, sn); err != nil || sb.Sleep == sandbox.Stored {
		if err != nil {
			sn = nil
		}
		return sn, "", err
	}
	// From here on the caller's going away changes nothing, until the sandbox goes
	// on.
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkpointTime)
	defer cancel()
	stage := m.stageID()
	if !m.hasCheckpoint(sb) {
		return sn, stage, m.cfg.Engine.ForkFiles(work, e.id, stage)
	}
	err = m.withCheckpoint(work, e, func() error { return m.cfg.Engine.Fork(work, e.id, stage) })
	if cannot, ok := errors.AsType[*runtime.SaveError](err); ok {
		sn.Detail = "its files alone: its memory cannot be written as it is now: " + cannot.Reason
		err = m.whileFrozen(work, e, func() error { return m.cfg.Engine.ForkFiles(work, e.id, stage) })
	}
	return sn, stage, err
}

// snapshotSize is about how many bytes a snapshot of e's sandbox will have. e is
// locked.
func (m *Manager) snapshotSize(ctx context.Context, e *entry) (int64, error) {
	m.mu.Lock()
	live := e.live
	m.mu.Unlock()
	if live == nil {
		return 0, nil // what it takes is known when it is stored
	}
	u, err := live.Usage(ctx)
	if err != nil {
		return 0, err
	}
	used, err := disk.Measure(ctx, live.Folder(), noLimit)
	return used + u.Memory, err
}

// whileFrozen does something while the programs of e's sandbox stand still. e is
// locked.
func (m *Manager) whileFrozen(ctx context.Context, e *entry, do func() error) error {
	m.mu.Lock()
	sb, live := e.sb, e.live
	m.mu.Unlock()
	if live == nil || sb.State == sandbox.Sleeping {
		return do()
	}
	m.beginExclusive(e, true)
	defer m.endExclusive(e)
	if err := live.Freeze(ctx); err != nil {
		return fault.Wrap(fault.Conflict, err, fmt.Sprintf("the sandbox %q can be neither written to disk nor stopped for a moment, so there is no snapshot of it", sb.Name))
	}
	err := do()
	return errors.Join(err, live.Thaw(context.WithoutCancel(ctx)))
}

// stageID is the id of a sandbox that is only a copy on its way to the blob store.
// What an earlier process left of one is an orphan.
func (m *Manager) stageID() runtime.ID {
	id := runtime.NewID()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.staged[id] = true
	return id
}

func (m *Manager) unstage(ctx context.Context, id runtime.ID) error {
	err := m.cfg.Engine.Remove(ctx, id)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.staged, id)
	return err
}
