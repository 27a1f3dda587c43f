package ratelimit

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

func TestModels(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	m := NewModels(func() time.Time { return now }, nil)
	p := &tenant.Principal{
		Key: tenant.Key{ID: "key_1"}, Tenant: tenant.Tenant{ID: "ten_1"},
		Plan: tenant.Plan{Name: "small", MaxResponseRate: 6, MaxKeyResponseRate: 2, MaxTokenRate: 600, MaxKeyTokenRate: 0},
	}
	refused := func(dimension string, wait time.Duration) {
		t.Helper()
		f, ok := errors.AsType[*fault.Error](m.Begin(p, "a"))
		if !ok || f.Kind != fault.Exhausted || f.Dimension != dimension || f.ResetsAt.Sub(now) != wait || !strings.Contains(f.Msg, "plan small") {
			t.Fatalf("got %+v, want %s for %s", f, dimension, wait)
		}
	}
	begin := func(model string) {
		t.Helper()
		if err := m.Begin(p, model); err != nil {
			t.Fatal(err)
		}
	}
	left := func(want Rates) {
		t.Helper()
		if got := m.Left(p, "a"); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	left(Rates{Rate{2, 2, 0}, Rate{600, 600, 0}})
	begin("a")
	begin("a")
	left(Rates{Rate{2, 0, time.Minute}, Rate{600, 600, 0}})
	refused(KeyResponses, 30*time.Second)
	begin("b") // each model has its own

	// The tenant's other keys share its rate.
	other := *p
	other.Key.ID = "key_2"
	for range 2 {
		if err := m.Begin(&other, "a"); err != nil {
			t.Fatal(err)
		}
	}
	now = now.Add(time.Minute)
	m.Use("ten_1", "key_1", "a", 500)
	left(Rates{Rate{2, 2, 0}, Rate{600, 100, 50 * time.Second}})
	m.Use("ten_1", "key_1", "a", 700)
	left(Rates{Rate{2, 2, 0}, Rate{600, 0, 2 * time.Minute}})
	refused(TenantTokens, time.Minute+100*time.Millisecond)
	m.Use("ten_2", "key_9", "a", 700) // not counted here: nothing to take from

	// A plan that is changed begins anew, and one without bounds has no rates.
	p.Plan.MaxTokenRate = 0
	left(Rates{Rate{2, 2, 0}, Rate{}})
	p.Plan = tenant.Plan{}
	left(Rates{})
	begin("a")
	now = now.Add(time.Hour)
	m.sweep(now)
	if len(m.callers) != 0 {
		t.Errorf("%d callers are remembered", len(m.callers))
	}
}

func TestServersDivideModelRates(t *testing.T) {
	now, servers := time.Unix(1_700_000_000, 0), 2
	m := NewModels(func() time.Time { return now }, func() int { return servers })
	p := &tenant.Principal{Key: tenant.Key{ID: "key_1"}, Tenant: tenant.Tenant{ID: "ten_1"}, Plan: tenant.Plan{Name: "small", MaxResponseRate: 6, MaxTokenRate: 600}}
	for range 3 {
		if err := m.Begin(p, "a"); err != nil {
			t.Fatal(err)
		}
	}
	f, ok := errors.AsType[*fault.Error](m.Begin(p, "a"))
	if !ok || f.Dimension != TenantResponses || f.ResetsAt.Sub(now) != 20*time.Second || !strings.Contains(f.Msg, "6 responses per minute") {
		t.Errorf("got %+v", f)
	}
	if got := m.Left(p, "a"); got != (Rates{Rate{3, 0, time.Minute}, Rate{300, 300, 0}}) {
		t.Errorf("got %+v", got)
	}

	// A server that comes and goes pays no debt.
	m.Use("ten_1", "key_1", "a", 900)
	for _, servers = range []int{1, 3, 2} {
		if f, ok := errors.AsType[*fault.Error](m.Begin(p, "a")); !ok || f.Dimension != TenantResponses {
			t.Errorf("on %d servers: %+v", servers, f)
		}
	}
	now = now.Add(time.Minute)
	if f, ok := errors.AsType[*fault.Error](m.Begin(p, "a")); !ok || f.Dimension != TenantTokens {
		t.Errorf("got %+v", f)
	}
}
