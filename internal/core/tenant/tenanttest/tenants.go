package tenanttest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

func testTenants(t *testing.T, s tenant.Store) {
	ctx := t.Context()
	daily, hourly, disabled := int64(0), int64(7), now().Add(time.Hour)
	full := tenant.Tenant{
		ID: tenant.NewID("ten"), Name: "zebra", Plan: "free", SandboxEnabled: true, Tier: tenant.Standard, MonthlyCredits: 12.5,
		RedactionOff: []string{"jwt", "bearer"}, AuditDays: 180, AuditText: true, DailyCap: &daily, HourlyCap: &hourly, CreatedAt: now(), DisabledAt: &disabled, NetworkEnabled: true, RootEnabled: true, KeyIsolationEnabled: true,
	}
	must(t, s.CreateTenant(ctx, full))
	plain := Tenant(t, s, "ant")
	wantSame(t, get[tenant.Tenant](t)(s.Tenant(ctx, full.ID)), full)
	wantSame(t, get[tenant.Tenant](t)(s.Tenant(ctx, "ant")), plain)
	wantSame(t, get[[]tenant.Tenant](t)(s.Tenants(ctx)), []tenant.Tenant{full, plain})

	again := plain
	again.ID = tenant.NewID("ten")
	wantKind(t, "a name twice", s.CreateTenant(ctx, again), fault.Conflict)
	again = plain
	again.Name = "other"
	wantKind(t, "an id twice", s.CreateTenant(ctx, again), fault.Conflict)
	again.ID, again.Plan = tenant.NewID("ten"), "none"
	wantKind(t, "plan not found", s.CreateTenant(ctx, again), fault.NotFound)
	again.Plan, again.AuditDays = "free", 181
	wantKind(t, "kept too long", s.CreateTenant(ctx, again), fault.Invalid)
	_, err := s.Tenant(ctx, "unknown")
	wantKind(t, "an unknown tenant", err, fault.NotFound)
}

