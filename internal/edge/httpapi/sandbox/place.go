package sandbox

import (
	"context"
	"errors"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// place is the sandbox that a request is about.
type place struct {
	*httpapi.Call
	session, name string
}

// place finds which sandbox is meant.
func (h *Handlers) place(c *httpapi.Call) (place, error) {
	session := sandbox.Default
	if c.Has(sessionParam.Name) {
		session = c.Text(sessionParam.Name)
		if err := sandbox.CheckSession(session); err != nil { // also where an id makes it superfluous
			return place{}, err
		}
		if err := h.enterPool(c, session); err != nil {
			return place{}, err
		}
	}
	return h.At(c, session, c.Named(session, c.Path(nameParam.Name))), nil
}

func (h *Handlers) enterPool(c *httpapi.Call, pool string) error {
	if h.EnterPool == nil {
		return nil
	}
	in, err := h.EnterPool(c.Context(), c.Caller, pool)
	if err == nil {
		c.Caller = in
	}
	return err
}

// find returns the record of the sandbox that a request is about, which is not woken.
func (h *Handlers) find(c *httpapi.Call) (*sandbox.Sandbox, error) {
	p, err := h.place(c)
	if err != nil {
		return nil, err
	}
	return h.Sandboxes.Get(c.Context(), c.Caller, p.session, p.name)
}

// Place is the sandbox of a request to a compatible API.
type Place = place

// At notes which sandbox a request is about.
func (h *Handlers) At(c *httpapi.Call, session, nameOrID string) Place {
	p := place{c, session, nameOrID}
	if c.Trail != nil {
		c.Trail.By(c.Caller, p.session, p.name)
		if sb, err := h.Sandboxes.Get(c.Context(), c.Caller, p.session, p.name); err == nil {
			c.Trail.On(sb)
		}
	}
	return p
}

// within runs f with the sandbox that a request is about, which it wakes if it sleeps.
func (h *Handlers) within(ctx context.Context, p place, f func(sandbox.Handle) error) error {
	u, err := h.Sandboxes.Use(ctx, p.Caller, p.session, p.name)
	if err != nil {
		return err
	}
	defer u.Close()
	p.Trail.On(u.Sandbox())
	p.Trail.Begin()
	err = f(u)
	if errors.Is(err, process.ErrGone) {
		if why := u.Stopped(ctx); why != nil {
			return why
		}
		return fault.Wrap(fault.Conflict, err, "the sandbox ended during the call, which may be partly done; GET "+sandboxesPath+"/"+string(u.Sandbox().ID)+" shows whether it still exists")
	}
	return err
}

// Within runs f with a sandbox, which it wakes if it sleeps.
func (h *Handlers) Within(ctx context.Context, p Place, f func(sandbox.Handle) error) error {
	return h.within(ctx, p, f)
}

// use runs f with the sandbox that a request is about, and returns its result.
func use[T any](ctx context.Context, h *Handlers, p place, f func(sandbox.Handle) (T, error)) (out T, err error) {
	err = h.within(ctx, p, func(u sandbox.Handle) (err error) {
		out, err = f(u)
		return err
	})
	return out, err
}
