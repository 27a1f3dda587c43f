package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/atoll-run/atoll/internal/agent/mcpclient"
	"github.com/atoll-run/atoll/internal/agent/mcptool"
	"github.com/atoll-run/atoll/internal/agent/token"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/compat/anthropic"
	sessionapi "github.com/atoll-run/atoll/internal/edge/httpapi/session"
	"github.com/atoll-run/atoll/internal/edge/httpapi/vaultwire"
	"github.com/atoll-run/atoll/internal/infra/seal"
	"github.com/atoll-run/atoll/internal/infra/store"
	"github.com/atoll-run/atoll/test/httpapitest"
)

// local asks servers of this machine.
func local(t *testing.T) *mcpclient.Client {
	t.Helper()
	allow, err := outbound.Parse([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	c := mcpclient.New(allow, "test")
	t.Cleanup(c.Close)
	return c
}

// remotes asks MCP servers of this machine with the tokens of vaults.
func remotes(t *testing.T, db *store.DB, box *seal.Box) *mcptool.Tools {
	client := local(t)
	tokens := &token.Source{Store: db.Vaults(), Client: client.HTTP(), Check: client.CheckURL}
	return mcptool.New(mcptool.Config{Client: client, Seal: box, Callers: tenant.NewAuthority(db.Tenants()), Token: tokens.Token,
		Record: func(context.Context, *tenant.Principal, sandbox.Call) error { return nil }})
}

// shop is an MCP server that takes one token, and an endpoint that gives another one.
type shop struct {
	url     string
	takes   atomic.Value // the token
	calls   atomic.Int64
	refuses atomic.Bool // refreshes
	mu      sync.Mutex
	asked   []string // forms of refreshes; guarded by mu
	seen    []string // Authorization; guarded by mu
}

func openShop(t *testing.T) *shop {
	s := &shop{}
	server := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "order"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		s.calls.Add(1)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "ordered with " + s.takes.Load().(string)}}}, nil, nil
	})
	door := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	mux := http.NewServeMux()
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		user, password, _ := r.BasicAuth()
		s.mu.Lock()
		s.asked = append(s.asked, fmt.Sprintf("%s %s:%s", r.PostForm.Encode(), user, password))
		n := len(s.asked)
		s.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		if s.refuses.Load() {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error":"invalid_grant","error_description":"refresh-token-1 is old"}`)
			return
		}
		made := fmt.Sprintf("access-token-%d", n)
		s.takes.Store(made)
		fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":3600,"refresh_token":"refresh-token-%d"}`, made, n+1)
	})
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.seen = append(s.seen, r.Header.Get("Authorization"))
		s.mu.Unlock()
		if r.Header.Get("Authorization") != "Bearer "+s.takes.Load().(string) {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		door.ServeHTTP(w, r)
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	s.url = srv.URL
	return s
}

const ownerKey = tenant.KeyPrefix + "owner-of-vaults"

