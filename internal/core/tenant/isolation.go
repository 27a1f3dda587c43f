package tenant

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
)

// changeIsolation makes the change, and checks it against the plan, the tenant's policy
// and the environment's permissions, whichever of them was changed.
func (a *Admin) changeIsolation(ctx context.Context, t Tenant, e *Environment, c EnvironmentChange) error {
	if c.Isolation != nil {
		if err := oneOf("isolation", *c.Isolation, execution.Isolations); err != nil {
			return err
		}
		if e.Isolation = ""; *c.Isolation != execution.IsolationRun {
			e.Isolation = string(*c.Isolation)
		}
	}
	if e.Isolation == "" || c.Isolation == nil && c.Permissions == (PermissionsChange{}) {
		return nil
	}
	if c.Isolation != nil {
		plan, err := a.store.Plan(ctx, t.Plan)
		switch {
		case err != nil:
			return err
		case !plan.KeyIsolation:
			return fault.New(fault.Forbidden, "isolation \"key\" is not part of the plan %s: use isolation \"run\"", t.Plan)
		case !t.KeyIsolationEnabled:
			return fault.New(fault.Forbidden, "this tenant's policy does not allow isolation \"key\": use \"run\", or ask the operator to allow it (atoll tenant set %s --key-isolation)", t.Name)
		}
	}
	switch p := e.Permissions; {
	case !p.Network.Blocked():
		return invalid("isolation \"key\" works only without a network: set permissions.network.enabled to false, or isolation to \"run\"")
	case p.Restricts():
		return invalid("isolation \"key\" does not support rules for files and processes: remove them from permissions, or set isolation to \"run\"")
	}
	return nil
}

// Isolation is what the executions of p's environment share, as far as its tenant and
// plan still allow it.
func (p *Principal) Isolation() execution.Isolation {
	if p.Environment.Isolation == string(execution.IsolationKey) && p.Tenant.KeyIsolationEnabled && p.Plan.KeyIsolation {
		return execution.IsolationKey
	}
	return execution.IsolationRun
}
