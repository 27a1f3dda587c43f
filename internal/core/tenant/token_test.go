package tenant_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

func TestTokenNames(t *testing.T) {
	key := tenant.NewID("key")
	id := tenant.NewTokenID(key)
	if !tenant.IsToken(id) || tenant.IsToken(key) || tenant.KeyOf(id) != key || tenant.KeyOf(key) != key {
		t.Errorf("%s of %s: KeyOf %s", id, key, tenant.KeyOf(id))
	}
	if tenant.NewTokenID(key) == id {
		t.Error("two tokens have one id")
	}
	text := tenant.NewToken()
	if hash, ok := tenant.ParseToken(text); !ok || hash != tenant.HashKey(text) {
		t.Errorf("%s is not read as a token", text)
	}
}

func FuzzParseToken(f *testing.F) {
	for _, text := range []string{"", tenant.TokenPrefix, tenant.NewToken(), tenant.NewKey(), strings.ToUpper(tenant.NewToken()), tenant.NewToken() + "0", " " + tenant.NewToken(), tenant.TokenPrefix + strings.Repeat("é", 20)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		hash, ok := tenant.ParseToken(text)
		digits, has := strings.CutPrefix(text, tenant.TokenPrefix)
		want := has && len(digits) == 40 && !strings.ContainsFunc(digits, func(r rune) bool { return !strings.ContainsRune("0123456789abcdef", r) })
		if ok != want || ok == (hash == [32]byte{}) {
			t.Errorf("%q: %v, want %v", text, ok, want)
		}
	})
}

func FuzzCheckOrigin(f *testing.F) {
	for _, good := range []string{"https://app.example.com", "http://localhost:5173", "https://a.b:8443", "http://[::1]:3000", "http://127.0.0.1", "https://xn--bcher-kva.example"} {
		if err := tenant.CheckOrigin(good); err != nil {
			f.Errorf("%s is refused: %v", good, err)
		}
		f.Add(good)
	}
	for _, bad := range []string{
		"", "*", "null", "app.example.com", "https://", "https://App.example.com", "https://app.example.com/", "https://app.example.com:443", "http://app.example.com:80", "ftp://a.b", "https://a.b:",
		"https://a.b:0", "https://a.b:99999", "https://a.b:01", "https://*.example.com", "https://u@a.b", "https://a..b", "https://a.b.", "https://[::1", "https://[::1%eth0]", "https://a.b?c", "https://a.b#c", "https://a b",
	} {
		if tenant.CheckOrigin(bad) == nil {
			f.Errorf("%q is taken", bad)
		}
		f.Add(bad)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if tenant.CheckOrigin(text) != nil {
			return
		}
		u, err := url.Parse(text)
		if err != nil || u.Scheme+"://"+u.Host != text || u.User != nil || u.Hostname() == "" {
			t.Errorf("%q is taken as an origin: %v, %v", text, u, err)
		}
	})
}

func TestNarrowAddsNothing(t *testing.T) {
	late, soon := time.Now().Add(time.Hour), time.Now().Add(time.Minute)
	of := func(expires *time.Time, scopes ...tenant.Scope) *tenant.Principal {
		return &tenant.Principal{Key: tenant.Key{ID: "key_1", Scopes: scopes, ExpiresAt: expires, Name: "k"}}
	}
	for name, c := range map[string]struct {
		p       *tenant.Principal
		token   []tenant.Scope
		want    []tenant.Scope
		expires time.Time
	}{
		"a part":                     {of(nil, "execute", "read", "tools"), []tenant.Scope{"read"}, []tenant.Scope{"read"}, late},
		"what the key has lost":      {of(nil, "execute"), []tenant.Scope{"execute", "read"}, []tenant.Scope{"execute"}, late},
		"what no token has":          {of(nil, "admin", "environments", "read"), []tenant.Scope{"admin", "environments", "read"}, []tenant.Scope{"read"}, late},
		"a key that expires earlier": {of(&soon, "read"), []tenant.Scope{"read"}, []tenant.Scope{"read"}, soon},
	} {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(c.p.Key.Scopes)
			scopes := c.p.Key.Scopes
			c.p.Narrow(&tenant.Token{ID: "tok_1_2", Scopes: c.token, ExpiresAt: late})
			if !slices.Equal(c.p.Key.Scopes, c.want) || !c.p.Key.ExpiresAt.Equal(c.expires) || c.p.KeyID() != "key_1" || c.p.Key.ID != "tok_1_2" {
				t.Errorf("%+v", c.p.Key)
			}
			if !slices.Equal(scopes, before) {
				t.Error("the key's own list was changed")
			}
		})
	}
}

func TestTokenSandbox(t *testing.T) {
	s := tenant.TokenSandbox{ID: "sb-0123456789abcdef", Session: "s", Name: "work"}
	for _, c := range []struct {
		session, name string
		want          bool
	}{{"s", "work", true}, {"other", "work", false}, {"default", s.ID, true}, {"s", "other", false}, {"s", "", false}} {
		if got := s.Is(c.session, c.name); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestTokensOfTokens(t *testing.T) {
	p := &tenant.Principal{Key: tenant.Key{Scopes: tenant.DefaultScopes}, Token: &tenant.Token{}}
	tokens := tenant.NewTokens(nil, nil)
	_, _, err := tokens.Create(t.Context(), p, tenant.Token{Scopes: []tenant.Scope{"read"}}, time.Minute)
	_, _, listed := tokens.List(t.Context(), p, "", 1)
	for _, err := range []error{err, listed, tokens.Revoke(t.Context(), p, "tok_1_2")} {
		if fault.KindOf(err) != fault.Forbidden {
			t.Errorf("%v", err)
		}
	}
}
