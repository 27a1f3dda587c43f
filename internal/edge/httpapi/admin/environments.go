package admin

import "github.com/atoll-run/atoll/internal/edge/httpapi"

func (h *Handlers) createEnvironment(c *httpapi.Call, in *EnvironmentChange) (out Environment, err error) {
	name, err := named(c, "tenant")
	if err != nil {
		return out, err
	}
	if in.Name == nil {
		return out, httpapi.Invalid("name is required")
	}
	change, err := in.domain()
	if err != nil {
		return out, err
	}
	e, err := h.Tenants.CreateEnvironment(c.Context(), name, *in.Name, change)
	return environmentOf(e), err
}

func (h *Handlers) changeEnvironment(c *httpapi.Call, in *EnvironmentChange) (out Environment, err error) {
	name, environment, err := inTenant(c, "environment")
	if err != nil {
		return out, err
	}
	change, err := in.domain()
	if err != nil {
		return out, err
	}
	e, err := h.Tenants.ChangeEnvironment(c.Context(), name, environment, change)
	return environmentOf(e), err
}
