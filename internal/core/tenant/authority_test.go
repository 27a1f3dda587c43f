package tenant_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
	"github.com/atoll-run/atoll/test/atolltest"
)

// answers is a store of one answer that counts how often it is asked.
type answers struct {
	asked atomic.Int64
	mu    sync.Mutex
	left  time.Duration
	err   error
	while func() // runs while the store is asked
}

func (s *answers) Key(context.Context, tenant.ID, string) (tenant.Key, error) {
	return tenant.Key{}, s.err
}

func (s *answers) Enter(context.Context, *tenant.Principal, string) error { return s.err }

func (s *answers) Principal(context.Context, [32]byte) (tenant.Principal, time.Duration, error) {
	s.asked.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.while != nil {
		s.while()
	}
	return tenant.Principal{Key: tenant.Key{ID: "key_1"}}, s.left, s.err
}

func (s *answers) Bearer(context.Context, [32]byte) (tenant.Principal, time.Duration, error) {
	return tenant.Principal{}, 0, s.err
}

func (s *answers) TokenHolder(context.Context, tenant.ID, string, bool) (tenant.Principal, error) {
	return tenant.Principal{}, s.err
}

func (s *answers) set(left time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left, s.err = left, err
}

// ask authenticates once and says whether the store was asked for it.
func ask(t *testing.T, a *tenant.Authority, s *answers, token string, want fault.Kind) (asked bool) {
	t.Helper()
	before := s.asked.Load()
	_, err := a.Authenticate(t.Context(), token)
	if got := fault.KindOf(err); (err == nil) != (want == 0) || err != nil && got != want {
		t.Errorf("%s: %v, want kind %d", token, err, want)
	}
	return s.asked.Load() > before
}

func TestAuthorityRemembersForAWhile(t *testing.T) {
	notFound := fault.New(fault.NotFound, "key not found")
	for _, c := range []struct {
		name string
		left time.Duration
		err  error
		kind fault.Kind
		kept time.Duration
	}{
		{"for ever", 0, nil, 0, 10 * time.Second},
		{"for long", time.Hour, nil, 0, 10 * time.Second},
		{"not for long", 3 * time.Second, nil, 0, 3 * time.Second},
		{"unknown", 0, notFound, fault.Unauthorized, 10 * time.Second},
		{"not to be had", 0, errors.New("the database is away"), fault.Unavailable, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &answers{left: c.left, err: c.err}
				a := tenant.NewAuthority(s)
				if !ask(t, a, s, "k", c.kind) {
					t.Error("the store was not asked the first time")
				}
				if c.kept > 0 {
					time.Sleep(c.kept - 1)
					if ask(t, a, s, "k", c.kind) {
						t.Error("asked again too early")
					}
					time.Sleep(time.Nanosecond)
				}
				if !ask(t, a, s, "k", c.kind) {
					t.Error("not asked again")
				}
			})
		})
	}
}

func TestAuthorityForgets(t *testing.T) {
	s := &answers{}
	a := tenant.NewAuthority(s)
	ask(t, a, s, "k", 0)
	s.set(0, fault.New(fault.NotFound, "revoked"))
	a.Forget()
	if !ask(t, a, s, "k", fault.Unauthorized) {
		t.Error("a revoked key was accepted")
	}

	// What was read before a change is not kept after it.
	s.set(0, nil)
	a.Forget()
	s.mu.Lock()
	s.while = a.Forget
	s.mu.Unlock()
	ask(t, a, s, "k", 0)
	if !ask(t, a, s, "k", 0) {
		t.Error("an answer from before a change was kept")
	}
}

func TestAuthorityIsBounded(t *testing.T) {
	s := &answers{}
	a := tenant.NewAuthority(s)
	ask(t, a, s, "good", 0)
	s.set(0, fault.New(fault.NotFound, "unknown"))
	for i := range 20_000 {
		ask(t, a, s, fmt.Sprint("guess ", i), fault.Unauthorized)
	}
	if good, bad := a.Cached(); good != 1 || bad != 10_000 {
		t.Errorf("%d good and %d bad keys are cached", good, bad)
	}
	if ask(t, a, s, "good", 0) {
		t.Error("guesses pushed out a key that is in use")
	}
	s.set(0, nil)
	for i := range 20_000 {
		ask(t, a, s, fmt.Sprint("real ", i), 0)
	}
	if good, _ := a.Cached(); good != 10_000 {
		t.Errorf("%d good keys are cached", good)
	}
}

