package gateway

import (
	"testing"

	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/tenant"
)

// A tenant's policy comes first, then the template's, then the environment's
// rules: each only narrows.
func TestWhoDecidesAboutTheNetwork(t *testing.T) {
	rules := sandbox.NetworkPolicy{Mode: sandbox.NetworkRules, AllowedHosts: []string{"example.com"}}
	for _, c := range []struct {
		name        string
		tenant      bool
		template    tenant.Network
		environment sandbox.NetworkPolicy
		want        sandbox.NetworkMode
	}{
		{"nothing is said", true, "", sandbox.NetworkPolicy{}, ""},
		{"the environment's rules", true, "", rules, sandbox.NetworkRules},
		{"the tenant has none", false, "", rules, ""},
		{"the tenant has none, whatever a template says", false, tenant.DefaultPublic, rules, ""},
		{"a template without", true, tenant.InternalOnly, rules, ""},
		{"a template with", true, tenant.DefaultPublic, sandbox.NetworkPolicy{}, sandbox.NetworkUnrestricted},
		{"a template with, narrowed by the environment", true, tenant.DefaultPublic, rules, sandbox.NetworkRules},
	} {
		p := &tenant.Principal{Tenant: tenant.Tenant{NetworkEnabled: c.tenant}, Environment: tenant.Environment{Permissions: sandbox.Permissions{Network: c.environment}}}
		if got := permissions(p, c.template).Network; got.Mode != c.want || got.Mode == sandbox.NetworkRules && len(got.AllowedHosts) != 1 {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}
