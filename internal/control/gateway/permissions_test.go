package gateway

import (
	"testing"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// A tenant's policy comes first, then the template's, then the environment's
// rules: each only narrows.
func TestWhoDecidesAboutTheNetwork(t *testing.T) {
	rules := runtime.NetworkPolicy{Mode: runtime.NetworkRules, AllowedHosts: []string{"example.com"}}
	for _, c := range []struct {
		name        string
		tenant      bool
		template    tenant.Network
		environment runtime.NetworkPolicy
		want        runtime.NetworkMode
	}{
		{"nothing is said", true, "", runtime.NetworkPolicy{}, ""},
		{"the environment's rules", true, "", rules, runtime.NetworkRules},
		{"the tenant has none", false, "", rules, ""},
		{"the tenant has none, whatever a template says", false, tenant.DefaultPublic, rules, ""},
		{"a template without", true, tenant.InternalOnly, rules, ""},
		{"a template with", true, tenant.DefaultPublic, runtime.NetworkPolicy{}, runtime.NetworkUnrestricted},
		{"a template with, narrowed by the environment", true, tenant.DefaultPublic, rules, runtime.NetworkRules},
	} {
		p := &tenant.Principal{Tenant: tenant.Tenant{NetworkEnabled: c.tenant}, Environment: tenant.Environment{Permissions: runtime.Permissions{Network: c.environment}}}
		if got := permissions(p, c.template).Network; got.Mode != c.want || got.Mode == runtime.NetworkRules && len(got.AllowedHosts) != 1 {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}
