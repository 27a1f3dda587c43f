// Package tenanttest is the suite that every tenant.Store passes.
package tenanttest

import (
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/test/check"
)

// Hostile are texts that a store keeps as they are: none of them is special to
// it.
var Hostile = []string{
	`'; DROP TABLE tenants; --`, `" OR ""="`, `a' OR '1'='1`, `\'; --`, `%`, `_`, `?`, `$1`, `:name`, `@p1`, `{{.}}`, "\n\t\r", "\u202e", "ключ", "🗝️", `{"a":1}`, `[]`, `null`,
}

// Store runs the suite. open returns an empty store.
func Store(t *testing.T, open func(t *testing.T) tenant.Store) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, s tenant.Store)
	}{
		{"tenants", testTenants},
		{"a change is whole and alone", testChange},
		{"a change that fails changes nothing", testFailedChange},
		{"a regulated tenant has no sandbox", testRegulated},
		{"policy events are in order", testEvents},
		{"plans", testPlans},
		{"environments", testEnvironments},
		{"a tenant with its environment, or neither", testTenantWithEnvironment},
		{"an environment with living keys stays", testBoundEnvironment},
		{"keys", testKeys},
		{"a caller is found by the hash of the key", testPrincipal},
		{"who may not call is not found", testNoPrincipal},
		{"tokens", testTokens},
		{"the end of a token", testTokenEnds},
		{"tokens of others do not exist", testTokensOfOthers},
		{"connections and their grants", testConnections},
		{"templates", testTemplates},
		{"what is another tenant's does not exist", testOthers},
		{"hostile text is text", testHostile},
		{"text that is none is refused", testNoText},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

var (
	must     = check.Must
	wantKind = check.Kind
	wantSame = check.Same
)

func get[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		must(t, err)
		return v
	}
}

// now is a time a store can keep.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// Tenant makes a tenant.
func Tenant(t testing.TB, s tenant.Store, name string) tenant.Tenant {
	t.Helper()
	v := tenant.Tenant{ID: tenant.NewID("ten"), Name: name, Plan: "enterprise", Tier: tenant.Standard, AuditDays: 30, CreatedAt: now()}
	if err := s.CreateTenant(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	return v
}

// Environment makes an environment.
func Environment(t testing.TB, s tenant.Store, of tenant.ID, name string) tenant.Environment {
	t.Helper()
	v := tenant.Environment{ID: tenant.NewID("env"), Tenant: of, Name: name, Image: "default", Limits: runtime.DefaultLimits(), CreatedAt: now()}
	if err := s.CreateEnvironment(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	return v
}

// Key makes a key and returns it with what its owner would present.
func Key(t testing.TB, s tenant.Store, e tenant.Environment, name string, change ...func(*tenant.Key)) (tenant.Key, string) {
	t.Helper()
	clear := tenant.NewKey()
	v := tenant.Key{ID: tenant.NewID("key"), Tenant: e.Tenant, Environment: e.ID, Name: name, Hash: tenant.HashKey(clear), Hint: clear[len(clear)-4:], Scopes: tenant.DefaultScopes, CreatedAt: now()}
	for _, f := range change {
		f(&v)
	}
	if err := s.CreateKey(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	return v, clear
}
