package atoll

import (
	"context"
	"net/http"
)

// Environments lists a tenant's environments.
func (c *Client) Environments(tenant string) *Pager[Environment] {
	return &Pager[Environment]{c: c, path: under(admin, "tenants", tenant, "environments")}
}

// Environment returns an environment.
func (c *Client) Environment(ctx context.Context, tenant, name string) (Environment, error) {
	return call[Environment](ctx, c, http.MethodGet, under(admin, "tenants", tenant, "environments", name), nil, nil)
}

// CreateEnvironment creates an environment.
func (c *Client) CreateEnvironment(ctx context.Context, tenant string, in EnvironmentChange) (Environment, error) {
	return call[Environment](ctx, c, http.MethodPost, under(admin, "tenants", tenant, "environments"), nil, in)
}

// ChangeEnvironment changes an environment.
func (c *Client) ChangeEnvironment(ctx context.Context, tenant, name string, in EnvironmentChange) (Environment, error) {
	return call[Environment](ctx, c, http.MethodPatch, under(admin, "tenants", tenant, "environments", name), nil, in)
}

// DeleteEnvironment deletes an environment.
func (c *Client) DeleteEnvironment(ctx context.Context, tenant, name string) error {
	return c.do(ctx, http.MethodDelete, under(admin, "tenants", tenant, "environments", name), nil)
}

// Keys lists a tenant's keys.
func (c *Client) Keys(tenant string) *Pager[Key] {
	return &Pager[Key]{c: c, path: under(admin, "tenants", tenant, "keys")}
}

// Key returns a key's record.
func (c *Client) Key(ctx context.Context, tenant, name string) (Key, error) {
	return call[Key](ctx, c, http.MethodGet, under(admin, "tenants", tenant, "keys", name), nil, nil)
}

// CreateKey creates a key. Only its answer contains the secret key.
func (c *Client) CreateKey(ctx context.Context, tenant string, in NewKey) (Key, error) {
	return call[Key](ctx, c, http.MethodPost, under(admin, "tenants", tenant, "keys"), nil, in)
}

// ChangeKey changes a key.
func (c *Client) ChangeKey(ctx context.Context, tenant, name string, in KeyChange) (Key, error) {
	return call[Key](ctx, c, http.MethodPatch, under(admin, "tenants", tenant, "keys", name), nil, in)
}

// RevokeKey revokes a key.
func (c *Client) RevokeKey(ctx context.Context, tenant, name string) (Key, error) {
	return call[Key](ctx, c, http.MethodDelete, under(admin, "tenants", tenant, "keys", name), nil, nil)
}
