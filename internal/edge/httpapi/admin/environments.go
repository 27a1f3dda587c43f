package admin

import (
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/edge/httpapi/environment"
)

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
	e, err := h.Tenants.CreateEnvironment(c.Context(), c.Caller.Key.ID, name, *in.Name, change)
	return h.withBuild(c, e, err)
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
	if out, err = h.withBuild(c, e, err); err != nil || change.Permissions == (tenant.PermissionsChange{}) {
		return out, err
	}
	t, err := h.Tenants.Tenant(c.Context(), name)
	if err != nil {
		return out, err
	}
	out.SandboxesToRestart, err = h.Sandboxes.LackNetwork(c.Context(), e.Tenant, e.ID, t.Permitted(e.Permissions).Network)
	return out, err
}

func (h *Handlers) getEnvironment(c *httpapi.Call) (out Environment, err error) {
	name, environment, err := inTenant(c, "environment")
	if err != nil {
		return out, err
	}
	e, err := h.Tenants.Environment(c.Context(), name, environment)
	return h.withBuild(c, e, err)
}

// withBuild renders an environment with how far its packages are.
func (h *Handlers) withBuild(c *httpapi.Call, e tenant.Environment, err error) (out Environment, _ error) {
	if err != nil {
		return out, err
	}
	out = environmentOf(e)
	b, err := h.Tenants.PackageBuild(c.Context(), &e)
	out.PackageBuild = environment.PackageBuildOf(b)
	return out, err
}

func (h *Handlers) deleteEnvironment(c *httpapi.Call) error {
	name, environment, err := inTenant(c, "environment")
	if err != nil {
		return err
	}
	return h.Tenants.DeleteEnvironment(c.Context(), c.Caller.Key.ID, name, environment)
}
