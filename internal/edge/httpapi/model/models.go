// Package model serves the models that a tenant may name.
package model

import (
	"net/http"
	"slices"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Handlers serve models to any key, and the tenant's own keys for them to keys with the
// scope environments. Operators manage the own keys of all tenants.
type Handlers struct {
	Catalog *model.Catalog
	Tenants *tenant.Admin // required by operators
}

// ModelList is models as OpenAI's clients read them: all at once.
type ModelList struct {
	Object string      `json:"object" enum:"list"`
	Data   []ListModel `json:"data"`
}

// ListModel is a model as OpenAI's clients read it.
type ListModel struct {
	ID      string `json:"id" doc:"The name that requests give as model."`
	Object  string `json:"object" enum:"model"`
	Created int64  `json:"created" doc:"Unix seconds."`
	OwnedBy string `json:"owned_by" doc:"The part of the name before its first slash, or the wire protocol of the provider."`
}

// Operations returns the operations on models, and on tenants' own keys for models.
func (h *Handlers) Operations() []httpapi.Operation {
	return slices.Concat([]httpapi.Operation{
		{
			Method: http.MethodGet, Path: "/v1/models", ID: "listModels", Tag: "models", Summary: "List the models that the tenant may name", Description: "In the form of OpenAI's list. Models that other tenants alone may use are omitted.", Access: httpapi.AnyKey,
			Answers: []httpapi.Answer{httpapi.OK(ModelList{}, "All of them, those made first first.")}, Serve: httpapi.Returns(h.list),
		},
		{
			Method: http.MethodGet, Path: "/v1/models/{model...}", ID: "retrieveModel", Tag: "models", Summary: "Show a model that the tenant may name", Description: "In the form of OpenAI's models. A model of another tenant alone is answered as unknown.", Access: httpapi.AnyKey,
			Params:  []httpapi.Param{{Name: "model", In: httpapi.InPath, Doc: "Name, in which slashes need not be encoded, or id."}},
			Answers: []httpapi.Answer{httpapi.OK(ListModel{}, "The model."), httpapi.Refusal(http.StatusNotFound, "not_found: the model does not exist, or the tenant may not use it.")},
			Serve:   httpapi.Returns(h.get),
		},
	}, h.keyOperations(), h.operatorOperations())
}

func (h *Handlers) list(c *httpapi.Call) (ModelList, error) {
	out := ModelList{Object: "list", Data: []ListModel{}}
	all, err := h.Catalog.Of(c.Context(), c.Caller.Tenant.ID)
	for i := range all {
		out.Data = append(out.Data, modelOf(&all[i]))
	}
	return out, err
}

func (h *Handlers) get(c *httpapi.Call) (ListModel, error) {
	name, err := named(c)
	if err != nil {
		return ListModel{}, err
	}
	r, err := h.Catalog.Show(c.Context(), c.Caller.Tenant.ID, name)
	return modelOf(&r), err
}

func modelOf(r *model.Record) ListModel {
	return ListModel{ID: r.Name, Object: "model", Created: r.CreatedAt.Unix(), OwnedBy: r.OwnedBy()}
}