func testChange(t *testing.T, s tenant.Store) {
	ctx := t.Context()
	a := Tenant(t, s, "a")
	Tenant(t, s, "b")
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			_, err := s.ChangeTenant(ctx, a.ID, func(v *tenant.Tenant) ([]tenant.PolicyEvent, error) {
				old := v.MonthlyCredits
				v.MonthlyCredits++
				return []tenant.PolicyEvent{{Actor: fmt.Sprint(i), Field: "monthly_credits", Old: fmt.Sprint(old), New: fmt.Sprint(v.MonthlyCredits)}}, nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := get[tenant.Tenant](t)(s.Tenant(ctx, a.ID)); got.MonthlyCredits != 50 {
		t.Errorf("50 changes made %v", got.MonthlyCredits)
	}
	events := get[[]tenant.PolicyEvent](t)(s.PolicyEvents(ctx, a.ID))
	if len(events) != 50 {
		t.Fatalf("got %d events", len(events))
	}
	for i, e := range events {
		if e.New != fmt.Sprint(i+1) || e.Old != fmt.Sprint(i) {
			t.Errorf("event %d: %s → %s", i, e.Old, e.New)
		}
	}
	_, err := s.ChangeTenant(ctx, a.ID, func(v *tenant.Tenant) ([]tenant.PolicyEvent, error) { v.Name = "b"; return nil, nil })
	wantKind(t, "a name that is taken", err, fault.Conflict)
	_, err = s.ChangeTenant(ctx, "ten_none", func(*tenant.Tenant) ([]tenant.PolicyEvent, error) { return nil, nil })
	wantKind(t, "an unknown tenant", err, fault.NotFound)
}

func testFailedChange(t *testing.T, s tenant.Store) {
	a := Tenant(t, s, "a")
	own := errors.New("no")
	_, err := s.ChangeTenant(t.Context(), a.ID, func(v *tenant.Tenant) ([]tenant.PolicyEvent, error) {
		v.SandboxEnabled = true
		return []tenant.PolicyEvent{{Field: "x"}}, own
	})
	if !errors.Is(err, own) {
		t.Errorf("got %v", err)
	}
	// An event that cannot be written takes the change along.
	_, err = s.ChangeTenant(t.Context(), a.ID, func(v *tenant.Tenant) ([]tenant.PolicyEvent, error) {
		v.SandboxEnabled = true
		return []tenant.PolicyEvent{{Field: "x"}, {Field: "y\x00"}}, nil
	})
	wantKind(t, "an event with a NUL", err, fault.Invalid)
	wantSame(t, get[tenant.Tenant](t)(s.Tenant(t.Context(), a.ID)), a)
	if events := get[[]tenant.PolicyEvent](t)(s.PolicyEvents(t.Context(), a.ID)); len(events) != 0 {
		t.Errorf("got %v", events)
	}
}

func testRegulated(t *testing.T, s tenant.Store) {
	a := Tenant(t, s, "a")
	_, err := s.ChangeTenant(t.Context(), a.ID, func(v *tenant.Tenant) ([]tenant.PolicyEvent, error) {
		v.Tier, v.SandboxEnabled = tenant.Regulated, true
		return nil, nil
	})
	wantKind(t, "regulated with a sandbox", err, fault.Invalid)
	got, err := s.ChangeTenant(t.Context(), a.ID, func(v *tenant.Tenant) ([]tenant.PolicyEvent, error) {
		v.Tier, v.SandboxEnabled, v.NetworkEnabled, v.RootEnabled, v.KeyIsolationEnabled = tenant.Regulated, false, true, true, true
		return nil, nil
	})
	must(t, err)
	if got.Tier != tenant.Regulated || !got.NetworkEnabled || !got.RootEnabled || !got.KeyIsolationEnabled {
		t.Errorf("got %v", got.Tier)
	}
}

func testEvents(t *testing.T, s tenant.Store) {
	ctx := t.Context()
	a, b := Tenant(t, s, "a"), Tenant(t, s, "b")
	at := now().Add(-time.Hour)
	for _, v := range []tenant.Tenant{a, b} {
		_, err := s.ChangeTenant(ctx, v.ID, func(*tenant.Tenant) ([]tenant.PolicyEvent, error) {
			return []tenant.PolicyEvent{
				{Tenant: v.ID, Actor: "cli", Field: "sandbox_enabled", Old: "false", New: "true", CreatedAt: at},
				{Tenant: v.ID, Actor: "key_1", Field: "tier", Old: "", New: "standard"},
			}, nil
		})
		must(t, err)
	}
	got := get[[]tenant.PolicyEvent](t)(s.PolicyEvents(ctx, a.ID))
	if len(got) != 2 || got[0].ID >= got[1].ID || got[1].Actor != "key_1" || time.Since(got[1].CreatedAt).Abs() > time.Minute {
		t.Fatalf("got %+v", got)
	}
	wantSame(t, got[0], tenant.PolicyEvent{ID: got[0].ID, Tenant: a.ID, Actor: "cli", Field: "sandbox_enabled", Old: "false", New: "true", CreatedAt: at})
}

func testPlans(t *testing.T, s tenant.Store) {
	ctx := t.Context()
	wantSame(t, get[[]tenant.Plan](t)(s.Plans(ctx)), tenant.Plans())
	own := tenant.Plan{Name: "own", MaxCPU: 0.5, MaxMemory: 1 << 33, Concurrency: 3, MaxTimeout: 90 * time.Second, Streaming: true, Async: true, KeyIsolation: true, MaxOutput: 1 << 40, MaxThreads: 7, MaxThreadSize: 1 << 33, MaxOutputs: 1 << 34,
		MaxSandboxes: 8, MaxSandboxMemory: 1 << 34, MaxSandboxDisk: 1 << 35, MaxSandboxLife: 36 * time.Hour, MaxSnapshots: 9, MaxSnapshotSize: 1 << 36,
		MaxRequestRate: 11, MaxKeyRequestRate: 12, MaxUploadRate: 1 << 37, MaxKeyUploadRate: 1 << 38}
	must(t, s.PutPlan(ctx, own))
	wantSame(t, get[tenant.Plan](t)(s.Plan(ctx, "own")), own)
	own.Concurrency, own.Async = 4, false
	must(t, s.PutPlan(ctx, own))
	wantSame(t, get[tenant.Plan](t)(s.Plan(ctx, "own")), own)

	free := get[tenant.Plan](t)(s.Plan(ctx, "free"))
	free.Concurrency, free.BuiltIn = 6, false
	must(t, s.PutPlan(ctx, free))
	free.BuiltIn = true
	wantSame(t, get[tenant.Plan](t)(s.Plan(ctx, "free")), free)
	wantKind(t, "a built-in plan", s.DeletePlan(ctx, "free"), fault.Conflict)

	v := tenant.Tenant{ID: tenant.NewID("ten"), Name: "a", Plan: "own", Tier: tenant.Standard, AuditDays: 1}
	must(t, s.CreateTenant(ctx, v))
	wantKind(t, "a plan in use", s.DeletePlan(ctx, "own"), fault.Conflict)
	_, err := s.ChangeTenant(ctx, v.ID, func(v *tenant.Tenant) ([]tenant.PolicyEvent, error) { v.Plan = "free"; return nil, nil })
	must(t, err)
	must(t, s.DeletePlan(ctx, "own"))
	wantKind(t, "a plan that is gone", s.DeletePlan(ctx, "own"), fault.NotFound)
	_, err = s.Plan(ctx, "own")
	wantKind(t, "a plan that is gone", err, fault.NotFound)
}

func testTemplates(t *testing.T, s tenant.Store) {
	ctx := t.Context()
	a := Tenant(t, s, "a")
	event := tenant.PolicyEvent{Actor: "cli", Field: "template/support", New: "default-public"}
	v := tenant.Template{Tenant: a.ID, Name: "support", Sandbox: tenant.DefaultPublic}
	must(t, s.PutTemplate(ctx, v, event))
	wantSame(t, get[tenant.Template](t)(s.Template(ctx, a.ID, "support")), v)
	v.Sandbox = tenant.InternalOnly
	must(t, s.PutTemplate(ctx, v, event))
	other := tenant.Template{Tenant: a.ID, Name: "billing"}
	must(t, s.PutTemplate(ctx, other, event))
	wantSame(t, get[[]tenant.Template](t)(s.Templates(ctx, a.ID)), []tenant.Template{v, other})
	must(t, s.DeleteTemplate(ctx, a.ID, "billing", event))
	wantKind(t, "a template that is gone", s.DeleteTemplate(ctx, a.ID, "billing", event), fault.NotFound)
	_, err := s.Template(ctx, a.ID, "billing")
	wantKind(t, "a template that is gone", err, fault.NotFound)
	wantKind(t, "no such network", s.PutTemplate(ctx, tenant.Template{Tenant: a.ID, Name: "x", Sandbox: "all"}, event), fault.Invalid)
	wantKind(t, "tenant not found", s.PutTemplate(ctx, tenant.Template{Tenant: "ten_none", Name: "x"}, event), fault.NotFound)
	if events := get[[]tenant.PolicyEvent](t)(s.PolicyEvents(ctx, a.ID)); len(events) != 4 || events[0].Tenant != a.ID {
		t.Errorf("got %+v", events)
	}
}