// openVault begins a session with an agent of the shop and a vault; ask asks with a key that
// may change vaults.
func openVault(t *testing.T, s *shop) (k *talk, vault string, ask func(status int, method, path, body string, into any) string) {
	t.Helper()
	k = open(t, "{}")
	now := time.Now().UTC()
	err := k.db.Tenants().CreateKey(t.Context(), tenant.Key{ID: tenant.NewID("key"), Tenant: k.Caller.Tenant.ID, Environment: k.Caller.Environment.ID, Name: "owner",
		Hash: tenant.HashKey(ownerKey), Hint: "owns", Scopes: []tenant.Scope{tenant.ScopeEnvironments, tenant.ScopeRead}, CreatedAt: now})
	if err != nil {
		t.Fatal(err)
	}
	ask = func(status int, method, path, body string, into any) string {
		t.Helper()
		w := httpapitest.Ask(k.Server, method, path, body, "Authorization", "Bearer "+ownerKey, "Content-Type", "application/json")
		if w.Code != status {
			t.Fatalf("%s %s %s: %d %s, want %d", method, path, body, w.Code, w.Body, status)
		}
		if into != nil {
			if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
				t.Fatal(err)
			}
		}
		return w.Body.String()
	}
	a := &agent.Agent{ID: agent.NewID(), Tenant: k.Caller.Tenant.ID, Slug: "shopper", Visibility: agent.Private, Definition: agent.Definition{
		Name: "Shopper", Model: agent.Model{Name: "m"}, Tools: []agent.Tool{{Type: agent.WebSearch}, {Type: agent.MCP, Server: "shop"}},
		Servers: []agent.Server{{Name: "shop", URL: s.url + "/mcp", Headers: map[string]string{"authorization": "Bearer of-the-agent"}}},
	}}
	if err := k.agents.Create(t.Context(), a, agent.Limits{}); err != nil {
		t.Fatal(err)
	}
	var made struct{ ID string }
	ask(http.StatusCreated, "POST", "/v1/vaults", `{"display_name":"of a user","metadata":{"user":"u-1"}}`, &made)
	vault = made.ID
	k.ask(http.StatusCreated, "POST", "/v1/sessions", fmt.Sprintf(`{"agent_id":"shopper","vault_ids":[%q]}`, vault), &made)
	k.path = "/v1/sessions/" + made.ID
	return k, "/v1/vaults/" + vault, ask
}

// silent fails where a secret is told.
func (k *talk) silent(secrets ...string) {
	k.Helper()
	for _, path := range []string{k.path, k.path + "/events", k.path + "/context", "/v1/vaults?include_archived=true"} {
		text := httpapitest.Ask(k.Server, "GET", path, "").Body.String()
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				k.Errorf("%s is in %s: %s", secret, path, text)
			}
		}
	}
}

// TestVaultOfSession has an agent ask an MCP server with a token of a vault: with another one
// after a change, and with none once it is archived.
func TestVaultOfSession(t *testing.T) {
	s := openShop(t)
	s.takes.Store("bearer-of-the-user")
	k, vault, ask := openVault(t, s)
	if got := k.warned(); !strings.Contains(got, "does not take the credentials (401)") {
		t.Errorf("without a credential: %s", got)
	}
	var made vaultwire.Credential
	body := ask(201, "POST", vault+"/credentials", fmt.Sprintf(`{"auth":{"type":"static_bearer","mcp_server_url":%q,"token":"bearer-of-the-user"},"display_name":"shop"}`, strings.ToUpper(s.url[:4])+s.url[4:]+"/mcp/"), &made)
	if strings.Contains(body, "bearer-of-the-user") {
		t.Errorf("it is shown: %s", body)
	}
	turn := k.say("call shop__order")
	if turn.Status != "completed" || !strings.Contains(turn.Content, "ordered with [covered]") {
		t.Errorf("%+v %+v", turn, turn.Error)
	}
	s.takes.Store("another-bearer")
	credential := vault + "/credentials/" + made.ID
	if got := k.warned(); !strings.Contains(got, "401") {
		t.Errorf("with an old token: %s", got)
	}
	ask(200, "PATCH", credential, `{"auth":{"type":"static_bearer","token":"another-bearer"}}`, nil)
	if turn = k.say("call shop__order"); !strings.Contains(turn.Content, "ordered with [covered]") {
		t.Errorf("%+v %+v", turn, turn.Error)
	}
	k.silent("bearer-of-the-user", "another-bearer")
	ask(200, "POST", credential+"/archive", "", &made)
	if made.ArchivedAt == nil {
		t.Errorf("%+v", made)
	}
	if got := k.warned(); !strings.Contains(got, "401") {
		t.Errorf("with a credential that is archived: %s", got)
	}
	var shown sessionapi.Session
	if k.ask(200, "GET", k.path, "", &shown); len(shown.Vaults) != 1 || "/v1/vaults/"+shown.Vaults[0] != vault {
		t.Errorf("%+v", shown.Vaults)
	}
	ask(200, "DELETE", vault, "", nil)
	k.warned()
	last := s.seen[len(s.seen)-1]
	if last != "Bearer of-the-agent" || s.calls.Load() != 2 {
		t.Errorf("asked with %q, %d calls", last, s.calls.Load())
	}
	events, err := k.db.Tenants().PolicyEvents(t.Context(), k.Caller.Tenant.ID)
	if err != nil {
		t.Fatal(err)
	}
	var trail []string
	for _, e := range events {
		if strings.HasPrefix(e.Field, "vault/") {
			trail = append(trail, e.Field+" "+e.New)
		}
		if strings.Contains(fmt.Sprintf("%+v", e), "bearer") {
			t.Errorf("%+v", e)
		}
	}
	if len(trail) != 5 {
		t.Errorf("the trail is %q", trail)
	}
}

