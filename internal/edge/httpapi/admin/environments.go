package admin

import (
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

func (h *Handlers) createEnvironment(c *httpapi.Call, in *EnvironmentChange) (out Environment, err error) {
	name, err := c.NameIn("tenant")
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
	e, err := h.Environments.CreateIn(c.Context(), c.Caller.Key.ID, name, *in.Name, change)
	return builtOf(e), err
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
	e, restart, err := h.Environments.ChangeIn(c.Context(), name, environment, change)
	out = builtOf(e)
	out.SandboxesToRestart = restart
	return out, err
}

func (h *Handlers) deleteEnvironment(c *httpapi.Call) error {
	name, environment, err := inTenant(c, "environment")
	if err != nil {
		return err
	}
	return h.Tenants.DeleteEnvironment(c.Context(), c.Caller.Key.ID, name, environment)
}
