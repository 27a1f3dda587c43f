package admin

import (
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
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
		return "", model.ErrNotFound
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
	r, err := h.Models.Create(c.Context(), c.Caller.Key.ID, *in.Name, *in.Provider, change)
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
