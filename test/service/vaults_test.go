package service

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/atoll-run/atoll/test/atolltest"
)

// TestPublishedClientOnVaults drives Anthropic's client through all that it knows of vaults, and
// has an agent ask an MCP server with a token of one.
func TestPublishedClientOnVaults(t *testing.T) {
	s := atolltest.Start(t, atolltest.Options{Env: []string{noPool, "ATOLL_MODEL_ALLOW=127.0.0.1", "ATOLL_MCP_ALLOW=127.0.0.1"}})
	s.Tenant(t, "vaults", "enterprise")
	var owner struct{ Key string }
	s.Must(t, s.AdminKey(t), http.MethodPost, "/v1/admin/tenants/vaults/keys", map[string]any{
		"name": "owner", "environment": "main", "scopes": []string{"execute", "read", "environments"},
	}).Into(t, http.StatusCreated, &owner)
	lendModel(t, s, "vaulted", planner(t).URL, "tools")
	shop := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1"}, nil)
	mcp.AddTool(shop, &mcp.Tool{Name: "order"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "it is ordered"}}}, nil, nil
	})
	door := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return shop }, nil)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer bearer-of-alice" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		door.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	out := python(t, filepath.Join("clients", "vaults_client.py"), "ATOLL_URL="+s.URL, "ATOLL_KEY="+owner.Key, "ATOLL_MCP="+srv.URL+"/mcp", "ATOLL_MODEL=vaulted")
	if said := strings.Join(strings.Fields(out), " "); said != "vaults credentials session refused async" {
		t.Errorf("it said %q", said)
	}
}

// TestVaultInSandbox: a program of a session has a placeholder for a secret of a vault, also
// once the secret is another one, and its sandbox stays.
func TestVaultInSandbox(t *testing.T) {
	s := shared(t)
	s.Tenant(t, "lent", "enterprise")
	admin := s.AdminKey(t)
	s.Must(t, admin, http.MethodPatch, "/v1/admin/tenants/lent", map[string]any{"network_enabled": true}).Into(t, http.StatusOK, nil)
	s.Must(t, admin, http.MethodPatch, "/v1/admin/tenants/lent/environments/main", map[string]any{"permissions": map[string]any{"network": map[string]any{"enabled": true, "allowed_hosts": []string{"api.example.com"}}}}).Into(t, http.StatusOK, nil)
	var owner, made, vault, credential struct{ ID, Key string }
	s.Must(t, admin, http.MethodPost, "/v1/admin/tenants/lent/keys", map[string]any{
		"name": "owner", "environment": "main", "scopes": []string{"execute", "read", "environments"},
	}).Into(t, http.StatusCreated, &owner)
	key := owner.Key
	lendModel(t, s, "lending", planner(t).URL, "tools")
	s.Must(t, key, http.MethodPost, "/v1/vaults", map[string]any{"display_name": "v"}).Into(t, http.StatusCreated, &vault)
	credentials := "/v1/vaults/" + vault.ID + "/credentials"
	s.Must(t, key, http.MethodPost, credentials, map[string]any{"auth": map[string]any{
		"type": "host_secret", "secret_name": "SHOP_TOKEN", "secret_value": "the-first-secret", "hosts": []string{"api.example.com"},
	}}).Into(t, http.StatusCreated, &credential)
	agent := map[string]any{"name": "Lender", "model": map[string]string{"name": "lending"}, "tools": []any{map[string]string{"type": "sandbox"}}}
	s.Must(t, key, http.MethodPost, "/v1/agents", agent).Into(t, http.StatusCreated, &made)
	s.Must(t, key, http.MethodPost, "/v1/sessions", map[string]any{"agent_id": made.ID, "vault_ids": []string{vault.ID}}).Into(t, http.StatusCreated, &made)
	run := func(code string) string {
		t.Helper()
		steps, err := json.Marshal([]toolStep{{"run_code", map[string]any{"language": "bash", "code": code}}})
		if err != nil {
			t.Fatal(err)
		}
		var turn struct{ Content, Status string }
		s.Must(t, key, http.MethodPost, "/v1/sessions/"+made.ID+"/events", map[string]string{"type": "message", "content": string(steps)}).Into(t, http.StatusOK, &turn)
		return turn.Content
	}
	if got := run(`echo "it is $SHOP_TOKEN"; echo first >$HOME/kept; echo the-first-secret`); !strings.Contains(got, "it is atoll-bound-") || strings.Contains(got, "the-first-secret") {
		t.Errorf("the program says %q", got)
	}
	s.Must(t, key, http.MethodPatch, credentials+"/"+credential.ID, map[string]any{"auth": map[string]any{"type": "host_secret", "secret_value": "the-second-secret"}}).Into(t, http.StatusOK, nil)
	if got := run(`echo "it is $SHOP_TOKEN"; cat $HOME/kept; echo the-second-secret`); !strings.Contains(got, "it is atoll-bound-") || !strings.Contains(got, "first") || strings.Contains(got, "the-second-secret") {
		t.Errorf("with another secret the program says %q", got)
	}
	s.Must(t, key, http.MethodPost, credentials+"/"+credential.ID+"/archive", nil).Into(t, http.StatusOK, nil)
	if got := run(`echo "it is <$SHOP_TOKEN>"; cat $HOME/kept`); !strings.Contains(got, "it is <>") || !strings.Contains(got, "first") {
		t.Errorf("without the credential the program says %q", got)
	}
}

