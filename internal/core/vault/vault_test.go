package vault_test

import (
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/vault"
)

func TestServerIdentity(t *testing.T) {
	for _, same := range [][]string{
		{"https://mcp.example.com/a", "HTTPS://MCP.example.com:443/a/", "https://mcp.example.com./a"},
		{"http://h", "http://h:80/", "HTTP://H"},
		{"https://h:8443/a?x=1", "https://H:8443/a/?x=1"},
	} {
		want, err := vault.ServerIdentity(same[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, url := range same[1:] {
			if got, err := vault.ServerIdentity(url); err != nil || got != want {
				t.Errorf("%s is %q, %v; want %q", url, got, err, want)
			}
		}
	}
	seen := map[string]string{}
	for _, url := range []string{"https://h/a", "http://h/a", "https://h/A", "https://h:8443/a", "https://g/a", "https://h/a?x=1", "https://h/a?x=2", "https://h/a/b", "https://h.h/a", "https://h/a%2Fb", "https://h//a", "https://h/x/../a", "https://h/a//", "https://h/./a", "https://[::1]:8443", "https://[::1:8443]"} {
		got, err := vault.ServerIdentity(url)
		if other, taken := seen[got]; err != nil || taken {
			t.Errorf("%s and %s are %q, %v", url, other, got, err)
		}
		seen[got] = url
	}
	for _, url := range []string{"", "x", "https://", "https://h:port"} {
		if got, err := vault.ServerIdentity(url); err == nil {
			t.Errorf("%q is %q", url, got)
		}
	}
}

func TestCheck(t *testing.T) {
	const server, token = "https://mcp.example.com", "a-long-token"
	oauth := func(change func(*vault.Credential, *vault.Secret)) (*vault.Credential, *vault.Secret) {
		c := &vault.Credential{Kind: vault.MCPOAuth, Auth: vault.Auth{ServerURL: server, ExpiresAt: time.Now().Add(time.Hour),
			Refresh: &vault.Refresh{ClientID: "client", Endpoint: "https://mcp.example.com/token", EndpointAuth: vault.AuthBasic, Scope: "a b"}}}
		s := &vault.Secret{Value: token, RefreshToken: token, ClientSecret: token}
		change(c, s)
		return c, s
	}
	host := func(name, value string, hosts ...string) (*vault.Credential, *vault.Secret) {
		return &vault.Credential{Kind: vault.HostSecret, Auth: vault.Auth{Variable: name, Binding: tenant.Binding{Hosts: hosts}}}, &vault.Secret{Value: value}
	}
	bearer := func(url, token string) (*vault.Credential, *vault.Secret) {
		return &vault.Credential{Kind: vault.StaticBearer, Auth: vault.Auth{ServerURL: url}}, &vault.Secret{Value: token}
	}
	check := func(want string) func(*vault.Credential, *vault.Secret) {
		return func(c *vault.Credential, s *vault.Secret) {
			t.Helper()
			err := c.Check(s, true)
			if want == "" && err != nil || want != "" && (fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), want)) {
				t.Errorf("got %v, want %q", err, want)
			}
			if err != nil && strings.Contains(err.Error(), token) {
				t.Errorf("it says %v", err)
			}
		}
	}
	check("")(bearer(server, token))
	check("")(oauth(func(*vault.Credential, *vault.Secret) {}))
	check("")(host("API_TOKEN", token+" and more", "api.example.com", "*.example.net"))
	check("auth.token must be")(bearer(server, "short"))
	check("auth.token must be")(bearer(server, token+"\n"))
	check("auth.token must be")(bearer(server, strings.Repeat("x", vault.MaxToken+1)))
	for _, url := range []string{"", "ftp://h", "https://u:p@h", "https://h#f", "https:h", "https://h/" + strings.Repeat("x", vault.MaxURL), "https://h/\x01"} {
		check("auth.mcp_server_url must be")(bearer(url, token))
	}
	check("auth.secret_name")(host("lower", token, "h.example"))
	check("auth.secret_name")(host("PATH", token, "h.example"))
	check("auth.secret_value")(host("A", "short", "h.example"))
	check("auth.hosts must name")(host("A", token))
	check(`auth.hosts has "*"`)(host("A", token, "*"))
	check("auth.hosts has")(host("A", token, "10.0.0.1"))
	check("auth.hosts has")(host("A", token, "https://h"))
	for want, change := range map[string]func(*vault.Credential, *vault.Secret){
		"auth.access_token":                 func(_ *vault.Credential, s *vault.Secret) { s.Value = "" },
		"auth.expires_at":                   func(c *vault.Credential, _ *vault.Secret) { c.Auth.ExpiresAt = time.Now().Add(-time.Second) },
		"auth.refresh.token_endpoint must":  func(c *vault.Credential, _ *vault.Secret) { c.Auth.Refresh.Endpoint = "file:///x" },
		"auth.refresh.client_id":            func(c *vault.Credential, _ *vault.Secret) { c.Auth.Refresh.ClientID = "" },
		"auth.refresh.scope":                func(c *vault.Credential, _ *vault.Secret) { c.Auth.Refresh.Scope = "a\nb" },
		"auth.refresh.refresh_token":        func(_ *vault.Credential, s *vault.Secret) { s.RefreshToken = "" },
		"token_endpoint_auth.client_secret": func(_ *vault.Credential, s *vault.Secret) { s.ClientSecret = "" },
		"token_endpoint_auth.client_s":      func(c *vault.Credential, _ *vault.Secret) { c.Auth.Refresh.EndpointAuth = vault.AuthNone },
		"token_endpoint_auth.type must be":  func(c *vault.Credential, _ *vault.Secret) { c.Auth.Refresh.EndpointAuth = "x" },
	} {
		check(want)(oauth(change))
	}
	for _, about := range []vault.About{{}, {Name: " "}, {Name: strings.Repeat("x", 256)}, {Name: "a\x00"}, {Name: "a", Metadata: map[string]string{"": "x"}}, {Name: "a", Metadata: map[string]string{"k": strings.Repeat("x", 513)}}} {
		if err := about.Check(true); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%.20q: %v", about.Name, err)
		}
	}
}
