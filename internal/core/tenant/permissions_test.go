package tenant_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

func TestPermissionsOfAnEnvironment(t *testing.T) {
	w := open(t)
	ctx := t.Context()
	a, err := w.CreateTenant(ctx, "", "rules", tenant.TenantChange{})
	w.must(err)

	_, err = w.CreateOwnEnvironment(ctx, "", a.ID, "refused", tenant.EnvironmentChange{})
	if fault.KindOf(err) != fault.Forbidden || !strings.Contains(err.Error(), "atoll tenant set rules --network") {
		t.Errorf("the contract's default without a network: %v", err)
	}
	off, on := false, true
	e, err := w.CreateOwnEnvironment(ctx, "", a.ID, "offline", tenant.EnvironmentChange{Permissions: tenant.PermissionsChange{Network: &off}})
	w.must(err)
	if !e.Permissions.Network.Blocked() || len(e.Permissions.Filesystem.Writable) != 2 || e.Permissions.Process.MaxProcesses != 20 || e.Profile != "standard" {
		t.Errorf("got %+v", e)
	}
	_, err = w.ChangeTenant(ctx, "", a.ID, tenant.TenantChange{NetworkEnabled: &on})
	w.must(err)

	change := func(c tenant.PermissionsChange) (runtime.Permissions, error) {
		e, err := w.ChangeEnvironment(ctx, a.ID, "offline", tenant.EnvironmentChange{Permissions: c})
		return e.Permissions, err
	}
	none, hosts, everywhere, nowhere := []string{}, []string{"example.com"}, []string{"/"}, []string{}
	for _, c := range []struct {
		name string
		do   tenant.PermissionsChange
		want func(p runtime.Permissions) bool
	}{
		{"a network", tenant.PermissionsChange{Network: &on}, func(p runtime.Permissions) bool {
			return p.Network.Mode == runtime.NetworkRules && strings.Join(p.Network.AllowedHosts, "") == "*"
		}},
		{"no host", tenant.PermissionsChange{AllowedHosts: &none}, func(p runtime.Permissions) bool {
			return p.Network.Mode == runtime.NetworkRules && len(p.Network.AllowedHosts) == 0
		}},
		{"any address", tenant.PermissionsChange{AnyAddress: &on}, func(p runtime.Permissions) bool { return p.Network.Mode == runtime.NetworkUnrestricted }},
		{"hosts after it", tenant.PermissionsChange{AllowedHosts: &hosts}, func(p runtime.Permissions) bool {
			return p.Network.Mode == runtime.NetworkRules && len(p.Network.AllowedHosts) == 1
		}},
		{"no network", tenant.PermissionsChange{Network: &off}, func(p runtime.Permissions) bool { return p.Network.Blocked() && p.Network.AllowedHosts == nil }},
		{"everywhere", tenant.PermissionsChange{Writable: &everywhere}, func(p runtime.Permissions) bool { return p.Filesystem.Writable == nil }},
		{"nowhere", tenant.PermissionsChange{Writable: &nowhere}, func(p runtime.Permissions) bool {
			return p.Filesystem.Writable != nil && len(p.Filesystem.Writable) == 0
		}},
		{"a profile and a field", tenant.PermissionsChange{Profile: new(tenant.Isolated), AllowExec: &on}, func(p runtime.Permissions) bool {
			return !p.Process.NoExec && strings.Join(p.Filesystem.Writable, "") == "/tmp"
		}},
		{"restricted", tenant.PermissionsChange{Profile: new(tenant.Restricted)}, func(p runtime.Permissions) bool {
			return len(p.Network.AllowedHosts) == 0 && p.Process.MaxProcesses == 10 && len(p.Filesystem.Blocked) == 2
		}},
		{"unrestricted", tenant.PermissionsChange{Profile: new(tenant.Unrestricted)}, func(p runtime.Permissions) bool {
			return p.Process.Root && p.Process.MaxProcesses == 0 && p.Filesystem.Writable == nil && p.Network.Mode == runtime.NetworkUnrestricted
		}},
	} {
		p, err := change(c.do)
		if err != nil || !c.want(p) {
			t.Errorf("%s: got %+v, %v", c.name, p, err)
		}
	}
	for name, c := range map[string]tenant.PermissionsChange{
		"a profile that is none":     {Profile: new(tenant.Profile("open"))},
		"hosts without a network":    {Network: &off, AllowedHosts: &hosts},
		"hosts and any address":      {AnyAddress: &on, AllowedHosts: &hosts},
		"a path that is none":        {Writable: &[]string{"tmp"}},
		"more processes than can be": {MaxProcesses: new(1 << 30)},
	} {
		if _, err := change(c); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for _, p := range tenant.Profiles {
		if err := p.Permissions().Validate(); err != nil {
			t.Errorf("the profile %s: %v", p, err)
		}
	}
}

// TestOwnEnvironmentsAreBounded has a tenant make environments without end, with a key of
// its own.
func TestOwnEnvironmentsAreBounded(t *testing.T) {
	w := open(t)
	ctx := t.Context()
	a, err := w.CreateTenant(ctx, "", "many", tenant.TenantChange{})
	w.must(err)
	for i := range tenant.MaxOwnEnvironments {
		w.must(w.db.Tenants().CreateEnvironment(ctx, tenant.Environment{ID: tenant.NewID("env"), Tenant: a.ID, Name: fmt.Sprintf("e%d", i), Image: "default", Limits: runtime.DefaultLimits(), CreatedAt: time.Now()}))
	}
	off := tenant.EnvironmentChange{Permissions: tenant.PermissionsChange{Network: new(false)}}
	_, err = w.CreateOwnEnvironment(ctx, "", a.ID, "more", off)
	if f, ok := errors.AsType[*fault.Error](err); !ok || f.Kind != fault.Exhausted || f.Dimension != "environments" {
		t.Errorf("one more: %v", err)
	}
	w.must(w.DeleteEnvironment(ctx, "", a.ID, "e7"))
	_, err = w.CreateOwnEnvironment(ctx, "", a.ID, "more", off)
	w.must(err)
	_, err = w.CreateEnvironment(ctx, "", a.ID, "by the operator", off)
	if fault.KindOf(err) == fault.Exhausted {
		t.Errorf("its operator is refused: %v", err)
	}
}
