package atoll

import (
	"context"
	"net/http"
)

// Connections lists a tenant's connections.
func (c *Client) Connections(ctx context.Context, tenant string) ([]Connection, error) {
	return list[Connection](ctx, c, under(admin, "tenants", tenant, "connections"), nil, 0)
}

// Connection shows a connection.
func (c *Client) Connection(ctx context.Context, tenant, slug string) (Connection, error) {
	return call[Connection](ctx, c, http.MethodGet, under(admin, "tenants", tenant, "connections", slug), nil, nil)
}

// CreateConnection makes a connection.
func (c *Client) CreateConnection(ctx context.Context, tenant string, in NewConnection) (Connection, error) {
	return call[Connection](ctx, c, http.MethodPost, under(admin, "tenants", tenant, "connections"), nil, in)
}

// ChangeConnection changes a connection.
func (c *Client) ChangeConnection(ctx context.Context, tenant, slug string, in ConnectionChange) (Connection, error) {
	return call[Connection](ctx, c, http.MethodPatch, under(admin, "tenants", tenant, "connections", slug), nil, in)
}

// DeleteConnection removes a connection.
func (c *Client) DeleteConnection(ctx context.Context, tenant, slug string) error {
	return c.do(ctx, http.MethodDelete, under(admin, "tenants", tenant, "connections", slug), nil)
}

// Grants lists the grants of a connection.
func (c *Client) Grants(ctx context.Context, tenant, slug string) ([]Grant, error) {
	return list[Grant](ctx, c, under(admin, "tenants", tenant, "connections", slug, "grants"), nil, 0)
}

// CreateGrant lets an environment or a key mount a connection.
func (c *Client) CreateGrant(ctx context.Context, tenant, slug string, in NewGrant) (Grant, error) {
	return call[Grant](ctx, c, http.MethodPost, under(admin, "tenants", tenant, "connections", slug, "grants"), nil, in)
}

// DeleteGrant removes a grant.
func (c *Client) DeleteGrant(ctx context.Context, tenant, slug, id string) error {
	return c.do(ctx, http.MethodDelete, under(admin, "tenants", tenant, "connections", slug, "grants", id), nil)
}
