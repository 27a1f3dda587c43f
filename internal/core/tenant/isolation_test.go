package tenant_test

import (
	"testing"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

func TestIsolation(t *testing.T) {
	w := open(t)
	ctx := t.Context()
	key := tenant.EnvironmentChange{Isolation: ptr(execution.IsolationKey)}
	make := func(name string, c tenant.EnvironmentChange) (tenant.Environment, error) {
		return w.CreateEnvironment(ctx, "", "acme", name, c)
	}
	w.tenant("acme", tenant.TenantChange{})
	_, err := make("one", key)
	refused(t, err, fault.Forbidden, "plan")
	_, err = w.ChangeTenant(ctx, "key_1", "acme", tenant.TenantChange{Plan: ptr("pro")})
	w.must(err)
	_, err = make("one", key)
	refused(t, err, fault.Forbidden, "--key-isolation")
	_, err = w.ChangeTenant(ctx, "key_1", "acme", tenant.TenantChange{KeyIsolationEnabled: ptr(true), NetworkEnabled: ptr(true)})
	w.must(err)
	e, err := make("one", key)
	if err != nil || e.Isolation != "key" {
		t.Fatalf("%+v, %v", e, err)
	}

	// Whichever comes later is refused.
	_, err = w.ChangeEnvironment(ctx, "acme", "one", tenant.EnvironmentChange{Permissions: tenant.PermissionsChange{Network: ptr(true)}})
	refused(t, err, fault.Invalid, "network")
	_, err = w.ChangeEnvironment(ctx, "acme", "one", tenant.EnvironmentChange{Permissions: tenant.PermissionsChange{AllowExec: ptr(false)}})
	refused(t, err, fault.Invalid, "rules")
	_, err = make("two", tenant.EnvironmentChange{Isolation: key.Isolation, Permissions: tenant.PermissionsChange{Network: ptr(true)}})
	refused(t, err, fault.Invalid, "network")
	_, err = make("two", tenant.EnvironmentChange{Isolation: ptr(execution.Isolation("kernel"))})
	refused(t, err, fault.Invalid, "isolation")

	// What plan and tenant stop allowing has no effect any more, and other changes are possible.
	p := tenant.Principal{Tenant: tenant.Tenant{KeyIsolationEnabled: true}, Plan: tenant.Plan{KeyIsolation: true}, Environment: e}
	if p.Isolation() != execution.IsolationKey {
		t.Error("it is not in force")
	}
	for _, change := range []func(*tenant.Principal){
		func(p *tenant.Principal) { p.Tenant.KeyIsolationEnabled = false },
		func(p *tenant.Principal) { p.Plan.KeyIsolation = false },
		func(p *tenant.Principal) { p.Environment.Isolation = "" },
	} {
		less := p
		change(&less)
		if less.Isolation() != execution.IsolationRun {
			t.Error("it is in force though it is not allowed")
		}
	}
	_, err = w.ChangeTenant(ctx, "key_1", "acme", tenant.TenantChange{KeyIsolationEnabled: ptr(false)})
	w.must(err)
	_, err = w.ChangeEnvironment(ctx, "acme", "one", tenant.EnvironmentChange{Name: ptr("two")})
	w.must(err)
	e, err = w.ChangeEnvironment(ctx, "acme", "two", tenant.EnvironmentChange{Isolation: ptr(execution.IsolationRun)})
	if err != nil || e.Isolation != "" {
		t.Errorf("%+v, %v", e, err)
	}
}
