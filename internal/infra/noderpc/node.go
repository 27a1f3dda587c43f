package noderpc

import (
	"context"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

func (c *Client) Ensure(ctx context.Context, grant *sandbox.Grant, session, name string, spec *sandbox.Spec) (sb *sandbox.Sandbox, created bool, err error) {
	err = c.node(ctx, "Ensure", args{grant, session, name, spec}, &sb, &created)
	return sb, created, err
}

func (c *Client) Use(ctx context.Context, grant *sandbox.Grant, session, nameOrID string) (sandbox.Handle, error) {
	return c.use(ctx, "Use", args{grant, session, nameOrID})
}

func (c *Client) Reach(ctx context.Context, id runtime.ID) (sandbox.Handle, error) {
	return c.use(ctx, "Reach", args{id})
}

// use opens a handle. The client chooses its number, so the call is safe to repeat.
func (c *Client) use(ctx context.Context, name string, in args) (sandbox.Handle, error) {
	h := &handle{c: c, id: c.newHandle(), granted: name == "Use", done: make(chan struct{})}
	s, err := c.open(ctx, method{name: name, safe: true}, append(in, h.id), &h.sb)
	if err == nil {
		s.close()
		err = c.opened(h, s.on.epoch)
	}
	if err != nil {
		if ctx.Err() != nil || isCut(err) {
			c.abandon(h.id)
		}
		return nil, err
	}
	return h, nil
}

func (c *Client) Get(ctx context.Context, grant *sandbox.Grant, session, nameOrID string) (sb *sandbox.Sandbox, err error) {
	err = c.node(ctx, "Get", args{grant, session, nameOrID}, &sb)
	return sb, err
}

func (c *Client) List(ctx context.Context, grant *sandbox.Grant, session string) (all []*sandbox.Sandbox, err error) {
	err = c.node(ctx, "List", args{grant, session}, &all)
	return all, err
}

func (c *Client) Usage(ctx context.Context, grant *sandbox.Grant, session, nameOrID string) (u sandbox.Usage, err error) {
	err = c.node(ctx, "Usage", args{grant, session, nameOrID}, &u)
	return u, err
}

func (c *Client) Update(ctx context.Context, grant *sandbox.Grant, session, nameOrID string, change sandbox.Change) (sb *sandbox.Sandbox, err error) {
	err = c.node(ctx, "Update", args{grant, session, nameOrID, change}, &sb)
	return sb, err
}

func (c *Client) Sleep(ctx context.Context, grant *sandbox.Grant, session, nameOrID string) (sb *sandbox.Sandbox, err error) {
	err = c.node(ctx, "Sleep", args{grant, session, nameOrID}, &sb)
	return sb, err
}

func (c *Client) Restart(ctx context.Context, grant *sandbox.Grant, session, nameOrID string) (sb *sandbox.Sandbox, err error) {
	err = c.node(ctx, "Restart", args{grant, session, nameOrID}, &sb)
	return sb, err
}

func (c *Client) Fork(ctx context.Context, grant *sandbox.Grant, session, nameOrID string, count int) (forks []*sandbox.Sandbox, err error) {
	err = c.node(ctx, "Fork", args{grant, session, nameOrID, count}, &forks)
	return forks, err
}

func (c *Client) Destroy(ctx context.Context, grant *sandbox.Grant, session, nameOrID string) (sb *sandbox.Sandbox, err error) {
	err = c.node(ctx, "Destroy", args{grant, session, nameOrID}, &sb)
	return sb, err
}

func (c *Client) Snapshot(ctx context.Context, grant *sandbox.Grant, session, nameOrID string, keep time.Duration) (sn *sandbox.Snapshot, err error) {
	err = c.node(ctx, "Snapshot", args{grant, session, nameOrID, keep}, &sn)
	return sn, err
}

func (c *Client) Orphans(ctx context.Context) (ids []runtime.ID, err error) {
	err = c.node(ctx, "Orphans", nil, &ids)
	return ids, err
}

func (c *Client) Reap(ctx context.Context) (ids []runtime.ID, err error) {
	err = c.node(ctx, "Reap", nil, &ids)
	return ids, err
}

// safe are the methods of a Node that the client may repeat after a cut.
var safe = []string{"Get", "List", "Usage", "Orphans", "Reap"}

func (c *Client) node(ctx context.Context, name string, in args, results ...any) error {
	return c.call(ctx, method{name: name, safe: slices.Contains(safe, name)}, in, results...)
}
