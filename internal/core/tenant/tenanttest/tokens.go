package tenanttest

import (
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// token makes a token of a key, and returns it with its hash.
func token(t *testing.T, s tenant.Store, k tenant.Key, change ...func(*tenant.Token)) tenant.Token {
	t.Helper()
	v := tenant.Token{ID: tenant.NewTokenID(k.ID), Tenant: k.Tenant, Key: k.ID, Hash: tenant.HashKey(tenant.NewToken()), Scopes: []tenant.Scope{"execute", "read"}}
	for _, f := range change {
		f(&v)
	}
	return get[tenant.Token](t)(s.CreateToken(t.Context(), v, time.Hour, 10, tenant.KeepTokens))
}

func testTokens(t *testing.T, s tenant.Store) {
	ctx := t.Context()
	e := Environment(t, s, Tenant(t, s, "a").ID, "e")
	k, _ := Key(t, s, e, "k")
	full := token(t, s, k, func(v *tenant.Token) {
		v.Operations, v.Session, v.Origins = []string{"runProgram"}, "sess_1", []string{"https://app.example.com"}
		v.Rights = []tenant.TokenRight{tenant.RightConfirm}
		v.Sandbox, v.MaxCost, v.MaxExecutions = tenant.TokenSandbox{ID: "sb-1", Session: "s ü", Name: "n"}, 5_000_000, 3
	})
	if life := full.ExpiresAt.Sub(full.CreatedAt); life != time.Hour {
		t.Errorf("it lives for %v", life)
	}
	p, left, err := s.Bearer(ctx, full.Hash)
	must(t, err)
	wantSame(t, *p.Token, full)
	if p.Key.ID != full.ID || p.KeyID() != k.ID || p.Environment.ID != e.ID || left <= 59*time.Minute || left > time.Hour || !p.May("read") || p.May("tools") {
		t.Errorf("%+v for %v", p.Key, left)
	}
	if _, _, err := s.Principal(ctx, full.Hash); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a token is found as a key: %v", err)
	}
	if _, _, err := s.Bearer(ctx, k.Hash); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a key is found as a token: %v", err)
	}
	used, most, err := s.TokenSpent(ctx, full.ID)
	must(t, err)
	if used != 0 || most != 5_000_000 {
		t.Errorf("spent %v of %v", used, most)
	}

	second := token(t, s, k)
	page, next, err := s.Tokens(ctx, k.Tenant, k.ID, "", 1)
	must(t, err)
	wantSame(t, page, []tenant.Token{second})
	page, next, err = s.Tokens(ctx, k.Tenant, k.ID, next, 1)
	must(t, err)
	wantSame(t, page, []tenant.Token{full})
	if next != "" {
		t.Error("the list continues behind its end")
	}
	_, err = s.CreateToken(ctx, tenant.Token{ID: "tok_1_1", Tenant: k.Tenant, Key: k.ID, Hash: [32]byte{1}, Scopes: full.Scopes}, time.Hour, 2, time.Hour)
	wantKind(t, "one more than a key may have", err, fault.Exhausted)

	revoked := get[tenant.Token](t)(s.RevokeToken(ctx, k.Tenant, k.ID, full.ID))
	if revoked.RevokedAt == nil {
		t.Error("it is not revoked")
	}
	wantSame(t, get[tenant.Token](t)(s.RevokeToken(ctx, k.Tenant, k.ID, full.ID)), revoked)
	_, _, err = s.Bearer(ctx, full.Hash)
	wantKind(t, "a revoked token", err, fault.NotFound)
	_, err = s.TokenHolder(ctx, k.Tenant, full.ID, true)
	wantKind(t, "work of a revoked token", err, fault.NotFound)

	must(t, s.RevokeKey(ctx, k.Tenant, k.ID))
	_, _, err = s.Bearer(ctx, second.Hash)
	wantKind(t, "a token whose key is revoked", err, fault.NotFound)
	_, err = s.TokenHolder(ctx, k.Tenant, second.ID, true)
	wantKind(t, "work of a token whose key is revoked", err, fault.NotFound)
	_, err = s.CreateToken(ctx, tenant.Token{ID: "tok_1_2", Tenant: k.Tenant, Key: k.ID, Hash: [32]byte{2}, Scopes: full.Scopes}, time.Hour, 10, time.Hour)
	wantKind(t, "a token of a revoked key", err, fault.NotFound)
}

