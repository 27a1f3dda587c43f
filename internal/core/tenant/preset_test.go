package tenant_test

import (
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

func TestPresets(t *testing.T) {
	for _, p := range tenant.Presets {
		policy := runtime.NetworkPolicy{Mode: runtime.NetworkRules, AllowedHosts: tenant.PresetHosts(p.Name)}
		if err := (runtime.Permissions{Network: policy}).Validate(); err != nil || len(policy.AllowedHosts) == 0 || strings.ContainsAny(p.Name, "./*:") {
			t.Errorf("%s: %v, %v", p.Name, policy.AllowedHosts, err)
		}
	}
	if got := tenant.PresetHosts("none"); got != nil {
		t.Errorf("none is %v", got)
	}
}

func TestAHostWithoutADotIsRefusedWithWhatMayBeMeant(t *testing.T) {
	now := runtime.NetworkPolicy{Mode: runtime.NetworkRules, AllowedHosts: []string{"old", "example.com"}}
	for host, says := range map[string]string{
		"pipy": "the preset pypi, which is pypi.org, files.pythonhosted.org", "pypi": "the preset pypi", "pip": "the preset pypi", "nmp": "the preset npm", "cargo": "the preset crates", "ruby-gems": "the preset rubygems",
		"github": `did you mean "github.com"`, "GitHub": `did you mean "github.com"`, "huggingface": "huggingface.co", "openai": `such as "openai.com"`, "x": `such as "x.com"`, "localhost": "needs no rule", "gitea": "allowed_cidrs",
	} {
		_, err := tenant.PermissionsChange{AllowedHosts: &[]string{"old", host}}.NetworkOver(now)
		if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, without %q", host, err, says)
		}
	}
	for _, host := range []string{"*", "example.com", "*.example", "old", "2001:db8::1", "192.0.2.1"} {
		if _, err := (tenant.PermissionsChange{AllowedHosts: &[]string{host}}).NetworkOver(now); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
}
