package conversation

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Sandboxes are named sandboxes; a directory.Directory is.
type Sandboxes interface {
	List(ctx context.Context, p *tenant.Principal, session string) ([]*sandbox.Sandbox, error)
	Destroy(ctx context.Context, p *tenant.Principal, session, nameOrID string) error
}

// destroyTime bounds ending the sandboxes of a session while its caller waits.
const destroyTime = 20 * time.Second

// leave removes what a session that is archived or deleted had: its sandboxes, those of its waiting
// threads, and the records of the turns of a deleted one.
func (s *Service) leave(ctx context.Context, p *tenant.Principal, of *session.Session, waiting []session.Thread) {
	s.Told()
	ctx = context.WithoutCancel(ctx)
	s.destroy(ctx, p, of)
	s.endTurn(ctx, p, of, "", of.Sandbox)
	s.endTurn(ctx, p, of, string(of.Agent), string(of.ID))
	if err := s.Runs.Expire(ctx); err != nil {
		s.Log.WarnContext(ctx, "cannot delete the turns of a session yet", "session", of.ID, "error", err)
	}
	s.free(ctx, p, of, waiting)
}

// destroy ends the named sandboxes of a session that has ended. The records say that they must end:
// their servers end those that cannot be ended here.
func (s *Service) destroy(ctx context.Context, p *tenant.Principal, of *session.Session) {
	if s.Sandboxes == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, destroyTime)
	defer cancel()
	caller := *p
	caller.Environment.ID = of.Environment
	all, err := s.Sandboxes.List(ctx, &caller, string(of.ID))
	for _, sb := range all {
		if e := s.Sandboxes.Destroy(ctx, &caller, string(of.ID), string(sb.ID)); e != nil && fault.KindOf(e) != fault.NotFound {
			err = e
		}
	}
	if err != nil {
		s.Log.WarnContext(ctx, "cannot delete the sandboxes of a session yet", "session", of.ID, "error", err)
	}
}

// endTurn ends a sandbox of a session.
func (s *Service) endTurn(ctx context.Context, p *tenant.Principal, of *session.Session, agent, turn string) {
	ctx = context.WithoutCancel(ctx)
	caller := *p
	caller.Environment.ID = of.Environment
	if err := s.EndTurn(ctx, &caller, agent, turn); err != nil {
		s.Log.WarnContext(ctx, "cannot delete a sandbox of a session yet", "session", of.ID, "error", err)
	}
}

// waiting returns the threads of a session that wait for the client.
func (s *Service) waiting(ctx context.Context, of *session.Session) (all []session.Thread, err error) {
	if of.Waits == 0 {
		return nil, nil
	}
	f := session.ThreadFilter{Page: agent.Page{Limit: readPage}, Statuses: []session.ThreadStatus{session.ThreadWaits}}
	for {
		page, next, err := s.Store.Threads(ctx, of.Tenant, of.ID, f)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if f.Cursor = next; next == "" {
			return all, nil
		}
	}
}

// free ends the sandboxes that ended threads had to themselves.
func (s *Service) free(ctx context.Context, p *tenant.Principal, of *session.Session, ended []session.Thread) {
	for i := range ended {
		s.endTurn(ctx, p, of, "", run.SandboxOf(run.OfThread(ended[i].ID)))
	}
}
