package tenanttest

import (
	"net/netip"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/test/atolltest"
)

func testEnvironments(t *testing.T, s tenant.Store) {
	ctx := t.Context()
	a := Tenant(t, s, "a")
	full := tenant.Environment{
		ID: tenant.NewID("env"), Tenant: a.ID, Name: "full", Image: "default", Limits: runtime.DefaultLimits(),
		Env: map[string]string{"A": "1", "B": "é\n\""}, Secrets: map[string]string{"TOKEN": "s3cret", "EMPTY": ""}, CreatedAt: now(),
		Bound:   map[string]tenant.Binding{"TOKEN": {Hosts: []string{"api.example.com", "*.example.com"}, Placeholder: "p"}},
		Profile: "restricted", Template: "tpl_x", Isolation: "key", Timeout: 90 * time.Second,
		Permissions: runtime.Permissions{
			Network:    runtime.NetworkPolicy{Mode: runtime.NetworkRules, AllowedHosts: []string{"*.example.com"}, AllowedCIDRs: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}, BlockedPorts: []uint16{22}},
			Filesystem: runtime.FilesystemPolicy{Writable: []string{}, ReadOnly: []string{"/data"}, Blocked: []string{"/root"}},
			Process:    runtime.ProcessPolicy{NoExec: true, BlockedCommands: []string{"rm -rf /"}, MaxProcesses: 3},
		},
	}
	must(t, s.CreateEnvironment(ctx, full))
	plain := Environment(t, s, a.ID, "another")
	wantSame(t, get[tenant.Environment](t)(s.Environment(ctx, a.ID, full.ID)), full)
	wantSame(t, get[tenant.Environment](t)(s.Environment(ctx, a.ID, "another")), plain)
	wantSame(t, get[[]tenant.Environment](t)(s.Environments(ctx, a.ID)), []tenant.Environment{full, plain})

	full.Permissions, full.Profile, full.Timeout = runtime.Permissions{}, "", 0
	full.Env, full.Bound, full.Secrets, full.Limits.Memory, full.Name = nil, nil, map[string]string{"OTHER": "x"}, 1<<30, "renamed"
	must(t, s.UpdateEnvironment(ctx, full))
	wantSame(t, get[tenant.Environment](t)(s.Environment(ctx, a.ID, "renamed")), full)
	taken := full
	taken.Name = "another"
	wantKind(t, "a name that is taken", s.UpdateEnvironment(ctx, taken), fault.Conflict)
	taken.ID = tenant.NewID("env")
	wantKind(t, "an environment that does not exist", s.UpdateEnvironment(ctx, taken), fault.NotFound)
	wantKind(t, "a name twice", s.CreateEnvironment(ctx, taken), fault.Conflict)
	taken.Tenant, taken.Name = "ten_none", "x"
	wantKind(t, "tenant not found", s.CreateEnvironment(ctx, taken), fault.NotFound)

	must(t, s.DeleteEnvironment(ctx, a.ID, plain.ID))
	wantKind(t, "an environment that is gone", s.DeleteEnvironment(ctx, a.ID, plain.ID), fault.NotFound)
}

func testTenantWithEnvironment(t *testing.T, s tenant.Store) {
	ctx := t.Context()
	a := Tenant(t, s, "a")
	e := Environment(t, s, a.ID, "main")
	b := a
	b.ID, b.Name = tenant.NewID("ten"), "b"
	e.Tenant = b.ID
	wantKind(t, "an environment whose id is taken", s.CreateTenantWithEnvironment(ctx, b, e), fault.Conflict)
	_, err := s.Tenant(ctx, b.ID)
	wantKind(t, "the tenant of a failed creation", err, fault.NotFound)
	e.ID = tenant.NewID("env")
	must(t, s.CreateTenantWithEnvironment(ctx, b, e))
	wantSame(t, get[tenant.Tenant](t)(s.Tenant(ctx, b.ID)), b)
	wantSame(t, get[tenant.Environment](t)(s.Environment(ctx, b.ID, "main")), e)
}

