package conversation

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// enter returns a principal in an environment of its tenant, by id or name.
func (s *Service) enter(ctx context.Context, p *tenant.Principal, environment string) (*tenant.Principal, error) {
	if environment == "" || !tenant.Name.MatchString(environment) {
		return nil, tenant.ErrNoEnvironment
	}
	in := *p // others share p
	if err := s.Enter(ctx, &in, environment); err != nil {
		return nil, err
	}
	return &in, nil
}

// EnterPool returns a principal in the environment of the session that owns a pool of named sandboxes.
// It returns p for a pool of another owner.
func (s *Service) EnterPool(ctx context.Context, p *tenant.Principal, pool string) (*tenant.Principal, error) {
	id := session.ID(pool)
	if !id.Valid() {
		return p, nil
	}
	of, err := s.Store.Get(ctx, p.Tenant.ID, id)
	switch {
	case err != nil && fault.KindOf(err) == fault.NotFound:
		return p, nil // callers choose the names of their own pools
	case err != nil:
		return nil, err
	}
	return s.work(ctx, p, of)
}

// Own returns a principal in the environment of a session, and the agent that owns the session's named
// sandboxes. Unknown and archived sessions are errors.
func (s *Service) Own(ctx context.Context, p *tenant.Principal, id session.ID) (in *tenant.Principal, agent string, err error) {
	of, err := s.Store.Get(ctx, p.Tenant.ID, id)
	if err != nil {
		return nil, "", err
	}
	if of.Archived() {
		return nil, "", session.ErrArchived
	}
	in, err = s.work(ctx, p, of)
	return in, string(of.Agent), err
}

// work returns a principal in the environment of a session.
func (s *Service) work(ctx context.Context, p *tenant.Principal, of *session.Session) (*tenant.Principal, error) {
	in, err := s.enter(ctx, p, of.Environment)
	switch fault.KindOf(err) {
	case fault.NotFound:
		return nil, fault.New(fault.Conflict, "the environment of the session is deleted: begin another session")
	case fault.Forbidden:
		return nil, session.ErrElsewhere
	}
	return in, err
}

// asks rejects an agent with MCP servers that the caller's environment does not allow.
func (r *rule) asks(p *tenant.Principal) error {
	d := r.own
	for i := range d.Tools {
		server := d.Server(d.Tools[i].Server)
		if d.Tools[i].Type != agent.MCP || server == nil || r.excludes(server) {
			continue
		}
		err := p.Asks(server.URL)
		if server.Command != "" {
			err = p.Starts()
		}
		if err != nil {
			return err
		}
	}
	return nil
}
