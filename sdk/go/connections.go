package atoll

import (
	"context"
	"net/http"
)

// Connections lists a tenant's connections.
func (c *Client) Connections(tenant string) *Pager[Connection] {
	return &Pager[Connection]{c: c, path: under(admin, "tenants", tenant, "connections")}
}

// Connection returns a connection.
func (c *Client) Connection(ctx context.Context, tenant, slug string) (Connection, error) {
	return call[Connection](ctx, c, http.MethodGet, under(admin, "tenants", tenant, "connections", slug), nil, nil)
}

// CreateConnection creates a connection.
func (c *Client) CreateConnection(ctx context.Context, tenant string, in NewConnection) (Connection, error) {
	return call[Connection](ctx, c, http.MethodPost, under(admin, "tenants", tenant, "connections"), nil, in)
}

// ChangeConnection changes a connection.
func (c *Client) ChangeConnection(ctx context.Context, tenant, slug string, in ConnectionChange) (Connection, error) {
	return call[Connection](ctx, c, http.MethodPatch, under(admin, "tenants", tenant, "connections", slug), nil, in)
}

// DeleteConnection deletes a connection.
func (c *Client) DeleteConnection(ctx context.Context, tenant, slug string) error {
	return c.do(ctx, http.MethodDelete, under(admin, "tenants", tenant, "connections", slug), nil)
}

// Grants lists the grants of a connection.
func (c *Client) Grants(tenant, slug string) *Pager[Grant] {
	return &Pager[Grant]{c: c, path: under(admin, "tenants", tenant, "connections", slug, "grants")}
}

// CreateGrant lets an environment or a key mount a connection.
func (c *Client) CreateGrant(ctx context.Context, tenant, slug string, in NewGrant) (Grant, error) {
	return call[Grant](ctx, c, http.MethodPost, under(admin, "tenants", tenant, "connections", slug, "grants"), nil, in)
}

// DeleteGrant deletes a grant.
func (c *Client) DeleteGrant(ctx context.Context, tenant, slug, id string) error {
	return c.do(ctx, http.MethodDelete, under(admin, "tenants", tenant, "connections", slug, "grants", id), nil)
}
