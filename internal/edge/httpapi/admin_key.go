package httpapi

import "github.com/atoll-run/atoll/internal/core/tenant"

func (c *adminCall) listEnvironments() (any, error) {
	name, err := c.named("tenant", "tenant")
	if err != nil {
		return nil, err
	}
	all, err := c.Tenants.Environments(c.r.Context(), name)
	if err != nil {
		return nil, err
	}
	return paged(c, all, func(e tenant.Environment) string { return e.ID }, environmentWire)
}

func (c *adminCall) createEnvironment() (any, error) {
	name, err := c.named("tenant", "tenant")
	if err != nil {
		return nil, err
	}
	var in EnvironmentChange
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if in.Name == nil {
		return nil, invalid("name is required")
	}
	change, err := in.domain()
	if err != nil {
		return nil, err
	}
	e, err := c.Tenants.CreateEnvironment(c.r.Context(), name, *in.Name, change)
	return environmentWire(e), err
}

func (c *adminCall) getEnvironment() (any, error) {
	in, name, err := c.inTenant("environment")
	if err != nil {
		return nil, err
	}
	e, err := c.Tenants.Environment(c.r.Context(), in, name)
	return environmentWire(e), err
}

func (c *adminCall) changeEnvironment() (any, error) {
	name, environment, err := c.inTenant("environment")
	if err != nil {
		return nil, err
	}
	var in EnvironmentChange
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	change, err := in.domain()
	if err != nil {
		return nil, err
	}
	e, err := c.Tenants.ChangeEnvironment(c.r.Context(), name, environment, change)
	return environmentWire(e), err
}

func (c *adminCall) deleteEnvironment() (any, error) {
	in, name, err := c.inTenant("environment")
	if err != nil {
		return nil, err
	}
	return nil, c.Tenants.DeleteEnvironment(c.r.Context(), in, name)
}

func (c *adminCall) listKeys() (any, error) {
	name, err := c.named("tenant", "tenant")
	if err != nil {
		return nil, err
	}
	all, err := c.Tenants.Keys(c.r.Context(), name)
	if err != nil {
		return nil, err
	}
	return paged(c, all, func(k tenant.Key) string { return k.ID }, keyWire)
}

func (c *adminCall) createKey() (any, error) {
	name, err := c.named("tenant", "tenant")
	if err != nil {
		return nil, err
	}
	var in NewKey
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if in.Name == nil {
		return nil, invalid("name is required")
	}
	change, err := in.domain()
	if err != nil {
		return nil, err
	}
	environment := ""
	if in.Environment != nil {
		if environment = *in.Environment; !tenant.Name.MatchString(environment) {
			return nil, invalid("environment: the tenant has no such environment")
		}
	}
	k, secret, err := c.Tenants.CreateKey(c.r.Context(), name, environment, *in.Name, change)
	if err != nil {
		return nil, err
	}
	out := keyWire(k)
	out.Key = secret
	return out, nil
}

func (c *adminCall) getKey() (any, error) {
	in, name, err := c.inTenant("key")
	if err != nil {
		return nil, err
	}
	k, err := c.Tenants.Key(c.r.Context(), in, name)
	return keyWire(k), err
}

func (c *adminCall) changeKey() (any, error) {
	name, key, err := c.inTenant("key")
	if err != nil {
		return nil, err
	}
	var in KeyChange
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	change, err := in.domain()
	if err != nil {
		return nil, err
	}
	k, err := c.Tenants.ChangeKey(c.r.Context(), name, key, change)
	return keyWire(k), err
}

func (c *adminCall) revokeKey() (any, error) {
	in, name, err := c.inTenant("key")
	if err != nil {
		return nil, err
	}
	k, err := c.Tenants.RevokeKey(c.r.Context(), in, name)
	return keyWire(k), err
}

func (c *adminCall) listPlans() (any, error) {
	all, err := c.Tenants.Plans(c.r.Context())
	if err != nil {
		return nil, err
	}
	return paged(c, all, func(p tenant.Plan) string { return p.Name }, planWire)
}

func (c *adminCall) getPlan() (any, error) {
	name, err := c.named("plan", "plan")
	if err != nil {
		return nil, err
	}
	p, err := c.Tenants.Plan(c.r.Context(), name)
	return planWire(p), err
}

func (c *adminCall) putPlan() (any, error) {
	name, err := c.named("plan", "plan")
	if err != nil {
		return nil, err
	}
	var in PlanBounds
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	p, err := c.Tenants.PutPlan(c.r.Context(), c.actor, in.domain(name))
	return planWire(p), err
}

func (c *adminCall) deletePlan() (any, error) {
	name, err := c.named("plan", "plan")
	if err != nil {
		return nil, err
	}
	return nil, c.Tenants.DeletePlan(c.r.Context(), c.actor, name)
}