// TestApprovedWhileServerIsDown: a call that was approved while its server does not answer ends as
// a failed one with that reason.
func TestApprovedWhileServerIsDown(t *testing.T) {
	s := openShop(t)
	s.takes.Store("of-the-agent")
	k, _, _ := openVault(t, s)
	a := &agent.Agent{ID: agent.NewID(), Tenant: k.Caller.Tenant.ID, Slug: "careful", Visibility: agent.Private, Definition: agent.Definition{
		Name: "Careful", Model: agent.Model{Name: "m"}, Tools: []agent.Tool{{Type: agent.MCP, Server: "shop"}}, Policy: agent.Policy{Confirm: []string{"shop/order"}},
		Servers: []agent.Server{{Name: "shop", URL: s.url + "/mcp", Headers: map[string]string{"authorization": "Bearer of-the-agent"}}},
	}}
	if err := k.agents.Create(t.Context(), a, agent.Limits{}); err != nil {
		t.Fatal(err)
	}
	var made struct{ ID string }
	k.ask(http.StatusCreated, "POST", "/v1/sessions", `{"agent_id":"careful"}`, &made)
	k.path = "/v1/sessions/" + made.ID
	turn := k.say("call shop__order")
	if turn.Status != "requires_action" {
		t.Fatalf("%+v", turn)
	}
	s.takes.Store("another token")
	turn = k.post(200, fmt.Sprintf(`{"type":"tool_confirmation","tool_use_id":%q,"approve":true}`, turn.RequiresAction[0].ToolUseID))
	var page struct{ Data []sessionapi.SessionEvent }
	k.ask(200, "GET", k.path+"/events?types=tool_result", "", &page)
	if turn.Status != "completed" || len(page.Data) != 1 || s.calls.Load() != 0 {
		t.Fatalf("%+v %+v, %d calls", turn, page.Data, s.calls.Load())
	}
	e := page.Data[0]
	if want := `the call was not made: the MCP server "shop" could not list its tools: it rejects the credentials`; e.IsError == nil || !*e.IsError || e.Content == nil || !strings.Contains(*e.Content, want) {
		t.Errorf("%+v", e)
	}
}

// warned has a turn continue without a server's tools, and returns what its event says of that.
func (k *talk) warned() string {
	k.Helper()
	if turn := k.say("hello"); turn.Status != "completed" {
		k.Errorf("a turn without a server: %+v %+v", turn, turn.Error)
	}
	var page struct{ Data []sessionapi.SessionEvent }
	k.ask(200, "GET", k.path+"/events?limit=100", "", &page)
	why, off := "", false // web_search, which the agent has, too
	for _, e := range slices.Backward(page.Data) {
		if w := e.Warning; w != nil && w.Code == "tool_unavailable" {
			off = strings.Contains(w.Message, "search_provider")
		} else if w != nil {
			if w.Code != "mcp_unavailable" || w.Server == nil || *w.Server != "shop" {
				k.Errorf("%+v", w)
			}
			why = w.Message
		}
		if e.Type == "message" && *e.Role == "user" {
			break
		}
	}
	if why == "" || !off {
		k.Errorf("the events warn of the server %q, of web_search: %t", why, off)
	}
	return why
}

