package sandbox

import (
	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// ref finds which sandbox a request is about.
func (h *Handlers) ref(c *httpapi.Call) (sandboxes.Ref, error) {
	return h.Service.Locate(c.Context(), c.Caller, c.Trail, given(c, sessionParam.Name), c.Path(nameParam.Name))
}

// given returns a parameter of the query; nil if it was omitted.
func given(c *httpapi.Call, name string) *string {
	if !c.Has(name) {
		return nil
	}
	return new(c.Text(name))
}

// use runs f with the sandbox that a request is about, and returns its result.
func use[T any](c *httpapi.Call, h *Handlers, f func(*sandboxes.Use) (T, error)) (out T, err error) {
	r, err := h.ref(c)
	if err != nil {
		return out, err
	}
	return sandboxes.With(c.Context(), h.Service, r, f)
}
