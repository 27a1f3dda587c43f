package admin

import (
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

func (h *Handlers) listTenants(c *httpapi.Call) (out httpapi.Page[Tenant], err error) {
	all, err := h.Tenants.Tenants(c.Context())
	if err != nil {
		return out, err
	}
	return httpapi.PageOf(c, all, func(t tenant.Tenant) string { return t.ID }, tenantOf)
}

func (h *Handlers) createTenant(c *httpapi.Call, in *NewTenant) (out Tenant, err error) {
	if in.Environment == nil {
		t, err := h.Tenants.CreateTenant(c.Context(), c.Caller.Key.ID, *in.Name, in.TenantChange.domain())
		return tenantOf(t), err
	}
	t, e, err := h.Tenants.CreateTenantWithEnvironment(c.Context(), c.Caller.Key.ID, *in.Name, *in.Environment, in.TenantChange.domain())
	out = tenantOf(t)
	out.Environment = &FirstEnvironment{e.ID, e.Name}
	return out, err
}

func (h *Handlers) getTenant(c *httpapi.Call) (out Tenant, err error) {
	t, err := c.Tenant(h.Tenants.Tenant)
	return tenantOf(t), err
}

// deleteTenant starts the deletion of a tenant; the eraser completes it after the answer.
func (h *Handlers) deleteTenant(c *httpapi.Call) (out Tenant, err error) {
	name, err := c.NameIn("tenant")
	if err != nil {
		return out, err
	}
	t, err := h.Tenants.DeleteTenant(c.Context(), c.Caller.Key.ID, name)
	return tenantOf(t), err
}

func (h *Handlers) changeTenant(c *httpapi.Call, in *TenantChange) (out Tenant, err error) {
	name, err := c.NameIn("tenant")
	if err != nil {
		return out, err
	}
	t, err := h.Tenants.ChangeTenant(c.Context(), c.Caller.Key.ID, name, in.domain())
	return tenantOf(t), err
}
