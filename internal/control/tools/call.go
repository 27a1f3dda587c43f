package tools

import (
	"context"
	"errors"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/storage"
)

// call is one call of a tool.
type call struct {
	set      *Set
	by       *Caller
	row      sandbox.Call // the call's audit row
	recorded bool         // the gateway writes the row
	begun    bool         // a sandbox was asked to do something
}

// record writes the audit row of a call that ended with err.
func (c *call) record(ctx context.Context, err error) error {
	if c.recorded {
		return nil
	}
	if !c.row.Ended(ctx, err, c.begun) {
		return nil
	}
	return c.set.cfg.Pool.Record(ctx, c.by.Principal, c.row)
}

// open is find, but creates the sandbox if the session has none of that name.
func (c *call) open(ctx context.Context, name string) (sandbox.Handle, error) {
	h, err := c.find(ctx, name)
	if err == nil || fault.KindOf(err) != fault.NotFound {
		return h, err
	}
	spec, err := c.spec(ctx)
	if err != nil {
		return nil, err
	}
	if _, _, err = c.set.cfg.Pool.Ensure(ctx, c.by.Principal, c.by.Session, name, spec); err != nil {
		return nil, err
	}
	return c.find(ctx, name)
}

// use runs f with a sandbox of the caller's session, and creates the sandbox if
// the session has none of that name.
func (c *call) use(ctx context.Context, name string, f func(h sandbox.Handle) error) error {
	h, err := c.open(ctx, name)
	if err != nil {
		return err
	}
	defer h.Close()
	if err := c.furnish(ctx, h); err != nil {
		return ended(ctx, h, err)
	}
	c.begun = true
	return ended(ctx, h, f(h))
}

// furnish gives a sandbox the mounts of the caller's session and the folders of its skills.
func (c *call) furnish(ctx context.Context, h sandbox.Handle) error {
	if err := c.fill(ctx, h); err != nil {
		return err
	}
	return c.equip(ctx, h)
}

// Open returns a handle to a sandbox of a caller's session, and creates the sandbox if the session
// has none of that name. As for the tools, it has the session's mounts. The caller must close
// the handle.
func (s *Set) Open(ctx context.Context, by *Caller, name string) (sandbox.Handle, error) {
	if err := by.check(); err != nil {
		return nil, err
	}
	c := &call{set: s, by: by}
	h, err := c.open(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := c.furnish(ctx, h); err != nil {
		err = ended(ctx, h, err)
		h.Close()
		return nil, err
	}
	return h, nil
}

// find returns a handle to a sandbox of the caller's session. Tools accept no ids,
// because preview URLs reveal the ids of other sessions' sandboxes.
func (c *call) find(ctx context.Context, name string) (sandbox.Handle, error) {
	if err := sandbox.CheckName(name); err != nil {
		return nil, err
	}
	h, err := c.set.cfg.Pool.Use(ctx, c.by.Principal, c.by.Session, name)
	if err == nil {
		c.row.SetSandbox(h.Sandbox())
		c.row.Mounts = append(c.row.Mounts, storage.Labels(h.Sandbox().Mounts)...)
	}
	return h, err
}

// ended returns the error of a call whose sandbox ended during the call.
func ended(ctx context.Context, h sandbox.Handle, err error) error {
	if errors.Is(err, process.ErrGone) {
		if why := h.Stopped(ctx); why != nil {
			return why
		}
		return fault.Wrap(fault.Conflict, err, "the sandbox ended during the call, which may be partly done; call sandbox_list to see whether it still exists")
	}
	return err
}