// TestRefresh: tokens that have expired, and those that a server takes no more, are refreshed.
func TestRefresh(t *testing.T) {
	s := openShop(t)
	s.takes.Store("nothing yet")
	k, vault, ask := openVault(t, s)
	var made vaultwire.Credential
	soon := time.Now().Add(30 * time.Second).UTC().Format(time.RFC3339)
	ask(201, "POST", vault+"/credentials", fmt.Sprintf(`{"auth":{"type":"mcp_oauth","mcp_server_url":"%[1]s/mcp","access_token":"access-token-0","expires_at":%[2]q,
		"refresh":{"client_id":"client","refresh_token":"refresh-token-1","token_endpoint":"%[1]s/token","scope":"a b","resource":"%[1]s/mcp",
		"token_endpoint_auth":{"type":"client_secret_basic","client_secret":"client-secret"}}}}`, s.url, soon), &made)
	if turn := k.say("call shop__order"); !strings.Contains(turn.Content, "ordered with [covered]") {
		t.Errorf("%+v %+v", turn, turn.Error)
	}
	if len(s.asked) != 1 || !strings.Contains(s.asked[0], "grant_type=refresh_token&refresh_token=refresh-token-1&resource=http") || !strings.Contains(s.asked[0], "&scope=a+b client:client-secret") {
		t.Errorf("asked %q", s.asked)
	}
	s.takes.Store("revoked")
	if turn := k.say("call shop__order"); !strings.Contains(turn.Content, "ordered with [covered]") || len(s.asked) != 2 || !strings.Contains(s.asked[1], "refresh_token=refresh-token-2") {
		t.Errorf("%+v %+v, asked %q", turn, turn.Error, s.asked)
	}
	s.takes.Store("revoked")
	s.refuses.Store(true)
	got := k.warned()
	if !strings.Contains(got, "could not be refreshed: 127.0.0.1") || !strings.Contains(got, "answers 400: invalid_grant") || strings.Contains(got, "refresh-token") {
		t.Errorf("a refresh that is refused: %s", got)
	}
	body := ask(200, "GET", vault+"/credentials/"+made.ID, "", &made)
	if made.Auth.ExpiresAt == nil || time.Until(*made.Auth.ExpiresAt) < 50*time.Minute || made.Auth.Refresh.ClientID != "client" || made.Auth.Refresh.EndpointAuth.Type != "client_secret_basic" {
		t.Errorf("%s", body)
	}
	for _, secret := range []string{"access-token", "refresh-token", "client-secret"} {
		if strings.Contains(body, secret) {
			t.Errorf("%s is in %s", secret, body)
		}
	}
	k.silent("access-token", "refresh-token", "client-secret")
}

