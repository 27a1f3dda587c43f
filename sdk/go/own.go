package atoll

import (
	"context"
	"net/http"
	"net/url"
)

// OwnEnvironments returns the environments of the key's tenant.
func (c *Client) OwnEnvironments() *Pager[OwnEnvironment] {
	return &Pager[OwnEnvironment]{c: c, path: "/v1/environments"}
}

// OwnEnvironment returns an environment of the key's tenant, by its id or name.
func (c *Client) OwnEnvironment(ctx context.Context, idOrName string) (OwnEnvironment, error) {
	return call[OwnEnvironment](ctx, c, http.MethodGet, under("/v1/environments", idOrName), nil, nil)
}

// CreateOwnEnvironment creates an environment of the key's tenant.
func (c *Client) CreateOwnEnvironment(ctx context.Context, in NewOwnEnvironment) (OwnEnvironment, error) {
	return call[OwnEnvironment](ctx, c, http.MethodPost, "/v1/environments", nil, in)
}

// ChangeOwnEnvironment changes an environment of the key's tenant.
func (c *Client) ChangeOwnEnvironment(ctx context.Context, idOrName string, in OwnEnvironmentChange) (OwnEnvironment, error) {
	return call[OwnEnvironment](ctx, c, http.MethodPatch, under("/v1/environments", idOrName), nil, in)
}

// DeleteOwnEnvironment deletes an environment of the key's tenant.
func (c *Client) DeleteOwnEnvironment(ctx context.Context, idOrName string) error {
	return c.do(ctx, http.MethodDelete, under("/v1/environments", idOrName), nil)
}

// OwnUsage returns the usage of the key's tenant; query has since and before.
func (c *Client) OwnUsage(ctx context.Context, query url.Values) (Usage, error) {
	return call[Usage](ctx, c, http.MethodGet, "/v1/usage", query, nil)
}

// OwnModel returns a model that the key's tenant may use.
func (c *Client) OwnModel(ctx context.Context, name string) (ListModel, error) {
	return call[ListModel](ctx, c, http.MethodGet, under("/v1/models", name), nil, nil)
}
