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
	p := place{c, sandbox.Default, c.Path(nameParam.Name)}
	if c.Has(sessionParam.Name) {
		p.session = c.Text(sessionParam.Name)
		if err := sandbox.CheckSession(p.session); err != nil { // also where an id makes it superfluous
			return p, err
		}
	}
	if c.Trail != nil {
		c.Trail.By(c.Caller, p.session, p.name)
		if sb, err := h.Sandboxes.Get(c.Context(), c.Caller, p.session, p.name); err == nil {
			c.Trail.On(sb)
		}
	}
	return p, nil
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
		return fault.Wrap(fault.Conflict, err, "the sandbox went away during the call, which may be done in part; GET "+sandboxesPath+"/"+string(u.Sandbox().ID)+" says whether it is there")
	}
	return err
}

// use runs f with the sandbox that a request is about, and returns its result.
func use[T any](ctx context.Context, h *Handlers, p place, f func(sandbox.Handle) (T, error)) (out T, err error) {
	err = h.within(ctx, p, func(u sandbox.Handle) (err error) {
		out, err = f(u)
		return err
	})
	return out, err
}