func TestVaultIDsAreChecked(t *testing.T) {
	s := openShop(t)
	s.takes.Store("x")
	k, vault, ask := openVault(t, s)
	id := strings.TrimPrefix(vault, "/v1/vaults/")
	other := k.World.Principal(t, "stranger", "pro", func(p *tenant.Principal) {
		p.Key.Scopes = []tenant.Scope{tenant.ScopeEnvironments, tenant.ScopeExecute, tenant.ScopeRead}
	})
	foreign := httpapitest.Ask(k.Server, "POST", "/v1/vaults", `{"display_name":"theirs"}`, "Authorization", "Bearer "+tenant.KeyPrefix+other.Tenant.Name, "Content-Type", "application/json")
	var theirs struct{ ID string }
	if err := json.Unmarshal(foreign.Body.Bytes(), &theirs); err != nil || foreign.Code != 201 {
		t.Fatalf("%d %s", foreign.Code, foreign.Body)
	}
	none := "vlt_" + strings.Repeat("0", 32)
	want := strings.ReplaceAll(httpapitest.Ask(k.Server, "POST", "/v1/sessions", fmt.Sprintf(`{"agent_id":"shopper","vault_ids":[%q]}`, none)).Body.String(), none, "")
	got := httpapitest.Ask(k.Server, "POST", "/v1/sessions", fmt.Sprintf(`{"agent_id":"shopper","vault_ids":[%q]}`, theirs.ID))
	if got.Code != 404 || !strings.Contains(want, `vault_ids[0]: vault \"\" not found`) || !strings.Contains(got.Body.String(), "vault_ids[0]: vault") {
		t.Errorf("another tenant's vault: %d %s; none: %s", got.Code, got.Body, want)
	}
	for _, face := range []string{"", anthropic.Prefix} {
		for _, one := range []string{"/v1/vaults/" + theirs.ID, "/v1/vaults/" + theirs.ID + "/credentials"} {
			w := httpapitest.Ask(k.Server.Server, "GET", face+one, "")
			missing := httpapitest.Ask(k.Server.Server, "GET", face+strings.Replace(one, theirs.ID, none, 1), "")
			if w.Code != 404 || missing.Code != 404 {
				t.Errorf("GET %s: %d %s, %d", one, w.Code, w.Body, missing.Code)
			}
		}
	}
	k.ask(404, "POST", "/v1/sessions", `{"agent_id":"shopper","vault_ids":["x"]}`, nil)
	k.ask(400, "POST", "/v1/sessions", fmt.Sprintf(`{"agent_id":"shopper","vault_ids":[%q,%q]}`, id, id), nil)
	k.ask(400, "POST", "/v1/sessions", `{"agent_id":"shopper","vault_ids":["1","2","3","4","5","6","7","8","9","10","11"]}`, nil)
	k.ask(403, "POST", "/v1/vaults", `{"display_name":"x"}`, nil)
	k.ask(403, "POST", vault+"/credentials", `{"auth":{"type":"static_bearer","mcp_server_url":"https://h.example","token":"long-enough"}}`, nil)
	k.ask(403, "PATCH", vault, `{"display_name":"x"}`, nil)
	k.ask(403, "DELETE", vault, "", nil)
	k.ask(200, "GET", vault, "", nil)
	ask(200, "POST", vault+"/archive", "", nil)
	k.ask(409, "POST", "/v1/sessions", fmt.Sprintf(`{"agent_id":"shopper","vault_ids":[%q]}`, id), nil)
	for range 4 {
		ask(201, "POST", "/v1/vaults", `{"display_name":"x"}`, nil)
	}
	ask(429, "POST", "/v1/vaults", `{"display_name":"x"}`, nil)
}

