package session

import (
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// The endpoints below are for other forms of the same sessions.

// Find returns the session that the path names.
func (h *Handlers) Find(c *httpapi.Call) (*session.Session, error) { return h.find(c) }

// Make begins a session.
func (h *Handlers) Make(c *httpapi.Call, in *NewSession) (*session.Session, error) {
	out, err := h.create(c, in)
	if err != nil {
		return nil, err
	}
	return h.Store.Get(c.Context(), c.Caller.Tenant.ID, session.ID(out.ID))
}

// Change changes what is said of the session that the path names.
func (h *Handlers) Change(c *httpapi.Call, in *SessionChange) (*session.Session, error) {
	if _, err := h.update(c, in); err != nil {
		return nil, err
	}
	return h.find(c)
}

// End archives the session that the path names.
func (h *Handlers) End(c *httpapi.Call) (*session.Session, error) {
	if _, err := h.archive(c); err != nil {
		return nil, err
	}
	return h.find(c)
}

// Remove deletes the session that the path names.
func (h *Handlers) Remove(c *httpapi.Call) error { return h.remove(c) }

// Undo deletes a session that was just made, and could not be used.
func (h *Handlers) Undo(c *httpapi.Call, s *session.Session) error {
	err := h.Store.Delete(c.Context(), s.Tenant, s.ID, event(c, s.ID, "deleted"))
	if err == nil {
		h.Turns.Leave(c, s)
	}
	return err
}
