package atoll

import (
	"context"
	"net/http"
	"net/url"
)

const admin = "/v1/admin"

// Tenants lists tenants.
func (c *Client) Tenants() *Pager[Tenant] {
	return &Pager[Tenant]{c: c, path: under(admin, "tenants")}
}

// Tenant returns a tenant.
func (c *Client) Tenant(ctx context.Context, tenant string) (Tenant, error) {
	return call[Tenant](ctx, c, http.MethodGet, under(admin, "tenants", tenant), nil, nil)
}

// CreateTenant creates a tenant.
func (c *Client) CreateTenant(ctx context.Context, in NewTenant) (Tenant, error) {
	return call[Tenant](ctx, c, http.MethodPost, under(admin, "tenants"), nil, in)
}

// ChangeTenant changes a tenant.
func (c *Client) ChangeTenant(ctx context.Context, tenant string, in TenantChange) (Tenant, error) {
	return call[Tenant](ctx, c, http.MethodPatch, under(admin, "tenants", tenant), nil, in)
}

// DeleteTenant starts the deletion of a tenant with all its data. The server completes it after the
// answer; until then, Tenant returns the tenant with DeletedAt.
func (c *Client) DeleteTenant(ctx context.Context, tenant string) (Tenant, error) {
	return call[Tenant](ctx, c, http.MethodDelete, under(admin, "tenants", tenant), nil, nil)
}

// PolicyEvents lists the changes to a tenant's policy.
func (c *Client) PolicyEvents(tenant string) *Pager[PolicyEvent] {
	return &Pager[PolicyEvent]{c: c, path: under(admin, "tenants", tenant, "policy-events")}
}

// Templates lists a tenant's templates.
func (c *Client) Templates(tenant string) *Pager[Template] {
	return &Pager[Template]{c: c, path: under(admin, "tenants", tenant, "templates")}
}

// Template returns a template.
func (c *Client) Template(ctx context.Context, tenant, name string) (Template, error) {
	return call[Template](ctx, c, http.MethodGet, under(admin, "tenants", tenant, "templates", name), nil, nil)
}

// PutTemplate creates or replaces a template.
func (c *Client) PutTemplate(ctx context.Context, tenant, name string, in TemplateChange) (Template, error) {
	return call[Template](ctx, c, http.MethodPut, under(admin, "tenants", tenant, "templates", name), nil, in)
}

// DeleteTemplate deletes a template.
func (c *Client) DeleteTemplate(ctx context.Context, tenant, name string) error {
	return c.do(ctx, http.MethodDelete, under(admin, "tenants", tenant, "templates", name), nil)
}

// Caps returns the server's caps of execute_code.
func (c *Client) Caps(ctx context.Context) (Caps, error) {
	return call[Caps](ctx, c, http.MethodGet, under(admin, "caps"), nil, nil)
}

// ChangeCaps changes the server's caps of execute_code.
func (c *Client) ChangeCaps(ctx context.Context, in CapsChange) (Caps, error) {
	return call[Caps](ctx, c, http.MethodPatch, under(admin, "caps"), nil, in)
}

// Usage returns the usage of a tenant.
func (c *Client) Usage(ctx context.Context, tenant string, query url.Values) (Usage, error) {
	return call[Usage](ctx, c, http.MethodGet, under(admin, "tenants", tenant, "usage"), query, nil)
}

// Redeliver delivers an execution's webhook again.
func (c *Client) Redeliver(ctx context.Context, tenant, traceID string) (Redelivery, error) {
	return call[Redelivery](ctx, c, http.MethodPost, under(admin, "tenants", tenant, "executions", traceID, "webhook"), nil, nil)
}
