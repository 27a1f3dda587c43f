package httpapi

import (
	"strconv"

	"github.com/atoll-run/atoll/internal/core/tenant"
)

func (c *adminCall) listTenants() (any, error) {
	all, err := c.Tenants.Tenants(c.r.Context())
	if err != nil {
		return nil, err
	}
	return paged(c, all, func(t tenant.Tenant) string { return t.ID }, tenantWire)
}

func (c *adminCall) createTenant() (any, error) {
	var in NewTenant
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if in.Name == nil {
		return nil, invalid("name is required")
	}
	t, err := c.Tenants.CreateTenant(c.r.Context(), c.actor, *in.Name, in.TenantChange.domain())
	return tenantWire(t), err
}

func (c *adminCall) getTenant() (any, error) {
	name, err := c.named("tenant", "tenant")
	if err != nil {
		return nil, err
	}
	t, err := c.Tenants.Tenant(c.r.Context(), name)
	return tenantWire(t), err
}

func (c *adminCall) changeTenant() (any, error) {
	name, err := c.named("tenant", "tenant")
	if err != nil {
		return nil, err
	}
	var in TenantChange
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	t, err := c.Tenants.ChangeTenant(c.r.Context(), c.actor, name, in.domain())
	return tenantWire(t), err
}

func (c *adminCall) listPolicyEvents() (any, error) {
	name, err := c.named("tenant", "tenant")
	if err != nil {
		return nil, err
	}
	all, err := c.Tenants.PolicyEvents(c.r.Context(), name)
	if err != nil {
		return nil, err
	}
	return paged(c, all, func(e tenant.PolicyEvent) string { return strconv.FormatInt(e.ID, 10) }, eventWire)
}

func (c *adminCall) listTemplates() (any, error) {
	name, err := c.named("tenant", "tenant")
	if err != nil {
		return nil, err
	}
	all, err := c.Tenants.Templates(c.r.Context(), name)
	if err != nil {
		return nil, err
	}
	return paged(c, all, func(t tenant.Template) string { return t.Name }, templateWire)
}

func (c *adminCall) getTemplate() (any, error) {
	in, name, err := c.inTenant("template")
	if err != nil {
		return nil, err
	}
	t, err := c.Tenants.Template(c.r.Context(), in, name)
	return templateWire(t), err
}

func (c *adminCall) putTemplate() (any, error) {
	name, template, err := c.inTenant("template")
	if err != nil {
		return nil, err
	}
	var in TemplateChange
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	network, err := in.domain()
	if err != nil {
		return nil, err
	}
	t, err := c.Tenants.PutTemplate(c.r.Context(), c.actor, name, template, network)
	return templateWire(t), err
}

func (c *adminCall) deleteTemplate() (any, error) {
	name, template, err := c.inTenant("template")
	if err != nil {
		return nil, err
	}
	return nil, c.Tenants.DeleteTemplate(c.r.Context(), c.actor, name, template)
}
