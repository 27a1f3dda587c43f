package admin

import (
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	modelapi "github.com/atoll-run/atoll/internal/edge/httpapi/model"
)

// What a test asks if nothing is said.
const (
	testPrompt = "Answer with the one word: ready"
	testOutput = 2048 // tokens; some models think before they say anything
)

// namedModel returns the model in the path, whose name may have slashes.
func namedModel(c *httpapi.Call) (string, error) {
	name := c.Path("model")
	if !model.CanName(name) {
		return "", fault.New(fault.NotFound, "model not found")
	}
	return name, nil
}

func (h *Handlers) listModels(c *httpapi.Call) (out httpapi.Page[Model], err error) {
	all, err := h.Models.Models(c.Context())
	if err != nil {
		return out, err
	}
	return httpapi.PageOf(c, all, func(r model.Record) string { return r.ID }, modelOf)
}

func (h *Handlers) createModel(c *httpapi.Call, in *NewModel) (out Model, err error) {
	change, err := in.domain()
	if err != nil {
		return out, err
	}
	r, err := h.Models.Create(c.Context(), c.Caller.Key.ID, *in.Name, model.Provider(*in.Provider), change)
	return modelOf(r), err
}

func (h *Handlers) getModel(c *httpapi.Call) (out Model, err error) {
	name, err := namedModel(c)
	if err != nil {
		return out, err
	}
	r, err := h.Models.Model(c.Context(), name)
	return modelOf(r), err
}

func (h *Handlers) changeModel(c *httpapi.Call, in *ModelChange) (out Model, err error) {
	name, err := namedModel(c)
	if err != nil {
		return out, err
	}
	change, err := in.domain()
	if err != nil {
		return out, err
	}
	r, err := h.Models.Update(c.Context(), c.Caller.Key.ID, name, change)
	return modelOf(r), err
}

func (h *Handlers) deleteModel(c *httpapi.Call) error {
	name, err := namedModel(c)
	if err != nil {
		return err
	}
	return h.Models.Delete(c.Context(), c.Caller.Key.ID, name)
}

// keyModel returns the tenant and the model in the path.
func (h *Handlers) keyModel(c *httpapi.Call) (id tenant.ID, name string, err error) {
	if name, err = namedModel(c); err != nil {
		return "", "", err
	}
	id, err = h.keyTenant(c)
	return id, name, err
}

func (h *Handlers) keyTenant(c *httpapi.Call) (tenant.ID, error) {
	name, err := named(c, "tenant")
	if err != nil {
		return "", err
	}
	t, err := h.Tenants.Tenant(c.Context(), name)
	return t.ID, err
}

func (h *Handlers) listModelKeys(c *httpapi.Call) (out httpapi.Page[modelapi.ModelKey], err error) {
	id, err := h.keyTenant(c)
	if err != nil {
		return out, err
	}
	all, err := h.Models.OwnKeys(c.Context(), id)
	if err != nil {
		return out, err
	}
	return modelapi.PageOfKeys(c, all)
}

func (h *Handlers) putModelKey(c *httpapi.Call, in *modelapi.NewModelKey) (out modelapi.ModelKey, err error) {
	id, name, err := h.keyModel(c)
	if err != nil {
		return out, err
	}
	if _, err := h.Tenants.Changeable(c.Context(), id); err != nil {
		return out, err
	}
	k, err := h.Models.SetOwnKey(c.Context(), c.Caller.Key.ID, id, name, *in.Key)
	return modelapi.KeyOf(k), err
}

func (h *Handlers) deleteModelKey(c *httpapi.Call) error {
	id, name, err := h.keyModel(c)
	if err != nil {
		return err
	}
	return h.Models.RemoveOwnKey(c.Context(), c.Caller.Key.ID, id, name)
}

func (h *Handlers) testModel(c *httpapi.Call, in *ModelTest) (out ModelTrial, err error) {
	name, err := namedModel(c)
	if err != nil {
		return out, err
	}
	prompt, most := testPrompt, testOutput
	assign(&prompt, in.Prompt)
	assign(&most, in.MaxOutputTokens)
	t, err := h.Models.Try(c.Context(), name, prompt, most)
	return trialOf(&t), err
}
