// Package requirementtest is the suite that every requirement.Store passes.
package requirementtest

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Store runs the suite. Both stores are of the same records, which are empty.
func Store(t *testing.T, s requirement.Store, tenants tenant.Store) {
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(tenants.PutPlan(ctx, tenant.Plan{Name: "packages"}))
	must(tenants.CreateTenant(ctx, tenant.Tenant{ID: "ten_00000000000000aa", Name: "packages", Plan: "packages", Tier: tenant.Standard, AuditDays: 30}))
	set := requirement.Set{Apt: []string{"jq"}, Pip: []string{"attrs", "six==1.17.0"}, NPM: []string{"@scope/name@1"}}
	for i, of := range []requirement.Set{set, set, {}} { // the second wants the same
		id := "env_00000000000000a" + string(rune('0'+i))
		must(tenants.CreateEnvironment(ctx, tenant.Environment{ID: id, Tenant: "ten_00000000000000aa", Name: id[4:], Image: "default", Limits: runtime.DefaultLimits(), Packages: of}))
	}
	wanted, err := s.Wanted(ctx)
	must(err)
	if !reflect.DeepEqual(wanted, []requirement.Wanted{{Image: "default", Set: set, Tenants: []string{"ten_00000000000000aa"}}}) {
		t.Fatalf("wanted %+v", wanted)
	}
	e, err := tenants.Environment(ctx, "ten_00000000000000aa", "env_00000000000000a0")
	must(err)
	if ref := wanted[0].Ref(); e.RunImage() != ref || !e.Packages.Equal(&set) {
		t.Errorf("the environment has %+v", e.Packages)
	}

	at := time.Now().UTC().Truncate(time.Microsecond)
	one := requirement.Build{Ref: "packages:1", Executor: "exe_a", Image: "packages-1", State: requirement.Building, UpdatedAt: at}
	failed := requirement.Build{Ref: "packages:1", Executor: "exe_b", Image: "packages-2", State: requirement.Failed, Log: []string{"no such package", "x"}, UpdatedAt: at}
	for _, b := range []requirement.Build{one, failed, {Ref: "packages:2", Executor: "exe_a", Image: "packages-3", State: requirement.Ready, UpdatedAt: at}} {
		must(s.Put(ctx, b))
	}
	one.State, one.Log, one.UpdatedAt = requirement.Ready, []string{"done"}, at.Add(time.Second)
	must(s.Put(ctx, one))
	all, err := s.Builds(ctx, "packages:1")
	must(err)
	if !reflect.DeepEqual(all, []requirement.Build{one, failed}) {
		t.Errorf("builds %+v", all)
	}
	must(s.Retry(ctx, "packages:1"))
	if all, err = s.Builds(ctx, "packages:1"); err != nil || !reflect.DeepEqual(all, []requirement.Build{one}) {
		t.Errorf("builds after another try %+v, %v", all, err)
	}
	must(s.Delete(ctx, "packages:2", "exe_a"))
	if all, err = s.Of(ctx, "exe_a"); err != nil || !reflect.DeepEqual(all, []requirement.Build{one}) {
		t.Errorf("builds of an executor %+v, %v", all, err)
	}
	if used, err := s.UsedImages(ctx); err != nil || slices.Contains(used, "packages-1") {
		t.Errorf("used images %q, %v", used, err)
	}
}
