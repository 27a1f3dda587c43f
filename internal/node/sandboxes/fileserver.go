package sandboxes

import (
	"context"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// renewPause is how long a sandbox keeps a file server before it may get another one.
// Programs that hold many files open exhaust that one, too.
const renewPause = 5 * time.Minute

// checkFileServer notes whether the file server of e's sandbox is short of descriptors.
func (m *Manager) checkFileServer(e *entry, live Live) (short bool) {
	open, limit, err := live.FileDescriptors()
	short = err == nil && limit > 0 && open >= limit-limit/10
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.live == live {
		e.filesShort = short
	}
	return short
}

// renewDue reports whether an unused sandbox needs another file server. m.mu is held.
func (m *Manager) renewDue(e *entry, now time.Time) bool {
	return e.filesShort && e.live != nil && e.users == 0 && !e.cannotSleep && !m.closed &&
		e.sb.State == sandbox.Running && now.Sub(e.renewedAt) >= renewPause
}

// renewFileServer puts e's sandbox to sleep and wakes it, on behalf of grant, so that another
// process serves its files. e is locked.
func (m *Manager) renewFileServer(ctx context.Context, e *entry, grant *sandbox.Grant) error {
	m.mu.Lock()
	e.filesShort, e.renewedAt = false, time.Now()
	m.mu.Unlock()
	m.cfg.Log.WarnContext(ctx, "the file server of a named sandbox ran out of descriptors; suspending and resuming the sandbox", "sandbox_id", string(e.id))
	work := context.WithoutCancel(ctx)
	if err := m.freeze(work, e); err != nil {
		return err
	}
	if err := m.checkpoint(work, e, ""); err != nil {
		return err
	}
	if err := m.wakeFor(ctx, e, grant); err != nil {
		return fmt.Errorf("wake the sandbox with another file server: %w", err)
	}
	return nil
}