func testBoundEnvironment(t *testing.T, s tenant.Store) {
	ctx := t.Context()
	e := Environment(t, s, Tenant(t, s, "a").ID, "e")
	past := now().Add(-time.Hour)
	old, _ := Key(t, s, e, "old", func(k *tenant.Key) { k.ExpiresAt = &past })
	living, _ := Key(t, s, e, "living")
	wantKind(t, "with a living key", s.DeleteEnvironment(ctx, e.Tenant, e.ID), fault.Conflict)
	must(t, s.RevokeKey(ctx, e.Tenant, living.ID))
	must(t, s.DeleteEnvironment(ctx, e.Tenant, e.ID))
	// A key whose environment is gone does not come back to life without it.
	old.ExpiresAt = nil
	must(t, s.UpdateKey(ctx, old))
	_, _, err := s.Principal(ctx, old.Hash)
	wantKind(t, "a key without its environment", err, fault.NotFound)
}

func testKeys(t *testing.T, s tenant.Store) {
	ctx := t.Context()
	e := Environment(t, s, Tenant(t, s, "a").ID, "e")
	expires := now().Add(time.Hour)
	full, _ := Key(t, s, e, "full", func(k *tenant.Key) {
		k.Scopes = tenant.Scopes
		k.WebhookURL, k.WebhookSecret, k.ExpiresAt = "https://example.com/?a=b", "whsec_\"x", &expires
		k.Env, k.Secrets = map[string]string{"A": "é\n"}, map[string]string{"TOKEN": "s3cret"}
		k.Bound = map[string]tenant.Binding{"TOKEN": {Hosts: []string{"api.example.com"}, Placeholder: "p"}}
	})
	admin, _ := Key(t, s, tenant.Environment{Tenant: e.Tenant}, "admin", func(k *tenant.Key) { k.Scopes = []tenant.Scope{tenant.ScopeAdmin} })
	wantSame(t, get[tenant.Key](t)(s.Key(ctx, e.Tenant, full.ID)), full)
	wantSame(t, get[tenant.Key](t)(s.Key(ctx, e.Tenant, "admin")), admin)
	wantSame(t, get[[]tenant.Key](t)(s.Keys(ctx, e.Tenant)), []tenant.Key{full, admin})

	full.Name, full.Scopes, full.WebhookURL, full.WebhookSecret, full.ExpiresAt = "renamed", []tenant.Scope{tenant.ScopeRead}, "", "", nil
	must(t, s.UpdateKey(ctx, full))
	wantSame(t, get[tenant.Key](t)(s.Key(ctx, e.Tenant, "renamed")), full)

	again := full
	again.ID, again.Hash = tenant.NewID("key"), tenant.HashKey("x")
	wantKind(t, "a name twice", s.CreateKey(ctx, again), fault.Conflict)
	again.Name, again.Hash = "other", full.Hash
	wantKind(t, "a hash twice", s.CreateKey(ctx, again), fault.Conflict)
	again.Hash = tenant.HashKey("x")
	wantKind(t, "a key that does not exist", s.UpdateKey(ctx, again), fault.NotFound)
	again.Environment = tenant.NewID("env")
	wantKind(t, "environment not found", s.CreateKey(ctx, again), fault.NotFound)
	other := Environment(t, s, Tenant(t, s, "b").ID, "e")
	again.Environment = other.ID
	wantKind(t, "another tenant's environment", s.CreateKey(ctx, again), fault.NotFound)

	must(t, s.RevokeKey(ctx, e.Tenant, full.ID))
	revoked := get[tenant.Key](t)(s.Key(ctx, e.Tenant, full.ID))
	if revoked.RevokedAt == nil || time.Since(*revoked.RevokedAt).Abs() > time.Minute {
		t.Errorf("revoked at %v", revoked.RevokedAt)
	}
	must(t, s.RevokeKey(ctx, e.Tenant, full.ID))
	wantSame(t, get[tenant.Key](t)(s.Key(ctx, e.Tenant, full.ID)), revoked)
	wantKind(t, "a key that does not exist", s.RevokeKey(ctx, e.Tenant, "key_none"), fault.NotFound)
}

