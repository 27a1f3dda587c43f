package token_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/agent/mcpclient"
	"github.com/atoll-run/atoll/internal/agent/token"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/vault"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
	"github.com/atoll-run/atoll/test/check"
)

const tenantID, server = "ten_1", "https://mcp.example.com/a"

// open returns a source with a token that has expired, and is refreshed at url.
func open(t *testing.T, url string, allow ...string) (*token.Source, *vault.Credential) {
	t.Helper()
	list, err := outbound.Parse(allow)
	if err != nil {
		t.Fatal(err)
	}
	client := mcpclient.New(list, "test")
	t.Cleanup(client.Close)
	s := &token.Source{Store: storetest.SQLite(t).Vaults(), Client: client.HTTP(), Check: client.CheckURL}
	v := &vault.Vault{ID: vault.NewID(), Tenant: tenantID}
	c := &vault.Credential{ID: vault.NewCredentialID(), Vault: v.ID, Tenant: tenantID, Kind: vault.MCPOAuth, Auth: vault.Auth{
		ServerURL: server, ExpiresAt: time.Now().Add(time.Second), Refresh: &vault.Refresh{ClientID: "client", Endpoint: url, EndpointAuth: vault.AuthNone},
	}}
	if err := errors.Join(s.Store.Create(t.Context(), v, 0), s.Store.Add(t.Context(), c, vault.Secret{Value: "old-token", RefreshToken: "refresh-one"})); err != nil {
		t.Fatal(err)
	}
	return s, c
}

func endpoint(t *testing.T, answer http.HandlerFunc) string {
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	return s.URL
}

// TestOneRefreshes: many that need a token at once have it refreshed once.
func TestOneRefreshes(t *testing.T) {
	var asked atomic.Int64
	var begun sync.WaitGroup
	begun.Add(8)
	s, c := open(t, endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		n := asked.Add(1)
		if r.FormValue("refresh_token") != "refresh-one" || r.FormValue("client_id") != "client" || r.FormValue("grant_type") != "refresh_token" {
			t.Errorf("asked with %v", r.Form)
		}
		begun.Wait()
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":"new-token-%d","token_type":"bearer","expires_in":3600}`, n)
	}), "127.0.0.1")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			begun.Done()
			if got, err := s.Token(t.Context(), tenantID, []vault.ID{c.Vault}, server, ""); err != nil || got != "new-token-1" {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	wg.Wait()
	h, err := s.Store.ForServer(t.Context(), tenantID, []vault.ID{c.Vault}, server)
	if err != nil || asked.Load() != 1 || h.Secret.RefreshToken != "refresh-one" || time.Until(h.Auth.ExpiresAt) < 50*time.Minute {
		t.Errorf("asked %d times, %+v, %v", asked.Load(), h, err)
	}
}

// TestCancelledRefreshes: what an endpoint answers is stored also when the caller has gone, as
// the endpoint may take the old refresh token no more.
func TestCancelledRefreshes(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s, c := open(t, endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		cancel()
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token":"new-token","refresh_token":"refresh-two","token_type":"bearer","expires_in":3600}`)
	}), "127.0.0.1")
	_, err := s.Token(ctx, tenantID, []vault.ID{c.Vault}, server, "")
	h, found := s.Store.ForServer(t.Context(), tenantID, []vault.ID{c.Vault}, server)
	if err != nil || found != nil || h.Secret.Value != "new-token" || h.Secret.RefreshToken != "refresh-two" {
		t.Errorf("%v; %+v, %v", err, h, found)
	}
}

// leasing calls then once, after a try to lease a credential.
type leasing struct {
	vault.Store
	once *sync.Once
	then func()
}

func (s leasing) Lease(ctx context.Context, c *vault.Credential, d time.Duration) (bool, error) {
	got, err := s.Store.Lease(ctx, c, d)
	s.once.Do(s.then)
	return got, err
}

// TestReplacedMeanwhile: a caller that waits for a refresh is given the token of the credential
// that has come in the place of the first one, of the same version.
func TestReplacedMeanwhile(t *testing.T) {
	s, c := open(t, endpoint(t, func(http.ResponseWriter, *http.Request) { t.Error("it was asked") }), "127.0.0.1")
	inner := s.Store
	if got, err := inner.Lease(t.Context(), c, time.Minute); !got || err != nil {
		t.Fatal(got, err)
	}
	s.Store = leasing{inner, new(sync.Once), func() {
		_, err := inner.ArchiveCredential(t.Context(), tenantID, c.Vault, c.ID)
		other := &vault.Credential{ID: vault.NewCredentialID(), Vault: c.Vault, Tenant: tenantID, Kind: vault.StaticBearer, Auth: vault.Auth{ServerURL: server}}
		if err := errors.Join(err, inner.Add(t.Context(), other, vault.Secret{Value: "other-token"})); err != nil {
			t.Error(err)
		}
	}}
	if got, err := s.Token(t.Context(), tenantID, []vault.ID{c.Vault}, server, ""); got != "other-token" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestRefused: what a token endpoint says does not get into errors, and it is asked again later.
func TestRefused(t *testing.T) {
	var next atomic.Value
	next.Store(http.HandlerFunc(nil))
	url := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		next.Load().(http.HandlerFunc)(w, r)
	})
	s, c := open(t, url, "127.0.0.1")
	for want, answer := range map[string]http.HandlerFunc{
		"answers 400: invalid_grant": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(400)
			fmt.Fprint(w, `{"error":"invalid_grant","error_description":"refresh-one"}`)
		},
		"answers 500": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "refresh-one", 500) },
		"answers 307": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
		},
		"another type than bearer": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"access_token":"refresh-one","token_type":"mac"}`)
		},
		"answers with what is no token": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"access_token":"a b","token_type":"bearer"}`)
		},
		"does not answer as OAuth has it": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `refresh-one`) },
	} {
		next.Store(answer)
		got, err := s.Token(t.Context(), tenantID, []vault.ID{c.Vault}, server, "")
		if got != "" || !errors.Is(err, token.ErrRefresh) || fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "refresh-one") {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	h, err := s.Store.ForServer(t.Context(), tenantID, []vault.ID{c.Vault}, server)
	if err != nil || h.Secret.Value != "old-token" {
		t.Errorf("%+v, %v", h, err)
	}
}

// TestFloor: a token endpoint is reached by the rules of MCP servers.
func TestFloor(t *testing.T) {
	url := endpoint(t, func(http.ResponseWriter, *http.Request) { t.Error("it was asked") })
	s, c := open(t, url)
	if _, err := s.Token(t.Context(), tenantID, []vault.ID{c.Vault}, server, ""); !errors.Is(err, token.ErrRefresh) || !strings.Contains(err.Error(), "token_endpoint must begin with https://") {
		t.Errorf("got %v", err)
	}
	s, c = open(t, strings.Replace(url, "http://", "https://", 1))
	if _, err := s.Token(t.Context(), tenantID, []vault.ID{c.Vault}, server, ""); !errors.Is(err, token.ErrRefresh) || !strings.Contains(err.Error(), "must not lead to a private") {
		t.Errorf("got %v", err)
	}
}

func TestAnEndpointsUnknownAuthority(t *testing.T) {
	s, c := open(t, check.UntrustedServer(t).URL, "127.0.0.1")
	_, err := s.Token(t.Context(), tenantID, []vault.ID{c.Vault}, server, "")
	if err == nil || !strings.Contains(err.Error(), "SSL_CERT_FILE") {
		t.Errorf("got %v", err)
	}
}
