package control

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/remote/control"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Records are the records that gateways have of the sandboxes of the Client's executor. Its methods are
// the methods of sandbox.Records that need a gateway.
type Records struct{ *Client }

// placed returns a message about a sandbox for a grant.
func (c *Client) placed(g *sandbox.Grant, s *sandbox.Sandbox) control.Placed {
	in := control.Placed{Pass: c.pass(g), Sandbox: *s}
	in.Sandbox.Endings = nil
	return in
}

// Create is as in sandbox.Records.
func (r Records) Create(ctx context.Context, grant *sandbox.Grant, s *sandbox.Sandbox) (*sandbox.Sandbox, error) {
	out, err := repeat(ctx, r.Client, control.CreateSandbox, r.placed(grant, s))
	if err != nil || out.There != nil {
		return out.There, err
	}
	s.CreatedAt, s.UsedAt, s.MeteredAt = out.At, out.At, out.At
	return nil, nil
}

// Wake is as in sandbox.Records.
func (r Records) Wake(ctx context.Context, grant *sandbox.Grant, s *sandbox.Sandbox) error {
	in := r.placed(grant, s)
	in.Sandbox.Env = nil // Wake does not change it
	return done(repeat(ctx, r.Client, control.WakeSandbox, in))
}

// Delete is as in sandbox.Records.
func (r Records) Delete(ctx context.Context, id runtime.ID) error {
	return done(repeat(ctx, r.Client, control.DeleteSandbox, id))
}

// CheckBudget is as in sandbox.Records.
func (r Records) CheckBudget(ctx context.Context, tenantID tenant.ID) error {
	return done(repeat(ctx, r.Client, control.CheckBudget, tenantID))
}

// Get is as in sandbox.Records. It finds sandboxes of this executor only.
func (r Records) Get(ctx context.Context, tenantID tenant.ID, id runtime.ID) (*sandbox.Sandbox, error) {
	sb, err := repeat(ctx, r.Client, control.GetSandbox, control.Ref{Tenant: tenantID, ID: id})
	if err == nil && sb == nil {
		err = sandbox.ErrNotFound
	}
	return sb, err
}

// ListByExecutor is as in sandbox.Records. It lists the sandboxes of this executor, whatever the
// argument, and waits for a gateway until ctx ends.
func (r Records) ListByExecutor(ctx context.Context, _ string) ([]*sandbox.Sandbox, error) {
	return await(ctx, r.Client, control.ListSandboxes, none)
}

// ListWithoutEnvironment is as in sandbox.Records. It lists the sandboxes of this executor, whatever
// the argument.
func (r Records) ListWithoutEnvironment(ctx context.Context, _ string) ([]runtime.ID, error) {
	return repeat(ctx, r.Client, control.ListWithoutEnv, none)
}

var _ sandbox.Grants = (*Client)(nil)

// Grant implements sandbox.Grants.
func (c *Client) Grant(ctx context.Context, tenantID tenant.ID, key, environment string) (*sandbox.Grant, error) {
	g, err := repeat(ctx, c, control.RenewGrant, c.passes.find(tenantID, environment, key))
	if err != nil {
		return nil, err
	}
	if g == nil || g.Tenant != tenantID || g.Environment != environment {
		return nil, sandbox.ErrNoValidKey
	}
	c.passes.note(g.Pass())
	return g, nil
}
