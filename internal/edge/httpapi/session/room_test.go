package session_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/control/gateway/gatewaytest"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/tenant"
	sessionapi "github.com/atoll-run/atoll/internal/edge/httpapi/session"
	"github.com/atoll-run/atoll/test/atolltest"
	"github.com/atoll-run/atoll/test/httpapitest"
)

// TestBudget: a session whose budget is used up asks no model, until it is raised.
func TestBudget(t *testing.T) {
	k := open(t, `{}`)
	begin := func(budget string) {
		var made struct{ ID string }
		k.ask(http.StatusCreated, "POST", "/v1/sessions", `{"agent_id":"helper","budget":`+budget+`}`, &made)
		k.path = "/v1/sessions/" + made.ID
	}
	for _, bad := range []string{`{"tokens":0}`, `{"cost_usd":0}`, `{"cost_usd":-1}`, `{"tokens":"x"}`, `{"dollars":1}`} {
		k.ask(http.StatusBadRequest, "POST", "/v1/sessions", `{"agent_id":"helper","budget":`+bad+`}`, nil)
	}
	begin(`{"tokens":15,"cost_usd":2}`) // an answer has 15
	turn := k.say("call run_code")
	if turn.Status != "incomplete" || turn.Error == nil || turn.Error.Code != "session_budget" {
		t.Fatalf("%+v %+v", turn, turn.Error)
	}
	httpapitest.Refused(t, httpapitest.Ask(k.Server, "POST", k.path+"/events", `{"type":"message","content":"more"}`), http.StatusTooManyRequests, "rate_limited", "raise budget.tokens")
	for _, bad := range []string{`{"tokens":14}`, `{"cost_usd":1.5}`} {
		k.ask(http.StatusBadRequest, "PATCH", k.path, `{"budget":`+bad+`}`, nil)
	}
	var s sessionapi.Session
	k.ask(200, "PATCH", k.path, `{"budget":{"tokens":30}}`, &s)
	if *s.Budget.Tokens != 30 || *s.Budget.CostUSD != 2 || s.Usage.InputTokens != 10 || s.Usage.OutputTokens != 5 {
		t.Errorf("%+v %+v", s.Budget, s.Usage)
	}
	if turn = k.say("more"); turn.Status != "completed" {
		t.Errorf("%+v", turn)
	}
	k.post(429, `{"type":"message","content":"more"}`)
}

// TestExpiry: calls that are not answered in time are not made, the model is told why, and
// answers that come later are refused.
func TestExpiry(t *testing.T) {
	k := open(t, `{"Confirm":["sandbox"]}`)
	k.service.Within = time.Nanosecond
	turn := k.say("call run_code theirs")
	if len(turn.RequiresAction) != 2 {
		t.Fatalf("%+v", turn)
	}
	k.post(409, fmt.Sprintf(`{"type":"tool_confirmation","tool_use_id":%q,"approve":true}`, turn.RequiresAction[0].ToolUseID))
	k.post(409, fmt.Sprintf(`{"type":"tool_result","tool_use_id":%q,"content":"late"}`, turn.RequiresAction[1].ToolUseID))
	var s sessionapi.Session
	atolltest.Until(t, time.Minute, "the calls expire", func() bool {
		k.ask(200, "GET", k.path, "", &s)
		return s.Status == "idle"
	})
	var page struct{ Data []sessionapi.SessionEvent }
	k.ask(200, "GET", k.path+"/events?order=desc&limit=5", "", &page)
	last, decided, asked := page.Data[0], page.Data[3], page.Data[4]
	if last.StopReason.Type != "expired" || decided.Type != "tool_confirmation" || *decided.Approve || !strings.HasPrefix(*decided.Reason, "no answer until 20") || decided.KeyID != nil {
		t.Errorf("%+v %+v", last, decided)
	}
	if asked.StopReason == nil || asked.StopReason.Type != "requires_action" || asked.StopReason.ExpiresAt == nil {
		t.Errorf("%+v", asked)
	}
	if !strings.Contains(*page.Data[1].Content, "expired") || !strings.Contains(*page.Data[2].Content, "expired") {
		t.Errorf("the model is told %q", *page.Data[1].Content)
	}
	if turn = k.say("hello"); turn.Content != "hello" {
		t.Errorf("%+v", turn)
	}
}

// TestWebhook: a session's webhook is held to the rules of all webhooks.
func TestWebhook(t *testing.T) {
	k := open(t, `{}`)
	for _, bad := range []string{"http://203.0.113.7/", "https://127.0.0.1/", "https://169.254.169.254/", "", "x"} {
		httpapitest.Refused(t, httpapitest.Ask(k.Server, "POST", "/v1/sessions", fmt.Sprintf(`{"agent_id":"helper","webhook_url":%q}`, bad)), http.StatusBadRequest, "validation_error", "webhook_url")
	}
	var s sessionapi.Session
	k.ask(http.StatusCreated, "POST", "/v1/sessions", `{"agent_id":"helper","webhook_url":"https://203.0.113.7/hook"}`, &s)
	k.ask(200, "GET", "/v1/sessions/"+s.ID, "", &s)
	if *s.Webhook != "https://203.0.113.7/hook" {
		t.Errorf("%+v", s)
	}
}

// TestServersOfAnEnvironment: an agent whose MCP server the environment does not allow works in
// another one, for a key that may choose it.
func TestServersOfAnEnvironment(t *testing.T) {
	k := open(t, `{}`)
	held := k.World.Principal(t, "held", "pro", func(p *tenant.Principal) {
		p.Environment.Profile, p.Key.Scopes = string(tenant.Isolated), append(slices.Clone(p.Key.Scopes), tenant.ScopeEnvironments)
	})
	opened := held.Environment
	opened.ID, opened.Name, opened.AllowMCP = tenant.NewID("env"), "opened", true
	if err := k.World.DB.Tenants().CreateEnvironment(t.Context(), opened); err != nil {
		t.Fatal(err)
	}
	a := &agent.Agent{ID: agent.NewID(), Tenant: held.Tenant.ID, Slug: "asker", Visibility: agent.Private, Definition: agent.Definition{
		Name: "Asker", Model: agent.Model{Name: "m"}, Tools: []agent.Tool{{Type: agent.MCP, Server: "orders"}}, Servers: []agent.Server{{Name: "orders", URL: "https://mcp.example.com"}},
	}}
	if err := k.World.DB.Agents().Create(t.Context(), a, agent.Limits{}); err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]struct {
		status int
		says   string
	}{
		`{"agent_id":"asker"}`:                                                           {403, "does not allow the MCP server at mcp.example.com"},
		`{"agent_id":"asker","environment_id":"opened"}`:                                 {201, `"environment_id":"` + opened.ID + `"`},
		fmt.Sprintf(`{"agent_id":"asker","environment_id":%q}`, k.Caller.Environment.ID): {404, "environment not found"},
		`{"agent_id":"asker","environment_id":"../x"}`:                                   {404, "environment not found"},
		`{"agent_id":"asker","environment_id":""}`:                                       {404, "environment not found"},
	} {
		w := httpapitest.Ask(k.Server, "POST", "/v1/sessions", body, "Authorization", "Bearer "+gatewaytest.Token("held"))
		if w.Code != want.status || !strings.Contains(w.Body.String(), want.says) {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
}
