package model

import (
	"context"
	"net/http"
	"time"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// ModelKey is a tenant's own key for a model: all but the key.
type ModelKey struct {
	Model     string    `json:"model" doc:"The model's name; its id if the model was deleted."`
	BaseURL   string    `json:"base_url" doc:"The provider's API that the key was given for; it is sent to no other."`
	InUse     bool      `json:"in_use" doc:"false if the model's base URL has changed, in which case Atoll rejects requests until you set or remove the key, or if the tenant may no longer use the model."`
	CreatedAt time.Time `json:"created_at"`
}

// NewModelKey is the body that gives a key.
type NewModelKey struct {
	Key *string `json:"key" required:"true" minLength:"1" maxLength:"8192" doc:"The tenant's own, for the model's provider. It is stored encrypted and never shown."`
}

func keyOf(k model.OwnKeyState) ModelKey { return ModelKey{k.Name, k.BaseURL, k.InUse, k.CreatedAt} }

// keyOperations are those of /v1/model-keys.
func (h *Handlers) keyOperations() []httpapi.Operation {
	own := func(c *httpapi.Call) (tenant.ID, error) { return c.Caller.Tenant.ID, nil }
	name := []httpapi.Param{{Name: "model", In: httpapi.InPath, Doc: "Name, in which slashes need not be encoded, or id."}}
	unknown := httpapi.Refusal(http.StatusNotFound, "not_found: the model does not exist, or the tenant may not use it or has not set a key for it.")
	ops := []httpapi.Operation{
		{
			Method: http.MethodGet, Path: "/v1/model-keys", ID: "listModelKeys", Summary: "List the tenant's own keys for models, without the keys", Description: "For which models the tenant pays the provider itself. No answer shows a key.", Params: httpapi.PageParams(50, 100),
			Answers: []httpapi.Answer{httpapi.OK(httpapi.Page[ModelKey]{}, "A page.")}, Serve: httpapi.Returns(h.listKeys(own)),
		},
		{
			Method: http.MethodPut, Path: "/v1/model-keys/{model...}", ID: "putModelKey", Summary: "Use a model with the tenant's own key instead of the operator's", Description: "The provider then bills the tenant, and requests cost nothing here. The key is stored encrypted and never shown. If the model's `base_url` changes later, requests return 409 until you set the key again or delete it.", Params: name,
			Body:    httpapi.JSON(NewModelKey{Key: new("sk-ours")}),
			Answers: []httpapi.Answer{httpapi.OK(ModelKey{}, "Requests have it from now on."), unknown}, Serve: httpapi.Takes(h.putKey(own)),
		},
		{
			Method: http.MethodDelete, Path: "/v1/model-keys/{model...}", ID: "deleteModelKey", Summary: "Use a model with the operator's key again", Description: "The provider bills the operator again, and the tenant's budgets are charged.", Params: name,
			Answers: []httpapi.Answer{httpapi.NoContent("It is deleted."), unknown}, Serve: httpapi.Does(h.deleteKey(own)),
		},
	}
	for i := range ops {
		ops[i].Tag, ops[i].Scope = "models", tenant.ScopeEnvironments
	}
	return ops
}

// operatorOperations returns an operator's operations on the model keys of the tenant in the path.
func (h *Handlers) operatorOperations() []httpapi.Operation {
	const all, one = "/v1/admin/tenants/{tenant}/model-keys", "/v1/admin/tenants/{tenant}/model-keys/{model}"
	return httpapi.ForOperators(
		httpapi.Operation{
			Method: http.MethodGet, Path: all, ID: "listTenantModelKeys", Summary: "List a tenant's own keys for models, without the keys", Description: "For which models the tenant pays its provider itself, and since when.", Params: httpapi.PageParams(50, 100),
			Answers: []httpapi.Answer{httpapi.OK(httpapi.Page[ModelKey]{}, "OK")}, Serve: httpapi.Returns(h.listKeys(inPath(h.Tenants.Tenant))),
		},
		httpapi.Operation{
			Method: http.MethodPut, Path: one, ID: "putTenantModelKey", Summary: "Set a tenant's own key for a model", Description: "The provider then bills the tenant, and requests cost nothing here. The key is stored encrypted, bound to the tenant and to the `base_url` that the model has now, and never shown.",
			Body:    httpapi.JSON(NewModelKey{Key: new("sk-of-acme")}),
			Answers: []httpapi.Answer{httpapi.OK(ModelKey{}, "OK")}, Serve: httpapi.Takes(h.putKey(inPath(h.Tenants.Changeable))),
		},
		httpapi.Operation{
			Method: http.MethodDelete, Path: one, ID: "deleteTenantModelKey", Summary: "Remove a tenant's own key, so that the model uses the operator's key again", Description: "The provider bills the operator again, and the tenant's budgets are charged.",
			Answers: []httpapi.Answer{httpapi.NoContent("No Content")}, Serve: httpapi.Does(h.deleteKey(inPath(h.Tenants.Tenant))),
		},
	)
}

// owner returns the tenant whose keys a call is about.
type owner func(c *httpapi.Call) (tenant.ID, error)

// inPath is the owner in the path.
func inPath(find func(ctx context.Context, idOrName string) (tenant.Tenant, error)) owner {
	return func(c *httpapi.Call) (tenant.ID, error) {
		t, err := c.Tenant(find)
		return t.ID, err
	}
}

// named returns the model in the path, whose name may have slashes.
func named(c *httpapi.Call) (string, error) {
	name := c.Path("model")
	if !model.CanName(name) {
		return "", model.ErrNotFound
	}
	return name, nil
}

func (h *Handlers) listKeys(of owner) func(*httpapi.Call) (httpapi.Page[ModelKey], error) {
	return func(c *httpapi.Call) (out httpapi.Page[ModelKey], err error) {
		id, err := of(c)
		if err != nil {
			return out, err
		}
		all, err := h.Catalog.OwnKeys(c.Context(), id)
		if err != nil {
			return out, err
		}
		return httpapi.PageOf(c, all, func(k model.OwnKeyState) string { return k.ID }, keyOf)
	}
}

func (h *Handlers) putKey(of owner) func(*httpapi.Call, *NewModelKey) (ModelKey, error) {
	return func(c *httpapi.Call, in *NewModelKey) (out ModelKey, err error) {
		name, err := named(c)
		if err != nil {
			return out, err
		}
		id, err := of(c)
		if err != nil {
			return out, err
		}
		k, err := h.Catalog.SetOwnKey(c.Context(), c.Caller.Key.ID, id, name, *in.Key)
		return keyOf(k), err
	}
}

func (h *Handlers) deleteKey(of owner) func(*httpapi.Call) error {
	return func(c *httpapi.Call) error {
		name, err := named(c)
		if err != nil {
			return err
		}
		id, err := of(c)
		if err != nil {
			return err
		}
		return h.Catalog.RemoveOwnKey(c.Context(), c.Caller.Key.ID, id, name)
	}
}