func TestAuthorityAnswersAlike(t *testing.T) {
	w := open(t)
	acme := w.tenant("acme", tenant.TenantChange{})
	e := w.environment("acme", "e")
	hour := time.Now().Add(time.Hour)
	_, living, err := w.CreateKey(t.Context(), "", "acme", e.ID, "living", tenant.KeyChange{ExpiresAt: &hour})
	w.must(err)
	_, revoked, err := w.CreateKey(t.Context(), "", "acme", e.Name, "revoked", tenant.KeyChange{})
	w.must(err)
	lives := func(key string) error {
		p, err := w.authority.Authenticate(t.Context(), key)
		if err == nil && (p.Tenant.ID != acme.ID || p.Environment.ID != e.ID || p.Plan.Name != "free") {
			t.Errorf("got %+v", p)
		}
		return err
	}
	w.must(lives(living))
	w.must(lives(revoked))
	var expires string
	for life := 500 * time.Millisecond; ; life *= 2 { // longer, where making a key takes that long
		soon := time.Now().Add(life)
		_, expires, err = w.CreateKey(t.Context(), "", "acme", e.Name, fmt.Sprintf("expires-%d", life), tenant.KeyChange{ExpiresAt: &soon})
		if err == nil {
			err = lives(expires)
		}
		if err == nil {
			break
		}
		if time.Now().Before(soon) {
			t.Fatal(err)
		}
	}
	_, err = w.RevokeKey(t.Context(), "", "acme", "revoked")
	w.must(err)
	same := func(key string) {
		t.Helper()
		_, err := w.authority.Authenticate(t.Context(), key)
		if fault.KindOf(err) != fault.Unauthorized || err.Error() != "invalid API key" {
			t.Errorf("got %v", err)
		}
	}
	same("")
	same("sk-atoll-0000000000000000000000000000000000000000")
	same(revoked) // at once
	// By the database's clock, which need not be ours.
	atolltest.Until(t, 10*time.Second, "the key expires", func() bool {
		_, err := w.authority.Authenticate(t.Context(), expires)
		return err != nil
	})
	same(expires)
	on := true
	_, err = w.ChangeTenant(t.Context(), "key_1", "acme", tenant.TenantChange{Disabled: &on})
	w.must(err)
	same(living)
	on = false
	_, err = w.ChangeTenant(t.Context(), "key_1", "acme", tenant.TenantChange{Disabled: &on})
	w.must(err)
	if _, err := w.authority.Authenticate(t.Context(), living); err != nil {
		t.Errorf("a tenant that is back is refused: %v", err)
	}
}

// TestTokenShownAsKey: where only keys are good, a token is refused, and stays good elsewhere.
func TestTokenShownAsKey(t *testing.T) {
	s := &answers{}
	a, token := tenant.NewAuthority(s), tenant.NewToken()
	if ask(t, a, s, token, fault.Unauthorized) {
		t.Error("the store is asked for a key that is a token")
	}
	if _, err := a.AuthenticateToken(t.Context(), token); err != nil {
		t.Errorf("the token is refused after it was shown as a key: %v", err)
	}
	if ask(t, a, s, token, fault.Unauthorized); s.asked.Load() != 0 {
		t.Error("a token that is remembered is good as a key")
	}
}

func TestKeysAreRefusedWithoutADatabase(t *testing.T) {
	db := storetest.SQLite(t)
	a := tenant.NewAuthority(db.Tenants())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Authenticate(ctx, "sk-atoll-x"); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("got %v", err)
	}
	if _, err := db.SQL().ExecContext(t.Context(), `ALTER TABLE keys RENAME TO gone`); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Authenticate(t.Context(), "sk-atoll-x"); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("got %v", err)
	}
}

