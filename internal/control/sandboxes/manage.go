package sandboxes

import (
	"context"
	"strconv"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/preview"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Get returns the record of a sandbox. It does not wake the sandbox.
func (s *Service) Get(ctx context.Context, r Ref) (*sandbox.Sandbox, error) {
	return s.cfg.Sandboxes.Get(ctx, r.Caller, r.Session, r.Name)
}

// List returns the sandboxes of a session by name, or those of all sessions by session and name
// if session is nil. For the session of an agent, it lists that session's environment.
func (s *Service) List(ctx context.Context, p *tenant.Principal, session *string) ([]*sandbox.Sandbox, error) {
	in := ""
	if session != nil {
		if in = *session; in == "" {
			return nil, fault.New(fault.Invalid, "session must not be empty; leave it out for all sessions")
		}
	}
	p, err := s.enter(ctx, p, in)
	if err != nil {
		return nil, err
	}
	return s.cfg.Sandboxes.List(ctx, p, in)
}

// Delete ends a sandbox, even while it is in use, and deletes its data.
func (s *Service) Delete(ctx context.Context, r Ref) error {
	return s.cfg.Sandboxes.Destroy(ctx, r.Caller, r.Session, r.Name)
}

// Change says what to change of a sandbox; nil leaves a setting unchanged.
type Change struct {
	Timeout    *time.Duration // as in sandbox.Change
	SleepAfter *time.Duration // as in sandbox.Change
	Network    Narrow
}

// Update changes a sandbox.
func (s *Service) Update(ctx context.Context, r Ref, c Change) (*sandbox.Sandbox, error) {
	change := sandbox.Change{Timeout: c.Timeout, SleepAfter: c.SleepAfter}
	if c.Network != nil {
		policy, err := c.Network.over(r.Caller)
		if err != nil {
			return nil, err
		}
		if policy == nil {
			policy = &r.Caller.Environment.Permissions.Network
		}
		change.Network = policy
	}
	return s.update(ctx, r, change)
}

func (s *Service) update(ctx context.Context, r Ref, c sandbox.Change) (*sandbox.Sandbox, error) {
	return s.cfg.Sandboxes.Update(ctx, r.Caller, r.Session, r.Name, c)
}

// Sleep puts a sandbox to sleep. Its next use wakes it.
func (s *Service) Sleep(ctx context.Context, r Ref) (*sandbox.Sandbox, error) {
	return s.cfg.Sandboxes.Sleep(ctx, r.Caller, r.Session, r.Name)
}

// Restart starts a sandbox again with the current settings of its environment; see sandbox.Directory.
func (s *Service) Restart(ctx context.Context, r Ref) (*sandbox.Sandbox, error) {
	if err := s.draining(); err != nil {
		return nil, err
	}
	return s.cfg.Sandboxes.Restart(ctx, r.Caller, r.Session, r.Name)
}

// Fork copies a sandbox with its files, processes and memory. It creates all copies or none.
func (s *Service) Fork(ctx context.Context, r Ref, count int) ([]*sandbox.Sandbox, error) {
	return s.cfg.Sandboxes.Fork(ctx, r.Caller, r.Session, r.Name, count)
}

// Usage returns what a sandbox uses.
func (s *Service) Usage(ctx context.Context, r Ref) (sandbox.Usage, error) {
	return s.cfg.Sandboxes.Usage(ctx, r.Caller, r.Session, r.Name)
}

// Orphans lists the sandboxes of this machine that have no record.
func (s *Service) Orphans(ctx context.Context) ([]runtime.ID, error) {
	return s.cfg.Sandboxes.Orphans(ctx)
}

// Reap deletes the sandboxes of this machine that have no record.
func (s *Service) Reap(ctx context.Context, p *tenant.Principal, t *Trail) ([]runtime.ID, error) {
	t.By(p, "", "")
	return s.cfg.Sandboxes.Reap(ctx)
}

// Snapshot stores the state of a sandbox for keep; 0 uses the server's default.
func (s *Service) Snapshot(ctx context.Context, r Ref, keep time.Duration) (*sandbox.Snapshot, error) {
	return s.cfg.Sandboxes.Snapshot(ctx, r.Caller, r.Session, r.Name, keep)
}

// GetSnapshot returns p's snapshot.
func (s *Service) GetSnapshot(ctx context.Context, p *tenant.Principal, id sandbox.SnapshotID) (*sandbox.Snapshot, error) {
	return s.cfg.Sandboxes.GetSnapshot(ctx, p, id)
}

// ListSnapshots returns a page of p's snapshots, newest first.
func (s *Service) ListSnapshots(ctx context.Context, p *tenant.Principal, cursor string, limit int) (page []*sandbox.Snapshot, next string, err error) {
	return s.cfg.Sandboxes.ListSnapshots(ctx, p, cursor, limit)
}

// DeleteSnapshot deletes p's snapshot. Sandboxes created from it keep running.
func (s *Service) DeleteSnapshot(ctx context.Context, p *tenant.Principal, t *Trail, id sandbox.SnapshotID) error {
	t.By(p, "", string(id))
	return s.cfg.Sandboxes.DeleteSnapshot(ctx, p, id)
}

// ListPreviews returns the open ports of a sandbox. It does not wake the sandbox, nor do
// OpenPreview and ClosePreview.
func (s *Service) ListPreviews(ctx context.Context, r Ref) ([]*preview.Preview, error) {
	sb, err := s.Get(ctx, r)
	if err != nil {
		return nil, err
	}
	return s.cfg.Previews.List(ctx, sb.ID)
}

// OpenPreview opens a port of a sandbox to browsers, or returns its existing preview.
func (s *Service) OpenPreview(ctx context.Context, r Ref, port uint16) (*preview.Preview, error) {
	sb, err := s.onPort(ctx, r, port)
	if err != nil {
		return nil, err
	}
	return s.cfg.Previews.Open(ctx, sb.ID, port)
}

// ClosePreview closes a port of a sandbox.
func (s *Service) ClosePreview(ctx context.Context, r Ref, port uint16) error {
	sb, err := s.onPort(ctx, r, port)
	if err != nil {
		return err
	}
	return s.cfg.Previews.Close(ctx, sb.ID, port)
}

// onPort finds a sandbox for an operation on a port.
func (s *Service) onPort(ctx context.Context, r Ref, port uint16) (*sandbox.Sandbox, error) {
	sb, err := s.Get(ctx, r)
	if err == nil {
		r.Trail.Asks(strconv.Itoa(int(port)))
	}
	return sb, err
}
