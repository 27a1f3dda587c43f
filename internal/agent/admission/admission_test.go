package admission_test

import (
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/agent/admission"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/ratelimit"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// TestOnce checks that several tries of one run count once against the caller's rates.
func TestOnce(t *testing.T) {
	now := time.Now()
	g := &admission.Gate{Rates: ratelimit.NewModels(func() time.Time { return now }, nil)}
	p := &tenant.Principal{Tenant: tenant.Tenant{ID: "ten_1"}, Key: tenant.Key{ID: "key_1"}, Plan: tenant.Plan{Name: "slow", MaxResponseRate: 2}}
	one := (&admission.Caller{Principal: p}).Once()
	for range 3 {
		if err := g.Admit(t.Context(), one.In(p), "m"); err != nil {
			t.Fatalf("a try: %v", err)
		}
	}
	other := &admission.Caller{Principal: p}
	if err := g.Admit(t.Context(), other, "m"); err != nil {
		t.Errorf("another run: %v", err)
	}
	if err := g.Admit(t.Context(), other, "m"); fault.KindOf(err) != fault.Exhausted {
		t.Errorf("above the rate: %v", err)
	}
}