func testPrincipal(t *testing.T, s tenant.Store) {
	ctx := t.Context()
	a := Tenant(t, s, "a")
	e := tenant.Environment{ID: tenant.NewID("env"), Tenant: a.ID, Name: "e", Image: "default", Limits: runtime.DefaultLimits(), Secrets: map[string]string{"A": "b"}, CreatedAt: now()}
	must(t, s.CreateEnvironment(ctx, e))
	expires := now().Add(time.Hour)
	k, clear := Key(t, s, e, "k", func(k *tenant.Key) { k.WebhookSecret, k.ExpiresAt = "secret", &expires })
	got, left, err := s.Principal(ctx, tenant.HashKey(clear))
	must(t, err)
	wantSame(t, got, tenant.Principal{Tenant: a, Key: k, Plan: tenant.Plans()[2], Environment: e})
	if left <= 55*time.Minute || left > time.Hour {
		t.Errorf("%v are left", left)
	}
	admin, clear := Key(t, s, tenant.Environment{Tenant: a.ID}, "admin")
	got, left, err = s.Principal(ctx, tenant.HashKey(clear))
	must(t, err)
	wantSame(t, got, tenant.Principal{Tenant: a, Key: admin, Plan: tenant.Plans()[2]})
	if left != 0 {
		t.Errorf("%v are left of what does not expire", left)
	}
	other := tenant.Environment{ID: tenant.NewID("env"), Tenant: a.ID, Name: "other", Image: "default", Limits: runtime.DefaultLimits(), AllowMCP: true, CreatedAt: now()}
	must(t, s.CreateEnvironment(ctx, other))
	must(t, s.Enter(ctx, &got, "other"))
	wantSame(t, got.Environment, other)
	b := Tenant(t, s, "b")
	got.Tenant = b
	wantKind(t, "another tenant's environment", s.Enter(ctx, &got, other.ID), fault.NotFound)
}

func testNoPrincipal(t *testing.T, s tenant.Store) {
	ctx := t.Context()
	a := Tenant(t, s, "a")
	e := Environment(t, s, a.ID, "e")
	refused := func(what, clear string) {
		t.Helper()
		_, _, err := s.Principal(ctx, tenant.HashKey(clear))
		wantKind(t, what, err, fault.NotFound)
	}
	refused("an unknown key", tenant.NewKey())
	past, soon := now().Add(-time.Microsecond), now().Add(300*time.Millisecond)
	_, expired := Key(t, s, e, "expired", func(k *tenant.Key) { k.ExpiresAt = &past })
	refused("an expired key", expired)
	_, expiring := Key(t, s, e, "expiring", func(k *tenant.Key) { k.ExpiresAt = &soon })
	atolltest.Until(t, 10*time.Second, "the key expires", func() bool { // by the store's clock, which need not be ours
		_, left, err := s.Principal(ctx, tenant.HashKey(expiring))
		if err != nil {
			wantKind(t, "a key that has expired meanwhile", err, fault.NotFound)
			return true
		}
		if left <= 0 || left > time.Second {
			t.Fatalf("%v are left", left)
		}
		return false
	})
	k, revoked := Key(t, s, e, "revoked")
	must(t, s.RevokeKey(ctx, a.ID, k.ID))
	refused("a revoked key", revoked)
	_, living := Key(t, s, e, "living")
	_, _, err := s.Principal(ctx, tenant.HashKey(living))
	must(t, err)
	_, err = s.ChangeTenant(ctx, a.ID, func(v *tenant.Tenant) ([]tenant.PolicyEvent, error) { v.DisabledAt = &past; return nil, nil })
	must(t, err)
	refused("a disabled tenant's key", living)
}

