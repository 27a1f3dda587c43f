package session

import (
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// enter has a call made in an environment of the caller's tenant, by id or name.
func (h *Handlers) enter(c *httpapi.Call, environment string) error {
	if environment == "" || !tenant.Name.MatchString(environment) {
		return tenant.ErrNoEnvironment
	}
	caller := *c.Caller // others share what it points at
	if err := h.Enter(c.Context(), &caller, environment); err != nil {
		return err
	}
	c.Caller = &caller
	return nil
}

// EnterPool has a call made in the environment of the session of an agent that owns a pool of named
// sandboxes. It leaves a call about any other pool as it is.
func (h *Handlers) EnterPool(c *httpapi.Call, pool string) error {
	id := session.ID(pool)
	if !id.Valid() {
		return nil
	}
	s, err := h.Store.Get(c.Context(), c.Caller.Tenant.ID, id)
	switch {
	case err != nil && fault.KindOf(err) == fault.NotFound:
		return nil // callers choose the names of their own pools
	case err != nil:
		return err
	}
	return h.work(c, s)
}

// work has a call made in the environment of a session.
func (h *Handlers) work(c *httpapi.Call, s *session.Session) error {
	err := h.enter(c, s.Environment)
	switch fault.KindOf(err) {
	case fault.NotFound:
		return fault.New(fault.Conflict, "the environment of the session is deleted: begin another session")
	case fault.Forbidden:
		return session.ErrElsewhere
	}
	return err
}

// asks refuses an agent with MCP servers that the caller's environment does not allow.
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
