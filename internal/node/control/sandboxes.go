package control

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/remote/control"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Records implements sandbox.Records for the executor of the Client.
type Records struct{ *Client }

var _ sandbox.Records = Records{}

// placed returns a message about a sandbox for a grant.
func (c *Client) placed(g *sandbox.Grant, s *sandbox.Sandbox) control.Placed {
	in := control.Placed{Pass: c.pass(g), Sandbox: *s}
	in.Sandbox.Endings = nil
	return in
}

// Create implements sandbox.Records.
func (r Records) Create(ctx context.Context, grant *sandbox.Grant, s *sandbox.Sandbox) (*sandbox.Sandbox, error) {
	out, err := repeat(ctx, r.Client, control.CreateSandbox, r.placed(grant, s))
	if err != nil || out.There != nil {
		return out.There, err
	}
	s.CreatedAt, s.UsedAt, s.MeteredAt = out.At, out.At, out.At
	return nil, nil
}

// Wake implements sandbox.Records.
func (r Records) Wake(ctx context.Context, grant *sandbox.Grant, s *sandbox.Sandbox) error {
	in := r.placed(grant, s)
	in.Sandbox.Env = nil // does not change
	return done(repeat(ctx, r.Client, control.WakeSandbox, in))
}

// Save implements sandbox.Records.
func (r Records) Save(ctx context.Context, s *sandbox.Sandbox) error {
	in := *s
	in.Env, in.Endings = nil, nil // Save does not record them
	return done(repeat(ctx, r.Client, control.SaveSandbox, in))
}

// SaveEndings implements sandbox.Records.
func (r Records) SaveEndings(ctx context.Context, id runtime.ID, endings []sandbox.Ending) error {
	return done(repeat(ctx, r.Client, control.SaveEndings, control.Endings{ID: id, Endings: endings}))
}

// Delete implements sandbox.Records.
func (r Records) Delete(ctx context.Context, id runtime.ID) error {
	return done(repeat(ctx, r.Client, control.DeleteSandbox, id))
}

// CheckBudget implements sandbox.Records.
func (r Records) CheckBudget(ctx context.Context, tenantID tenant.ID) error {
	return done(repeat(ctx, r.Client, control.CheckBudget, tenantID))
}

// Get implements sandbox.Records. It finds sandboxes of this executor only.
func (r Records) Get(ctx context.Context, tenantID tenant.ID, id runtime.ID) (*sandbox.Sandbox, error) {
	sb, err := repeat(ctx, r.Client, control.GetSandbox, control.Ref{Tenant: tenantID, ID: id})
	if err == nil && sb == nil {
		err = sandbox.ErrNotFound
	}
	return sb, err
}

// ListByExecutor implements sandbox.Records. It lists the sandboxes of this executor, whatever the
// argument, and waits for a gateway until ctx ends.
func (r Records) ListByExecutor(ctx context.Context, _ string) ([]*sandbox.Sandbox, error) {
	return await(ctx, r.Client, control.ListSandboxes, none)
}

// ListWithoutEnvironment implements sandbox.Records. It lists the sandboxes of this executor, whatever
// the argument.
func (r Records) ListWithoutEnvironment(ctx context.Context, _ string) ([]runtime.ID, error) {
	return repeat(ctx, r.Client, control.ListWithoutEnv, none)
}

// Ledger implements sandbox.Ledger for the executor of the Client.
type Ledger struct{ *Client }

var _ sandbox.Ledger = Ledger{}

func refOf(s *sandbox.Sandbox) control.Ref { return control.Ref{Tenant: s.Tenant, ID: s.ID} }

// Charge implements sandbox.Ledger. The gateway charges from the time in its record.
func (l Ledger) Charge(ctx context.Context, s *sandbox.Sandbox, until time.Time, bytesOut int64) error {
	return done(repeat(ctx, l.Client, control.ChargeSandbox, control.Use{Sandbox: refOf(s), Until: until, BytesOut: bytesOut}))
}

// Contacted implements sandbox.Ledger. It is not repeated: each call leaves an audit row.
func (l Ledger) Contacted(ctx context.Context, s *sandbox.Sandbox, until time.Time, hosts []string) error {
	return done(control.RecordContacts.Do(ctx, l.cfg.Gateways, control.Contacts{Sandbox: refOf(s), From: s.MeteredAt, Until: until, Hosts: hosts}))
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