func TestAuthorityAtOnce(t *testing.T) {
	s := &answers{}
	a := tenant.NewAuthority(s)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 2000 {
				if _, err := a.Authenticate(context.Background(), fmt.Sprint((i+n)%50)); err != nil {
					t.Error(err)
				}
				if n%500 == 0 {
					a.Forget()
				}
			}
		})
	}
	wg.Wait()
}

// TestVariablesAreMergedOnce checks that a remembered caller's variables are one
// map, and anew after a change.
func TestVariablesAreMergedOnce(t *testing.T) {
	w := open(t)
	ctx := t.Context()
	w.tenant("acme", tenant.TenantChange{})
	_, err := w.CreateEnvironment(ctx, "", "acme", "e", tenant.EnvironmentChange{Variables: tenant.VariablesChange{Env: map[string]string{"A": "a"}, Secrets: map[string]string{"S": "a secret"}}})
	w.must(err)
	_, key, err := w.CreateKey(ctx, "", "acme", "e", "k", tenant.KeyChange{})
	w.must(err)
	variables := func() map[string]string {
		p, err := w.authority.Authenticate(ctx, key)
		w.must(err)
		return p.Environment.Variables()
	}
	first := variables()
	if len(first) != 2 || first["A"] != "a" || first["S"] != "a secret" {
		t.Errorf("got %v", first)
	}
	if reflect.ValueOf(first).Pointer() != reflect.ValueOf(variables()).Pointer() {
		t.Error("they were merged again")
	}
	_, err = w.ChangeEnvironment(ctx, "acme", "e", tenant.EnvironmentChange{Variables: tenant.VariablesChange{Env: map[string]string{"A": "b"}}})
	w.must(err)
	if v := variables(); v["A"] != "b" || first["A"] != "a" {
		t.Errorf("after a change: %v", v)
	}
}

// TestKeyVariablesWin checks the order of the levels that are known before a
// request: the key's over the environment's, whatever kind each is of.
func TestKeyVariablesWin(t *testing.T) {
	w := open(t)
	ctx := t.Context()
	w.tenant("acme", tenant.TenantChange{})
	_, err := w.CreateEnvironment(ctx, "", "acme", "e", tenant.EnvironmentChange{Variables: tenant.VariablesChange{
		Env: map[string]string{"A": "environment", "B": "environment"}, Secrets: map[string]string{"S": "environment-secret", "T": "another-secret"},
	}})
	w.must(err)
	k, key, err := w.CreateKey(ctx, "", "acme", "e", "k", tenant.KeyChange{Variables: tenant.VariablesChange{
		Env: map[string]string{"B": "key", "S": "plain now"}, Secrets: map[string]string{"K": "key-secret"},
	}})
	w.must(err)
	if k.Env["B"] != "key" || k.Secrets["K"] != "key-secret" {
		t.Errorf("kept are %v and %v", k.Env, k.Secrets)
	}
	p, err := w.authority.Authenticate(ctx, key)
	w.must(err)
	want := map[string]string{"A": "environment", "B": "key", "S": "plain now", "T": "another-secret", "K": "key-secret"}
	if got := p.Variables(); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := p.Secrets(), []string{"another-secret", "key-secret"}; !slices.Equal(got, want) {
		t.Errorf("secrets are %v, want %v", got, want)
	}
	_, err = w.ChangeKey(ctx, "acme", "k", tenant.KeyChange{Variables: tenant.VariablesChange{Unset: []string{"B", "K"}}})
	w.must(err)
	if p, err = w.authority.Authenticate(ctx, key); err != nil || p.Variables()["B"] != "environment" || p.Variables()["K"] != "" {
		t.Errorf("after taking away: %v, %v", p.Variables(), err)
	}
	for name, c := range map[string]tenant.VariablesChange{
		"reserved": {Env: map[string]string{"PATH": "/"}}, "uppercase": {Env: map[string]string{"a": "1"}},
		"at least 8": {Secrets: map[string]string{"A": "short"}}, "in both env_vars and secrets": {Env: map[string]string{"A": "12345678"}, Secrets: map[string]string{"A": "12345678"}},
	} {
		_, err := w.ChangeKey(ctx, "acme", "k", tenant.KeyChange{Variables: c})
		refused(t, err, fault.Invalid, name)
	}
}