func testOthers(t *testing.T, s tenant.Store) {
	ctx := t.Context()
	a, b := Tenant(t, s, "a"), Tenant(t, s, "b")
	e := Environment(t, s, a.ID, "e")
	k, _ := Key(t, s, e, "k")
	must(t, s.PutTemplate(ctx, tenant.Template{Tenant: a.ID, Name: "x"}, tenant.PolicyEvent{}))
	for _, name := range []string{e.ID, e.Name} {
		_, err := s.Environment(ctx, b.ID, name)
		wantKind(t, "an environment", err, fault.NotFound)
	}
	for _, name := range []string{k.ID, k.Name} {
		_, err := s.Key(ctx, b.ID, name)
		wantKind(t, "a key", err, fault.NotFound)
	}
	_, err := s.Template(ctx, b.ID, "x")
	wantKind(t, "a template", err, fault.NotFound)
	wantKind(t, "deleting an environment", s.DeleteEnvironment(ctx, b.ID, e.ID), fault.NotFound)
	wantKind(t, "deleting a template", s.DeleteTemplate(ctx, b.ID, "x", tenant.PolicyEvent{}), fault.NotFound)
	wantKind(t, "revoking a key", s.RevokeKey(ctx, b.ID, k.ID), fault.NotFound)
	theirs, mine := e, k
	theirs.Tenant, mine.Tenant = b.ID, b.ID
	wantKind(t, "changing an environment", s.UpdateEnvironment(ctx, theirs), fault.NotFound)
	wantKind(t, "changing a key", s.UpdateKey(ctx, mine), fault.NotFound)
	if n := len(get[[]tenant.Environment](t)(s.Environments(ctx, b.ID))) + len(get[[]tenant.Key](t)(s.Keys(ctx, b.ID))) + len(get[[]tenant.Template](t)(s.Templates(ctx, b.ID))); n != 0 {
		t.Errorf("%d things of another tenant are listed", n)
	}
}

func testHostile(t *testing.T, s tenant.Store) {
	ctx := t.Context()
	Tenant(t, s, "first")
	for _, text := range Hostile {
		v := Tenant(t, s, text)
		e := tenant.Environment{ID: tenant.NewID("env"), Tenant: v.ID, Name: text, Image: text, Env: map[string]string{text: text}, Secrets: map[string]string{text: text}, CreatedAt: now()}
		must(t, s.CreateEnvironment(ctx, e))
		k, clear := Key(t, s, e, text, func(k *tenant.Key) { k.WebhookURL, k.WebhookSecret, k.Hint = text, text, text })
		got, _, err := s.Principal(ctx, tenant.HashKey(clear))
		must(t, err)
		wantSame(t, got, tenant.Principal{Tenant: v, Key: k, Plan: tenant.Plans()[2], Environment: e})
		wantSame(t, get[tenant.Environment](t)(s.Environment(ctx, v.ID, text)), e)
		_, err = s.Environment(ctx, text, e.ID)
		wantKind(t, "a tenant's name for its id", err, fault.NotFound)
	}
	if n := len(get[[]tenant.Tenant](t)(s.Tenants(ctx))); n != len(Hostile)+1 {
		t.Errorf("there are %d tenants", n)
	}
}

func testNoText(t *testing.T, s tenant.Store) {
	ctx := t.Context()
	a := Tenant(t, s, "a")
	for _, bad := range []string{"a\x00b", "\xff"} {
		wantKind(t, "a tenant's name", s.CreateTenant(ctx, tenant.Tenant{ID: "ten_x", Name: bad, Plan: "free", Tier: tenant.Standard, AuditDays: 1}), fault.Invalid)
		wantKind(t, "a redaction rule", s.CreateTenant(ctx, tenant.Tenant{ID: "ten_x", Name: "x", RedactionOff: []string{bad}, Plan: "free", Tier: tenant.Standard, AuditDays: 1}), fault.Invalid)
		wantKind(t, "a variable", s.CreateEnvironment(ctx, tenant.Environment{ID: "env_x", Tenant: a.ID, Name: "x", Env: map[string]string{"A": bad}}), fault.Invalid)
		wantKind(t, "a secret", s.CreateEnvironment(ctx, tenant.Environment{ID: "env_x", Tenant: a.ID, Name: "x", Secrets: map[string]string{bad: ""}}), fault.Invalid)
		_, err := s.Tenant(ctx, bad)
		wantKind(t, "looking for a tenant", err, fault.Invalid)
	}
}
