package tenant_test

import (
	"sync"
	"testing"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
)

func TestSetup(t *testing.T) {
	db := storetest.SQLite(t)
	ctx, tenants := t.Context(), db.Tenants()
	first, err := setup(db, "sk-first-development-key").Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	caller := func(key string) tenant.Principal {
		t.Helper()
		p, _, err := tenants.Principal(ctx, tenant.HashKey(key))
		if err != nil {
			t.Errorf("%s: %v", key, err)
		}
		return p
	}
	unknown := func(key string) {
		t.Helper()
		if _, _, err := tenants.Principal(ctx, tenant.HashKey(key)); fault.KindOf(err) != fault.NotFound {
			t.Errorf("%s: %v", key, err)
		}
	}
	if p := caller(first); !p.May(tenant.ScopeAdmin) || p.May(tenant.ScopeExecute) || p.Tenant.Name != tenant.Operator || p.Environment.ID != "" {
		t.Errorf("the admin key is %+v", p)
	}
	dev := caller("sk-first-development-key")
	if dev.May(tenant.ScopeAdmin) || !dev.May(tenant.ScopeTools) || dev.Tenant.Name != tenant.Dev || dev.Plan.Name != "enterprise" || dev.Environment.Env["A"] != "1" {
		t.Errorf("the development key is %+v", dev)
	}
	if tpl, err := tenants.Template(ctx, dev.Tenant.ID, tenant.DefaultName); err != nil || tpl.Sandbox != tenant.InternalOnly {
		t.Errorf("got %+v %v", tpl, err)
	}

	// A key of a version without named sandboxes gets them; one that was narrowed by
	// hand does not.
	for _, c := range []struct {
		scopes []tenant.Scope
		may    bool
	}{{[]tenant.Scope{tenant.ScopeExecute, tenant.ScopeRead, tenant.ScopeTools}, true}, {[]tenant.Scope{tenant.ScopeExecute}, false}} {
		k := dev.Key
		k.Scopes = c.scopes
		if err := tenants.UpdateKey(ctx, k); err != nil {
			t.Fatal(err)
		}
		if _, err := setup(db, "sk-first-development-key").Run(ctx); err != nil {
			t.Fatal(err)
		}
		if p := caller("sk-first-development-key"); p.May(tenant.ScopeSandboxes) != c.may {
			t.Errorf("a key with %v has %v after a start", c.scopes, p.Key.Scopes)
		}
	}

	// Another start, with another configuration.
	s := setup(db, "sk-second-development-key")
	s.Environment.Limits.CPU, s.Environment.Env = 2, nil
	if again, err := s.Run(ctx); err != nil || again != "" {
		t.Errorf("a second start made the key %q (%v)", again, err)
	}
	unknown("sk-first-development-key")
	if p := caller("sk-second-development-key"); p.Environment.ID != dev.Environment.ID || p.Environment.Limits.CPU != 2 || len(p.Environment.Env) != 0 {
		t.Errorf("the environment is %+v", p.Environment)
	}
	// Back to the first, which was not revoked but out of use.
	if _, err := setup(db, "sk-first-development-key").Run(ctx); err != nil {
		t.Fatal(err)
	}
	caller("sk-first-development-key")
	unknown("sk-second-development-key")
	if _, err := setup(db, "").Run(ctx); err != nil {
		t.Fatal(err)
	}
	unknown("sk-first-development-key")

	// What was revoked by hand stays revoked.
	if _, err := setup(db, "sk-first-development-key").Run(ctx); err != nil {
		t.Fatal(err)
	}
	if err := tenants.RevokeKey(ctx, dev.Tenant.ID, dev.Key.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := setup(db, "sk-first-development-key").Run(ctx); err != nil {
		t.Fatal(err)
	}
	unknown("sk-first-development-key")

	// When the last key that administers is lost, the next start makes one.
	operator, err := tenants.Tenant(ctx, tenant.Operator)
	if err != nil {
		t.Fatal(err)
	}
	if err := tenants.RevokeKey(ctx, operator.ID, caller(first).Key.ID); err != nil {
		t.Fatal(err)
	}
	third, err := setup(db, "").Run(ctx)
	if err != nil || third == "" {
		t.Fatalf("got %q %v", third, err)
	}
	caller(third)
	unknown(first)
}

func TestSetupRefusesAKeyOfAnotherTenant(t *testing.T) {
	db := storetest.SQLite(t)
	key, err := setup(db, "").Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := setup(db, key).Run(t.Context()); fault.KindOf(err) != fault.Conflict || err == nil {
		t.Errorf("got %v", err)
	}
}

func TestSetupAtOnce(t *testing.T) {
	db := storetest.SQLite(t)
	var mu sync.Mutex
	var keys []string
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			key, err := setup(db, "sk-the-development-key").Run(t.Context())
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if key != "" {
				keys = append(keys, key)
			}
		})
	}
	wg.Wait()
	if len(keys) != 1 {
		t.Errorf("%d keys that administer were made", len(keys))
	}
	for _, name := range []string{tenant.Dev, tenant.Operator} {
		who, err := db.Tenants().Tenant(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if all, err := db.Tenants().Keys(t.Context(), who.ID); err != nil || len(all) != 1 {
			t.Errorf("%s has %d keys (%v)", name, len(all), err)
		}
	}
}