func TestBadCredentials(t *testing.T) {
	s := openShop(t)
	s.takes.Store("x")
	k, vault, ask := openVault(t, s)
	for body, want := range map[string]string{
		`{}`:                           "auth is required",
		`{"auth":{"type":"password"}}`: "auth.type must be one of",
		`{"auth":{"type":"static_bearer","token":"long-enough"}}`:                                                            "auth.mcp_server_url is required",
		`{"auth":{"type":"static_bearer","mcp_server_url":"https://h.example","token":"long-enough","hosts":["h"]}}`:         "auth.hosts has no meaning",
		`{"auth":{"type":"static_bearer","mcp_server_url":"https://10.0.0.1/","token":"long-enough"}}`:                       "auth.mcp_server_url must not lead to a private",
		`{"auth":{"type":"static_bearer","mcp_server_url":"http://h.example/","token":"long-enough"}}`:                       "auth.mcp_server_url must begin with https://",
		`{"auth":{"type":"host_secret","secret_name":"TOKEN","secret_value":"long-enough","hosts":["*"]}}`:                   `auth.hosts has \"*\"`,
		`{"auth":{"type":"host_secret","secret_name":"token","secret_value":"long-enough","hosts":["h.example"]}}`:           "auth.secret_name",
		`{"auth":{"type":"mcp_oauth","mcp_server_url":"https://h.example","access_token":"long-enough","expires_at":"now"}}`: "auth.expires_at must be a",
		`{"auth":{"type":"mcp_oauth","mcp_server_url":"https://h.example","access_token":"long-enough","refresh":{"client_id":"c","refresh_token":"long-enough","token_endpoint":"https://169.254.169.254/","token_endpoint_auth":{"type":"none"}}}}`: "auth.refresh.token_endpoint must not lead to",
	} {
		if got := ask(400, "POST", vault+"/credentials", body, nil); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %q", body, got, want)
		}
	}
	var made vaultwire.Credential
	ask(201, "POST", vault+"/credentials", `{"auth":{"type":"host_secret","secret_name":"TOKEN","secret_value":"long-enough","hosts":["h.example"]}}`, &made)
	ask(409, "POST", vault+"/credentials", `{"auth":{"type":"host_secret","secret_name":"TOKEN","secret_value":"long-enough","hosts":["h.example"]}}`, nil)
	one := vault + "/credentials/" + made.ID
	for body, want := range map[string]string{
		`{"auth":{"type":"static_bearer","token":"long-enough"}}`: "auth.type must be host_secret",
		`{"auth":{"type":"host_secret","token":"long-enough"}}`:   "auth.token has no meaning",
		`{"auth":{"type":"host_secret","hosts":[]}}`:              "auth.hosts must name",
		`{"auth":{"type":"host_secret","secret_value":"short"}}`:  "auth.secret_value is sent",
	} {
		if got := ask(400, "PATCH", one, body, nil); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %q", body, got, want)
		}
	}
	ask(200, "PATCH", one, `{"auth":{"type":"host_secret","hosts":["h.example","*.g.example"]},"display_name":"a name"}`, &made)
	if len(made.Auth.Hosts) != 2 || *made.DisplayName != "a name" {
		t.Errorf("%+v", made)
	}
	var page struct{ Data []vaultwire.Credential }
	if ask(200, "GET", vault+"/credentials", "", &page); len(page.Data) != 1 || page.Data[0].ID != made.ID {
		t.Errorf("%+v", page)
	}
	// The same in Anthropic's form.
	theirs := func(status int, method, path, body string) string {
		t.Helper()
		w := httpapitest.Ask(k.Server.Server, method, anthropic.Prefix+path, body, "Authorization", "Bearer "+ownerKey, "Content-Type", "application/json")
		if w.Code != status {
			t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
		}
		return w.Body.String()
	}
	if got := theirs(200, "GET", one+"?beta=true", ""); !strings.Contains(got, `"auth":{"type":"environment_variable","secret_name":"TOKEN","networking":{"type":"limited","allowed_hosts":["h.example","*.g.example"]},"injection_location":{"body":false,"header":true}}`) {
		t.Errorf("%s", got)
	}
	for body, want := range map[string]string{
		`{"auth":{"type":"environment_variable","secret_name":"A","secret_value":"long-enough"}}`:                                                                                                                  "auth.networking is required",
		`{"auth":{"type":"environment_variable","secret_name":"A","secret_value":"long-enough","networking":{"type":"unrestricted"}}}`:                                                                             "auth.networking must be limited",
		`{"auth":{"type":"environment_variable","secret_name":"A","secret_value":"long-enough","networking":{"type":"limited","allowed_hosts":["10.0.0.1"]}}}`:                                                     "auth.networking.allowed_hosts has",
		`{"auth":{"type":"environment_variable","secret_name":"A","secret_value":"long-enough","networking":{"type":"limited","allowed_hosts":["h.example"]},"injection_location":{"body":true}}}`:                 "auth.injection_location.body",
		`{"auth":{"type":"environment_variable","secret_name":"A","secret_value":"long-enough","networking":{"type":"limited","allowed_hosts":["h.example"]},"injection_location":{"header":false,"body":false}}}`: "auth.injection_location.header",
		`{"auth":{"type":"host_secret"}}`: "auth.type must be",
	} {
		if got := theirs(400, "POST", vault+"/credentials", body); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %q", body, got, want)
		}
	}
	theirs(403, "POST", "/v1/sessions", `{"agent":"shopper","vault_ids":null}`)
}
