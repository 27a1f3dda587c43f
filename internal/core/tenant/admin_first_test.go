package tenant_test

import (
	"testing"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// TestATenantBeginsWithAnEnvironment checks that the first environment's limits fit the plan, and
// that an invalid environment leaves no tenant behind.
func TestATenantBeginsWithAnEnvironment(t *testing.T) {
	w := open(t)
	ctx := t.Context()
	_, err := w.PutPlan(ctx, "key_1", tenant.Plan{Name: "tiny", MaxCPU: 0.5, MaxMemory: 128 << 20, MaxOutput: 1 << 20})
	w.must(err)
	made, e, err := w.CreateTenantWithEnvironment(ctx, "key_1", "acme", "default", tenant.TenantChange{Plan: ptr("tiny")})
	w.must(err)
	if e.Tenant != made.ID || e.Name != "default" || e.Image != "default" || e.Limits.CPU != 0.5 || e.Limits.Memory != 128<<20 {
		t.Errorf("the first environment is %+v", e)
	}
	_, _, err = w.CreateKey(ctx, "key_1", "acme", "default", "first", tenant.KeyChange{})
	w.must(err)
	_, _, err = w.CreateTenantWithEnvironment(ctx, "key_1", "acme", "other", tenant.TenantChange{})
	refused(t, err, fault.Conflict, "acme")
	_, _, err = w.CreateTenantWithEnvironment(ctx, "key_1", "beta", "a b", tenant.TenantChange{})
	refused(t, err, fault.Invalid, "environment name")
	_, err = w.Tenant(ctx, "beta")
	refused(t, err, fault.NotFound, "")

	fields := map[string]string{}
	events, err := w.PolicyEvents(ctx, "acme")
	w.must(err)
	for _, e := range events {
		if e.Actor != "key_1" {
			t.Errorf("%s is by %q", e.Field, e.Actor)
		}
		fields[e.Field] = e.New
	}
	if fields["environment/default"] != "default" || fields["key/first"] != "execute,read,sandboxes,tools" {
		t.Errorf("events %v", fields)
	}
}
