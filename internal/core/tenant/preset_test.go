package tenant_test

import (
	"strings"
	"testing"

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