// TestVaultReachesHost: a host gets the secret of a vault in the place of its placeholder, from the
// sessions that have the vault alone.
func TestVaultReachesHost(t *testing.T) {
	got := make(chan string, 4)
	address := machine(t)
	port, ca := secureSite(t, address, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- r.Header.Get("Authorization")
		fmt.Fprint(w, "welcome")
	}))
	s := atolltest.Start(t, atolltest.Options{Hosts: hostsFile(t, address, "example.com"), Env: []string{
		noPool, "ATOLL_MODEL_ALLOW=127.0.0.1", "ATOLL_NETWORK_ALLOW=" + address, "ATOLL_SANDBOX_CA_BUNDLE=" + ca,
	}})
	s.Tenant(t, "sender", "enterprise")
	admin, base := s.AdminKey(t), "/v1/admin/tenants/sender"
	s.Must(t, admin, http.MethodPatch, base, map[string]any{"network_enabled": true}).Into(t, http.StatusOK, nil)
	s.Must(t, admin, http.MethodPatch, base+"/environments/main", map[string]any{"permissions": map[string]any{
		"network": map[string]any{"enabled": true, "allowed_hosts": []string{"example.com"}, "allowed_cidrs": []string{address + "/32"}},
	}}).Into(t, http.StatusOK, nil)
	var owner, agent, vault struct{ ID, Key string }
	s.Must(t, admin, http.MethodPost, base+"/keys", map[string]any{"name": "owner", "environment": "main", "scopes": []string{"execute", "read", "environments"}}).Into(t, http.StatusCreated, &owner)
	lendModel(t, s, "sending", planner(t).URL, "tools")
	s.Must(t, owner.Key, http.MethodPost, "/v1/vaults", map[string]any{"display_name": "v"}).Into(t, http.StatusCreated, &vault)
	s.Must(t, owner.Key, http.MethodPost, "/v1/vaults/"+vault.ID+"/credentials", map[string]any{"auth": map[string]any{
		"type": "host_secret", "secret_name": "SHOP_TOKEN", "secret_value": "the-secret-of-the-shop", "hosts": []string{"example.com"},
	}}).Into(t, http.StatusCreated, nil)
	s.Must(t, owner.Key, http.MethodPost, "/v1/agents", map[string]any{"name": "Sender", "model": map[string]string{"name": "sending"}, "tools": []any{map[string]string{"type": "sandbox"}}}).Into(t, http.StatusCreated, &agent)
	code := "import os, urllib.request\nrequest = urllib.request.Request('https://example.com:" + port + "/', headers={'Authorization': 'Bearer ' + os.environ.get('SHOP_TOKEN', 'none')})\nprint(urllib.request.urlopen(request).read())"
	steps, err := json.Marshal([]toolStep{{"run_code", map[string]any{"language": "python", "code": code}}})
	if err != nil {
		t.Fatal(err)
	}
	for want, vaults := range map[string][]string{"Bearer the-secret-of-the-shop": {vault.ID}, "Bearer none": {}} {
		var session struct{ ID string }
		var turn struct{ Content string }
		s.Must(t, owner.Key, http.MethodPost, "/v1/sessions", map[string]any{"agent_id": agent.ID, "vault_ids": vaults}).Into(t, http.StatusCreated, &session)
		s.Must(t, owner.Key, http.MethodPost, "/v1/sessions/"+session.ID+"/events", map[string]string{"type": "message", "content": string(steps)}).Into(t, http.StatusOK, &turn)
		if !strings.Contains(turn.Content, "welcome") || strings.Contains(turn.Content, "the-secret") {
			t.Fatalf("the program says %s", turn.Content)
		}
		if header := atolltest.Heard(t, got, "the host is asked"); header != want {
			t.Errorf("the host is sent %q, want %q", header, want)
		}
	}
}