func testTokenEnds(t *testing.T, s tenant.Store) {
	ctx := t.Context()
	e := Environment(t, s, Tenant(t, s, "a").ID, "e")
	k, _ := Key(t, s, e, "k", func(k *tenant.Key) { k.Scopes = []tenant.Scope{"execute", "read", "tools"} })
	old := tenant.Token{ID: tenant.NewTokenID(k.ID), Tenant: k.Tenant, Key: k.ID, Hash: [32]byte{1}, Scopes: []tenant.Scope{"execute", "read"}}
	// It has expired before it is made: what has become of it in time.
	old = get[tenant.Token](t)(s.CreateToken(ctx, old, -time.Minute, 10, time.Hour))
	_, _, err := s.Bearer(ctx, old.Hash)
	wantKind(t, "an expired token", err, fault.NotFound)
	_, err = s.TokenHolder(ctx, k.Tenant, old.ID, false)
	wantKind(t, "the holder of an expired token", err, fault.NotFound)
	p := get[tenant.Principal](t)(s.TokenHolder(ctx, k.Tenant, old.ID, true))
	if !p.May("execute") || p.May("tools") {
		t.Errorf("work that it began has the scopes %v", p.Key.Scopes)
	}

	k.Scopes = []tenant.Scope{"read", "tools"}
	must(t, s.UpdateKey(ctx, k))
	p = get[tenant.Principal](t)(s.TokenHolder(ctx, k.Tenant, old.ID, true))
	if p.May("execute") || !p.May("read") {
		t.Errorf("after its key was narrowed it has the scopes %v", p.Key.Scopes)
	}

	token(t, s, k, func(v *tenant.Token) { v.Hash = [32]byte{2} })
	p = get[tenant.Principal](t)(s.TokenHolder(ctx, k.Tenant, old.ID, true))
	if p.Token.ID != old.ID {
		t.Error("another token was found")
	}
	_, err = s.CreateToken(ctx, tenant.Token{ID: tenant.NewTokenID(k.ID), Tenant: k.Tenant, Key: k.ID, Hash: [32]byte{3}, Scopes: old.Scopes}, time.Hour, 10, time.Second)
	must(t, err)
	_, err = s.TokenHolder(ctx, k.Tenant, old.ID, true)
	wantKind(t, "a token that expired long ago", err, fault.NotFound)
}

func testTokensOfOthers(t *testing.T, s tenant.Store) {
	ctx := t.Context()
	a, b := Environment(t, s, Tenant(t, s, "a").ID, "e"), Environment(t, s, Tenant(t, s, "b").ID, "e")
	mine, _ := Key(t, s, a, "mine")
	sibling, _ := Key(t, s, a, "sibling")
	theirs, _ := Key(t, s, b, "theirs")
	v := token(t, s, mine)
	for _, other := range []tenant.Key{sibling, theirs} {
		_, err := s.RevokeToken(ctx, other.Tenant, other.ID, v.ID)
		wantKind(t, "revoking another key's token", err, fault.NotFound)
		page, _, err := s.Tokens(ctx, other.Tenant, other.ID, "", 10)
		must(t, err)
		if len(page) != 0 {
			t.Error("another key's tokens are listed")
		}
	}
	_, err := s.TokenHolder(ctx, theirs.Tenant, v.ID, true)
	wantKind(t, "another tenant's token", err, fault.NotFound)
	_, _, err = s.Tokens(ctx, theirs.Tenant, mine.ID, "", 10)
	must(t, err)
	_, err = s.CreateToken(ctx, tenant.Token{ID: "tok_1_1", Tenant: theirs.Tenant, Key: mine.ID, Hash: [32]byte{1}, Scopes: v.Scopes}, time.Hour, 10, time.Hour)
	wantKind(t, "a token of another tenant's key", err, fault.NotFound)
	used, most, err := s.TokenSpent(ctx, "tok_none_1")
	must(t, err)
	if used != 0 || most != 0 {
		t.Error("a token that is not there has a bound")
	}
}
