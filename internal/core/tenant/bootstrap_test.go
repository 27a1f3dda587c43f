package tenant_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
)

func TestSetup(t *testing.T) {
	db := storetest.SQLite(t)
	ctx, tenants := t.Context(), db.Tenants()
	first, err := begin(ctx, setup(db, "sk-first-development-key"))
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
		if err := setup(db, "sk-first-development-key").Run(ctx); err != nil {
			t.Fatal(err)
		}
		if p := caller("sk-first-development-key"); p.May(tenant.ScopeSandboxes) != c.may {
			t.Errorf("a key with %v has %v after a start", c.scopes, p.Key.Scopes)
		}
	}

	// Another start, with another configuration.
	s := setup(db, "sk-second-development-key")
	s.Environment.Limits.CPU, s.Environment.Env = 2, nil
	if again, err := begin(ctx, s); err != nil || again != "" {
		t.Errorf("a second start made the key %q (%v)", again, err)
	}
	unknown("sk-first-development-key")
	if p := caller("sk-second-development-key"); p.Environment.ID != dev.Environment.ID || p.Environment.Limits.CPU != 2 || len(p.Environment.Env) != 0 {
		t.Errorf("the environment is %+v", p.Environment)
	}
	// Back to the first, which was not revoked but out of use.
	if err := setup(db, "sk-first-development-key").Run(ctx); err != nil {
		t.Fatal(err)
	}
	caller("sk-first-development-key")
	unknown("sk-second-development-key")
	if err := setup(db, "").Run(ctx); err != nil {
		t.Fatal(err)
	}
	unknown("sk-first-development-key")

	// What was revoked by hand stays revoked.
	if err := setup(db, "sk-first-development-key").Run(ctx); err != nil {
		t.Fatal(err)
	}
	if err := tenants.RevokeKey(ctx, dev.Tenant.ID, dev.Key.ID); err != nil {
		t.Fatal(err)
	}
	if err := setup(db, "sk-first-development-key").Run(ctx); err != nil {
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
	third, err := begin(ctx, setup(db, ""))
	if err != nil || third == "" {
		t.Fatalf("got %q %v", third, err)
	}
	caller(third)
	unknown(first)
}

func TestSetupRefusesAKeyOfAnotherTenant(t *testing.T) {
	db := storetest.SQLite(t)
	key, err := begin(t.Context(), setup(db, ""))
	if err != nil {
		t.Fatal(err)
	}
	if err := setup(db, key).Run(t.Context()); fault.KindOf(err) != fault.Conflict || err == nil {
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
			key, err := begin(t.Context(), setup(db, "sk-the-development-key"))
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

// TestAdminKeyIsKeptBeforeItIsStored checks that no valid admin key exists that its owner has not
// got.
func TestAdminKeyIsKeptBeforeItIsStored(t *testing.T) {
	db := storetest.SQLite(t)
	ctx, s := t.Context(), setup(db, "")
	if err := s.Run(ctx); err != nil {
		t.Fatal(err)
	}
	operator, err := db.Tenants().Tenant(ctx, tenant.Operator)
	if err != nil {
		t.Fatal(err)
	}
	count := func() int {
		t.Helper()
		keys, err := db.Tenants().Keys(ctx, operator.ID)
		if err != nil {
			t.Fatal(err)
		}
		return len(keys)
	}
	if n := count(); n != 0 {
		t.Fatalf("a start that has not succeeded made %d admin keys", n)
	}
	full := errors.New("no space left")
	if _, err := s.AdminKey(ctx, func(string) (func() error, error) { return nil, full }); !errors.Is(err, full) || count() != 0 {
		t.Errorf("a key that could not be kept: %v, %d keys stored", err, count())
	}
	stored := -1
	var kept string
	key, err := s.AdminKey(ctx, func(key string) (func() error, error) {
		kept, stored = key, count()
		return func() error { return nil }, nil
	})
	if err != nil || key != kept || stored != 0 || count() != 1 {
		t.Errorf("got %q, kept %q with %d keys stored, %v", key, kept, stored, err)
	}
	dying, cancel := context.WithCancel(ctx)
	discarded := false
	if _, _, err := tenant.RecoverAdminKey(dying, db.Tenants(), "host:t", false, func(string) (func() error, error) {
		cancel()
		return func() error { discarded = true; return nil }, nil
	}); err == nil || !discarded || count() != 1 {
		t.Errorf("a store that failed: %v, discarded %v", err, discarded)
	}
}

func TestRecoverAdminKey(t *testing.T) {
	db := storetest.SQLite(t)
	ctx := t.Context()
	first, err := begin(ctx, setup(db, ""))
	if err != nil {
		t.Fatal(err)
	}
	valid := func(key string) bool {
		_, _, err := db.Tenants().Principal(ctx, tenant.HashKey(key))
		return err == nil
	}
	k, second, err := tenant.RecoverAdminKey(ctx, db.Tenants(), "host:ada", false, nil)
	if err != nil || !valid(first) || !valid(second) {
		t.Fatalf("got %v; the first key valid: %v, the second: %v", err, valid(first), valid(second))
	}
	if _, third, err := tenant.RecoverAdminKey(ctx, db.Tenants(), "host:ada", true, nil); err != nil || valid(first) || valid(second) || !valid(third) {
		t.Errorf("got %v; valid are %v %v %v", err, valid(first), valid(second), valid(third))
	}
	events, err := db.Tenants().PolicyEvents(ctx, k.Tenant)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range events {
		if e.Actor == "host:ada" {
			got = append(got, e.Field+" "+e.New)
		}
	}
	if want := []string{"key/recovered-2 admin", "key/recovered-3 admin", "key/admin-1 revoked", "key/recovered-2 revoked"}; !slices.Equal(got, want) {
		t.Errorf("recorded are %q", got)
	}
}
