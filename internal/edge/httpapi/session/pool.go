package session

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Sandboxes are named sandboxes; a directory.Directory is.
type Sandboxes interface {
	List(ctx context.Context, p *tenant.Principal, session string) ([]*sandbox.Sandbox, error)
	Destroy(ctx context.Context, p *tenant.Principal, session, nameOrID string) error
}

// Own has a call made with the named sandboxes of a session, in its environment, and returns
// the agent that owns them. It is refused for a session that there is not, or that has ended.
func (h *Handlers) Own(c *httpapi.Call, id session.ID) (agent string, err error) {
	s, err := h.Store.Get(c.Context(), c.Caller.Tenant.ID, id)
	if err != nil {
		return "", err
	}
	if s.Archived() {
		return "", session.ErrArchived
	}
	return string(s.Agent), h.work(c, s)
}

// destroyTime bounds ending the sandboxes of a session while its caller waits.
const destroyTime = 20 * time.Second

// destroy ends the named sandboxes of a session that has ended. It is on record that they are to
// go: those that cannot be ended here their servers end.
func (h *Handlers) destroy(c *httpapi.Call, s *session.Session) {
	if h.Sandboxes == nil { // this server has none
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context()), destroyTime)
	defer cancel()
	caller := *c.Caller
	caller.Environment.ID = s.Environment
	all, err := h.Sandboxes.List(ctx, &caller, string(s.ID))
	for _, sb := range all {
		if e := h.Sandboxes.Destroy(ctx, &caller, string(s.ID), string(sb.ID)); e != nil && fault.KindOf(e) != fault.NotFound {
			err = e
		}
	}
	if err != nil {
		c.Log().WarnContext(ctx, "the sandboxes of a session stay for some seconds", "session", s.ID, "error", err)
	}
}
