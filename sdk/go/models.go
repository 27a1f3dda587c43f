package atoll

import (
	"context"
	"net/http"
)

// Models lists the models that the key's tenant may use.
func (c *Client) Models(ctx context.Context) (ModelList, error) {
	return call[ModelList](ctx, c, http.MethodGet, "/v1/models", nil, nil)
}

// AllModels lists all models of the server.
func (c *Client) AllModels() *Pager[Model] {
	return &Pager[Model]{c: c, path: under(admin, "models")}
}

// Model returns a model.
func (c *Client) Model(ctx context.Context, name string) (Model, error) {
	return call[Model](ctx, c, http.MethodGet, under(admin, "models", name), nil, nil)
}

// CreateModel creates a model.
func (c *Client) CreateModel(ctx context.Context, in NewModel) (Model, error) {
	return call[Model](ctx, c, http.MethodPost, under(admin, "models"), nil, in)
}

// ChangeModel changes a model.
func (c *Client) ChangeModel(ctx context.Context, name string, in ModelChange) (Model, error) {
	return call[Model](ctx, c, http.MethodPatch, under(admin, "models", name), nil, in)
}

// DeleteModel deletes a model.
func (c *Client) DeleteModel(ctx context.Context, name string) error {
	return c.do(ctx, http.MethodDelete, under(admin, "models", name), nil)
}

// ModelKeys lists the tenant's own keys for models, without the keys.
func (c *Client) ModelKeys() *Pager[ModelKey] {
	return &Pager[ModelKey]{c: c, path: "/v1/model-keys"}
}

// SetModelKey stores the tenant's own key for a model.
func (c *Client) SetModelKey(ctx context.Context, model, key string) (ModelKey, error) {
	return call[ModelKey](ctx, c, http.MethodPut, under("/v1/model-keys", model), nil, NewModelKey{Key: key})
}

// DeleteModelKey deletes the tenant's own key, so that the tenant uses the operator's key again.
func (c *Client) DeleteModelKey(ctx context.Context, model string) error {
	return c.do(ctx, http.MethodDelete, under("/v1/model-keys", model), nil)
}

// TenantModelKeys lists a tenant's own keys for models, without the keys.
func (c *Client) TenantModelKeys(tenant string) *Pager[ModelKey] {
	return &Pager[ModelKey]{c: c, path: under(admin, "tenants", tenant, "model-keys")}
}

// SetTenantModelKey stores a tenant's own key for a model.
func (c *Client) SetTenantModelKey(ctx context.Context, tenant, model, key string) (ModelKey, error) {
	return call[ModelKey](ctx, c, http.MethodPut, under(admin, "tenants", tenant, "model-keys", model), nil, NewModelKey{Key: key})
}

// DeleteTenantModelKey deletes a tenant's own key, so that the tenant uses the operator's key again.
func (c *Client) DeleteTenantModelKey(ctx context.Context, tenant, model string) error {
	return c.do(ctx, http.MethodDelete, under(admin, "tenants", tenant, "model-keys", model), nil)
}

// TestModel sends a prompt to a model. If the model does not answer, TestModel returns no error:
// the ModelTrial has the reason.
func (c *Client) TestModel(ctx context.Context, name string, in ModelTest) (ModelTrial, error) {
	return call[ModelTrial](ctx, c, http.MethodPost, under(admin, "models", name, "test"), nil, in)
}
