package sandboxes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

const (
	maxUploads = 2 // sandboxes on their way to the blob store at the same time
	// uploadRetry is when a sandbox is tried again that could not be stored.
	uploadRetry = 10 * time.Minute
)

// upload is a sandbox on its way to the blob store, while it stays where it is.
type upload struct {
	stop context.CancelFunc
	done chan struct{} // closed when its files are not read any more
}

// uploadIdle moves e's sandbox to the blob store if it has slept on disk for long
// enough. m.mu is held.
func (m *Manager) uploadIdle(ctx context.Context, e *entry, now time.Time) {
	sb := e.sb
	if m.cfg.KeepOnDisk < 0 || m.closed || m.uploads >= maxUploads || e.removed || e.upload != nil || e.users > 0 || sb.State != sandbox.Sleeping || sb.Sleep != sandbox.OnDisk ||
		now.Sub(e.usedAt) < max(sb.SleepAfter, 0)+max(m.cfg.KeepFrozen, 0)+m.cfg.KeepOnDisk || now.Before(e.uploadAfter) {
		return
	}
	ctx, stop := context.WithCancel(ctx)
	e.upload = &upload{stop: stop, done: make(chan struct{})}
	m.uploads++
	m.background.Go(func() {
		defer stop()
		if err := m.uploadOne(ctx, e); err != nil {
			m.cfg.Log.WarnContext(ctx, "cannot move a named sandbox to the blob store yet", "sandbox_id", string(e.id), "error", err)
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		e.upload = nil
		m.uploads--
	})
}

// uploadOne moves e's sandbox to the blob store, unless it is used meanwhile.
func (m *Manager) uploadOne(ctx context.Context, e *entry) error {
	m.mu.Lock()
	sb, s := e.sb, e.upload
	m.mu.Unlock()
	err := e.lock(ctx) // it may not have come to rest altogether
	if err == nil {
		e.unlock()
		err = m.cfg.Snapshots.MarkGarbage(ctx, sb.Tenant) // whatever becomes of it
	}
	var kept sandbox.StoredCopy
	if err == nil {
		kept, err = m.cfg.SnapshotFiles.Save(ctx, sb.Tenant, e.id)
	}
	close(s.done)
	if ctx.Err() != nil {
		return nil
	}
	if lock := e.lock(ctx); lock != nil {
		return nil //nolint:nilerr // it is used
	}
	defer e.unlock()
	m.mu.Lock()
	idle := !e.removed && e.sb.State == sandbox.Sleeping && e.sb.Sleep == sandbox.OnDisk && ctx.Err() == nil
	if err != nil {
		e.uploadAfter = time.Now().Add(uploadRetry)
	}
	m.mu.Unlock()
	if !idle {
		return nil
	}
	work := context.WithoutCancel(ctx)
	if err != nil {
		why := "it stays on the disk of its machine, since the blob store does not take it"
		return errors.Join(err, m.save(work, e, func(sb *sandbox.Sandbox) error { sb.Detail = why; return nil }))
	}
	if err := m.save(work, e, func(sb *sandbox.Sandbox) error {
		sb.Stored = &kept
		return sb.FallAsleep(sandbox.Stored, "")
	}); err != nil {
		return err
	}
	m.setCheckpointBytes(e, 0)
	return m.cfg.Engine.Remove(work, e.id) // or the next start does
}

// cancelUpload ends the moving of e's sandbox to the blob store: from then on its files are
// no other's. e is locked.
func (m *Manager) cancelUpload(e *entry) {
	m.mu.Lock()
	s := e.upload
	m.mu.Unlock()
	if s != nil {
		s.stop()
		<-s.done
	}
}

// fetchStored brings e's sandbox back from the blob store to the disk of this machine.
// It stays in the store, too, until it is recorded that it does not. e is
// locked.
func (m *Manager) fetchStored(ctx context.Context, e *entry) error {
	sb := m.current(e)
	if sb.Stored == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	if err := m.cfg.SnapshotFiles.Fetch(ctx, sb.Tenant, *sb.Stored, e.id, false); err != nil {
		if fault.KindOf(err) == fault.Internal {
			err = fault.Wrap(fault.Unavailable, err, fmt.Sprintf("the sandbox %q could not be brought back from the blob store; it sleeps on as it was, retry in a few seconds", sb.Name))
		}
		return err
	}
	return nil
}

// moveToDisk has e's sandbox sleep on the disk of this machine again. e is
// locked.
func (m *Manager) moveToDisk(ctx context.Context, e *entry) error {
	if err := m.fetchStored(ctx, e); err != nil {
		return err
	}
	m.setCheckpointBytes(e, m.cfg.Engine.CheckpointSize(e.id))
	return m.save(ctx, e, func(sb *sandbox.Sandbox) error { return sb.FallAsleep(sandbox.OnDisk, "") })
}

// setCheckpointBytes notes how many bytes of this machine's disk the checkpoint of e's
// sandbox takes.
func (m *Manager) setCheckpointBytes(e *entry, bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e.checkpointBytes = bytes
}

// clearStored records that what the blob store has of e's sandbox is not needed any
// more. e is locked.
func (m *Manager) clearStored(ctx context.Context, e *entry) error {
	if m.current(e).Stored == nil {
		return nil
	}
	return m.save(ctx, e, func(sb *sandbox.Sandbox) error { sb.Stored = nil; return nil })
}
