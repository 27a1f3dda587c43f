package anthropic_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/agent/agents"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/agent/agenttest"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/edge/compat/anthropic"
	agentapi "github.com/atoll-run/atoll/internal/edge/httpapi/agent"
	"github.com/atoll-run/atoll/internal/infra/store"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
	"github.com/atoll-run/atoll/test/httpapitest"
)

func open(t *testing.T) (*httpapitest.Server, *store.DB) {
	t.Helper()
	db := storetest.SQLite(t)
	declared := &httpapitest.Declared{}
	declared.Set(model.Record{Name: "m", Provider: "openai", AllTenants: true, Spec: model.Spec{Capabilities: model.Capabilities}})
	catalog := model.NewCatalog(model.CatalogConfig{Store: db.Models(), Declared: declared, Tenant: db.Tenants().Tenant, Plan: db.Tenants().Plan})
	s := httpapitest.New(t, func(c *httpapitest.Setup) {
		c.Agents = &agentapi.Handlers{Service: &agents.Service{Store: db.Agents(), Models: catalog}}
		c.Managed = &anthropic.Handlers{Agents: c.Agents.Service, Keys: c.World}
		c.CompatPath = anthropic.Path
	})
	storetest.Tenant(t, db, s.Caller.Tenant.ID)
	return s, db
}

// ask sends a request of this API, by the prefix of its paths.
func ask(s *httpapitest.Server, method, path, body string) *httptest.ResponseRecorder {
	return httpapitest.Ask(s.Server, method, "/anthropic"+path+"?beta=true", body, "Content-Type", "application/json")
}

var answer = httpapitest.Decode[anthropic.Agent]

func refused(t *testing.T, w *httptest.ResponseRecorder, status int, kind, says string) {
	t.Helper()
	var f anthropic.Failure
	if err := json.Unmarshal(w.Body.Bytes(), &f); err != nil || w.Code != status || f.Type != "error" || f.Error.Type != kind || !strings.Contains(f.Error.Message, says) || f.RequestID == "" {
		t.Errorf("%d %s, want %d %s %q", w.Code, w.Body, status, kind, says)
	}
}

// TestPermissions: what a toolset says is what the policy decides, and comes back as it was.
func TestPermissions(t *testing.T) {
	s, db := open(t)
	const tools = `[
		{"type": "agent_toolset_20260401", "configs": [{"name": "bash", "permission_policy": {"type": "always_ask"}}, {"name": "write", "enabled": false}, {"name": "web_search", "enabled": false}]},
		{"type": "mcp_toolset", "mcp_server_name": "orders", "default_config": {"enabled": false}, "configs": [{"name": "find", "enabled": true}, {"name": "refund", "enabled": true, "permission_policy": {"type": "always_ask"}}]},
		{"type": "mcp_toolset", "mcp_server_name": "mail", "default_config": {"permission_policy": {"type": "always_ask"}}, "configs": [{"name": "delete", "enabled": false}]},
		{"type": "custom", "name": "ask", "description": "Asks.", "input_schema": {"type": "object", "properties": {"q": {"type": "string"}}}}]`
	made := answer(t, ask(s, "POST", "/v1/agents", `{"name": "n", "model": {"id": "m", "effort": "high"}, "tools": `+tools+`,
		"mcp_servers": [{"type": "url", "name": "orders", "url": "https://a.example"}, {"type": "url", "name": "mail", "url": "https://b.example"}]}`), http.StatusOK)
	a, err := db.Agents().Get(t.Context(), s.Caller.Tenant.ID, made.ID)
	if err != nil {
		t.Fatal(err)
	}
	d := &a.Definition
	for name, want := range map[string]agent.Verdict{
		"sandbox/run_code": agent.Asks, "sandbox/read_file": agent.Allowed, "sandbox/write_file": agent.Denied, "sandbox/apply_patch": agent.Allowed, "fetch_url/fetch_url": agent.Allowed,
		"orders/find": agent.Allowed, "orders/refund": agent.Asks, "mail/send": agent.Asks, "mail/delete": agent.Denied, "orders/delete": agent.Allowed,
	} {
		kind, tool, _ := strings.Cut(name, "/")
		subject, server := agent.Builtin(agent.ToolType(kind), tool, false), d.Server(kind)
		if server != nil {
			subject = server.Remote(tool, "", false)
		}
		if got := d.Judge(subject, server); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	if got := d.Server("orders").AllowedTools; !reflect.DeepEqual(got, []string{"find", "refund"}) {
		t.Errorf("of orders these are allowed: %v", got)
	}
	if slices.ContainsFunc(d.Tools, func(t agent.Tool) bool { return t.Type == agent.WebSearch }) || len(d.Tools) != 5 {
		t.Errorf("%+v", d.Tools)
	}
	if len(made.Warnings) > 0 || len(made.Tools) != 4 || made.Model.Effort.Type != "high" {
		t.Errorf("%+v", made)
	}
	shown, err := json.Marshal(made.Tools)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"what was sent": tools, "what was shown": string(shown)} {
		if again := answer(t, ask(s, "POST", "/v1/agents/"+made.ID, `{"tools": `+text+`}`), http.StatusOK); again.Version != 1 {
			t.Errorf("%s made version %d: %+v", name, again.Version, again.Tools)
		}
	}
	a.Version, a.Definition.Policy.Deny = 2, append(slices.Clone(a.Definition.Policy.Deny), "delete") // said by another form, too
	if err := db.Agents().Update(t.Context(), a, agent.Limits{}); err != nil {
		t.Fatal(err)
	}
	less := answer(t, ask(s, "POST", "/v1/agents/"+made.ID, `{"tools": [{"type": "agent_toolset_20260401", "default_config": {"enabled": false}, "configs": [{"name": "read", "enabled": true}]}], "mcp_servers": null}`), http.StatusOK)
	if a, err := db.Agents().Get(t.Context(), s.Caller.Tenant.ID, made.ID); err != nil || !slices.Contains(a.Definition.Policy.Deny, "delete") || slices.Contains(a.Definition.Policy.Deny, "mail/delete") {
		t.Errorf("%+v, %v", a, err)
	}
	if less.Version != 3 || len(less.Tools) != 1 || len(less.Tools[0].Configs) != 7 || len(less.MCPServers) > 0 {
		t.Errorf("%+v", less)
	}
	// An empty toolset of a server allows none of its tools.
	closed := answer(t, ask(s, "POST", "/v1/agents/"+made.ID, `{"tools": [{"type": "mcp_toolset", "mcp_server_name": "a", "default_config": {"enabled": false}}], "mcp_servers": [{"type": "url", "name": "a", "url": "https://a.example"}]}`), http.StatusOK)
	if a, err := db.Agents().Get(t.Context(), s.Caller.Tenant.ID, closed.ID); err != nil || a.Definition.Servers[0].AllowedTools == nil || closed.Tools[0].DefaultConfig.Enabled {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestNothingIsLost: what the native API stored and this API cannot express, is named and stays.
func TestNothingIsLost(t *testing.T) {
	s, db := open(t)
	w := httpapitest.Ask(s, "POST", "/default/v1/agents", `{"name": "n", "slug": "support", "model": {"name": "m", "max_tokens": 100, "temperature": 0.5, "stop": ["x"], "effort": "minimal"},
		"tools": [{"type": "mcp", "server": "web-search"}, {"type": "mcp", "server": "orders"}], "mcp_servers": [{"name": "orders", "url": "https://a.example", "description": "d", "headers": {"A": "hidden"}, "allowed_tools": ["find"]}],
		"metadata": {"team": "a", "size": 3, "tool_policy": {"allow_list": ["web-search", "orders"], "deny_list": ["other", "orders/find"], "require_confirmation": ["web-search"]}}}`)
	if w.Code != http.StatusCreated {
		t.Fatal(w.Body)
	}
	seen := answer(t, ask(s, "GET", "/v1/agents/support", ""), http.StatusOK)
	var paths []string
	for _, w := range seen.Warnings {
		paths = append(paths, w.Path)
	}
	if want := []string{"slug", "model.max_tokens", "model.temperature", "model.stop", "model.effort", "mcp_servers[0].headers", "mcp_servers[0].description", "metadata.size", "metadata.tool_policy", "tool_policy.allow_list", "tool_policy.deny_list"}; !slices.Equal(paths, want) {
		t.Errorf("warnings are about %v, want %v", paths, want)
	}
	if len(seen.Tools) != 2 || seen.Tools[0].Configs[len(seen.Tools[0].Configs)-1].PermissionPolicy.Type != "always_ask" || seen.Tools[1].DefaultConfig.Enabled || len(seen.Tools[1].Configs) > 0 || seen.Metadata["team"] != "a" || len(seen.Metadata) != 1 {
		t.Errorf("%+v", seen)
	}
	servers, err := json.Marshal(seen.MCPServers)
	if err != nil {
		t.Fatal(err)
	}
	changed := answer(t, ask(s, "POST", "/v1/agents/support", `{"version": 1, "system": "Be kind.", "description": null, "model": "m", "metadata": {"more": "b", "team": null}, "mcp_servers": `+string(servers)+`}`), http.StatusOK)
	if changed.Version != 2 || !reflect.DeepEqual(changed.Metadata, map[string]string{"more": "b"}) {
		t.Errorf("%+v", changed)
	}
	a, err := db.Agents().Get(t.Context(), s.Caller.Tenant.ID, "support")
	if err != nil {
		t.Fatal(err)
	}
	d := &a.Definition
	if d.Model.MaxTokens != 100 || *d.Model.Temperature != 0.5 || d.Model.Effort != "minimal" || d.Servers[0].Headers["A"] != "hidden" || d.Servers[0].AllowedTools[0] != "find" || string(d.Metadata["size"]) != "3" || len(d.Policy.Allow) != 2 || len(d.Policy.Deny) != 2 {
		t.Errorf("%+v", d)
	}
	// New tools take the place of what the policy says of them, and of nothing else.
	answer(t, ask(s, "POST", "/v1/agents/support", `{"tools": [{"type": "mcp_toolset", "mcp_server_name": "orders"}]}`), http.StatusOK)
	a, err = db.Agents().Get(t.Context(), s.Caller.Tenant.ID, "support")
	if err != nil || !slices.Equal(a.Definition.Policy.Deny, []string{"other"}) || len(a.Definition.Policy.Confirm) > 0 || len(a.Definition.Policy.Allow) != 2 || !strings.Contains(string(a.Definition.Metadata["tool_policy"]), `"deny_list":["other"]`) {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestRefusals(t *testing.T) {
	s, db := open(t)
	for says, body := range map[string]string{
		"name is required":  `"model": "m"`,
		"model is required": `"name": "n"`,
		"skills[0].type: there are no skills of Anthropic's":  `"name": "n", "model": "m", "skills": [{"type": "anthropic", "skill_id": "xlsx"}]`,
		"multiagent.agents must have 1 to 16 agents":          `"name": "n", "model": "m", "multiagent": {"type": "coordinator"}`,
		"multiagent.type must be coordinator":                 `"name": "n", "model": "m", "multiagent": {"type": "multiagent_20261001"}`,
		"multiagent.agents[0].type must be agent":             `"name": "n", "model": "m", "multiagent": {"type": "coordinator", "agents": [{"type": "self"}]}`,
		"multiagent.agents[0].id is required":                 `"name": "n", "model": "m", "multiagent": {"type": "coordinator", "agents": [{"type": "agent"}]}`,
		"execution_identity.type":                             `"name": "n", "model": "m", "execution_identity": {"type": "aws_role"}`,
		"model.speed":                                         `"name": "n", "model": {"id": "m", "speed": "fast"}`,
		"model.effort must be one of":                         `"name": "n", "model": {"id": "m", "effort": {"type": "max"}}`,
		"model.id is required":                                `"name": "n", "model": {}`,
		`no model \"x\"`:                                      `"name": "n", "model": "x"`,
		"tools[0].type is required":                           `"name": "n", "model": "m", "tools": [{}]`,
		"tools[0].type must be":                               `"name": "n", "model": "m", "tools": [{"type": "bash_20250124"}]`,
		`no tool "fly"`:                                       `"name": "n", "model": "m", "tools": [{"type": "agent_toolset_20260401", "configs": [{"name": "fly"}]}]`,
		"configs[0].permission_policy.type":                   `"name": "n", "model": "m", "tools": [{"type": "agent_toolset_20260401", "configs": [{"name": "bash", "permission_policy": {"type": "auto"}}]}]`,
		"tools[1]: there is another":                          `"name": "n", "model": "m", "tools": [{"type": "agent_toolset_20260401"}, {"type": "agent_toolset_20260401"}]`,
		"below a default of always_ask":                       `"name": "n", "model": "m", "mcp_servers": [{"type": "url", "name": "a", "url": "https://a.example"}], "tools": [{"type": "mcp_toolset", "mcp_server_name": "a", "default_config": {"permission_policy": {"type": "always_ask"}}, "configs": [{"name": "x", "permission_policy": {"type": "always_allow"}}]}]`,
		"only the tools of one of mcp_servers":                `"name": "n", "model": "m", "tools": [{"type": "mcp_toolset", "mcp_server_name": "a", "default_config": {"enabled": false}}]`,
		"tools[0].name must have":                             `"name": "n", "model": "m", "tools": [{"type": "custom", "name": "a b", "description": "", "input_schema": {"type": "object"}}]`,
		"metadata.tool_policy must be":                        `"name": "n", "model": "m", "metadata": {"tool_policy": "x"}`,
		"metadata must be an object whose values are strings": `"name": "n", "model": "m", "metadata": {"a": 1}`,
		"prompt": `"name": "n", "model": "m", "prompt": "x"`,
	} {
		refused(t, ask(s, "POST", "/v1/agents", "{"+body+"}"), http.StatusBadRequest, "invalid_request_error", strings.ReplaceAll(says, `\"`, `"`))
	}
	refused(t, ask(s, "POST", "/v1/memory_stores", `{}`), http.StatusBadRequest, "invalid_request_error", "/v1/memory_stores is not served")
	theirs := agenttest.New("ten_other", "theirs")
	theirs.Visibility = agent.Template
	if err := db.Agents().Create(t.Context(), theirs, agent.Limits{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"none", string(agent.NewID()), string(theirs.ID), "theirs"} {
		at := "/v1/agents/" + name
		for _, request := range []string{"GET " + at, "GET " + at + "/versions", "POST " + at + "/archive"} {
			method, path, _ := strings.Cut(request, " ")
			refused(t, ask(s, method, path, ""), http.StatusNotFound, "not_found_error", "agent not found")
		}
		refused(t, ask(s, "POST", at, `{"name": "x"}`), http.StatusNotFound, "not_found_error", "agent not found")
	}
	refused(t, httpapitest.Ask(s.Server, "GET", "/anthropic/v1/agents", "", "Authorization", ""), http.StatusUnauthorized, "authentication_error", "as api_key")
	refused(t, httpapitest.Ask(s.Server, "GET", "/anthropic/v1/agents", "", "X-Api-Key", "x"), http.StatusUnauthorized, "authentication_error", "more than one")
}

// TestChanges: with a version a change of another one is refused; without, the last one wins.
func TestChanges(t *testing.T) {
	s, _ := open(t)
	made := answer(t, ask(s, "POST", "/v1/agents", `{"name": "n", "model": "m"}`), http.StatusOK)
	at := "/v1/agents/" + made.ID
	for i := range 3 {
		if now := answer(t, ask(s, "POST", at, fmt.Sprintf(`{"system": "%d"}`, i)), http.StatusOK); now.Version != i+2 {
			t.Errorf("%+v", now)
		}
	}
	refused(t, ask(s, "POST", at, `{"system": "late", "version": 1}`), http.StatusConflict, "conflict_error", "at version 4")
	if first := answer(t, httpapitest.Ask(s.Server, "GET", "/anthropic"+at+"?version=2", ""), http.StatusOK); *first.System != "0" || first.Version != 2 {
		t.Errorf("%+v", first)
	}
	refused(t, httpapitest.Ask(s.Server, "GET", "/anthropic"+at+"?version=9", ""), http.StatusNotFound, "not_found_error", "no version 9")
	var page struct{ Data []anthropic.Agent }
	if w := httpapitest.Ask(s.Server, "GET", at+"/versions?limit=2", "", "Anthropic-Beta", "other-2026-01-01,managed-agents-2026-04-01"); w.Code != http.StatusOK || json.Unmarshal(w.Body.Bytes(), &page) != nil || len(page.Data) != 2 || page.Data[0].ExecutionIdentity.Type != "service_account" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if archived := answer(t, ask(s, "POST", at+"/archive", ""), http.StatusOK); archived.ArchivedAt == nil {
		t.Errorf("%+v", archived)
	}
	refused(t, ask(s, "POST", at, `{"system": "late"}`), http.StatusConflict, "conflict_error", "archived")
}

// TestHandoffsStay: this form names the hand-offs of an agent, and a change in it keeps them.
func TestHandoffsStay(t *testing.T) {
	s, db := open(t)
	for _, body := range []string{`{"name": "n", "slug": "other", "model": {"name": "m"}}`, `{"name": "n", "slug": "lead", "model": {"name": "m"}, "handoffs": [{"agent_id": "other"}]}`} {
		if w := httpapitest.Ask(s, "POST", "/v1/agents", body); w.Code != http.StatusCreated {
			t.Fatal(w.Body)
		}
	}
	seen := answer(t, ask(s, "GET", "/v1/agents/lead", ""), http.StatusOK)
	if len(seen.Warnings) != 2 || seen.Warnings[1].Path != "multiagent" || seen.Multiagent == nil || len(seen.Multiagent.Agents) != 1 {
		t.Errorf("%+v", seen)
	}
	answer(t, ask(s, "POST", "/v1/agents/lead", `{"version": 1, "system": "Be kind."}`), http.StatusOK)
	if a, err := db.Agents().Get(t.Context(), s.Caller.Tenant.ID, "lead"); err != nil || a.Version != 2 || len(a.Definition.Handoffs) != 1 {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestMultiagent: a coordinator is an orchestrator, and what was said of its agents stays.
func TestMultiagent(t *testing.T) {
	s, db := open(t)
	var ids []string
	for _, name := range []string{"Research", "Writer", "research!"} {
		ids = append(ids, answer(t, ask(s, "POST", "/v1/agents", fmt.Sprintf(`{"name": %q, "model": "m", "description": "Is %s."}`, name, name)), http.StatusOK).ID)
	}
	made := answer(t, ask(s, "POST", "/v1/agents", fmt.Sprintf(`{"name": "Lead", "model": "m", "multiagent": {"type": "coordinator", "agents": [%q, {"type": "agent", "id": %q, "version": 1, "trigger": "for texts"}]}}`, ids[0], ids[1])), http.StatusOK)
	text := func(a anthropic.Agent) string {
		t.Helper()
		out, err := json.Marshal(a.Multiagent)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	want := fmt.Sprintf(`{"type":"coordinator","agents":[{"description":"Is Research.","id":%q,"name":"Research","type":"agent","version":1},{"description":"Is Writer.","id":%q,"name":"Writer","trigger":"for texts","type":"agent","version":1}]}`, ids[0], ids[1])
	if got := text(made); got != want || len(made.Warnings) != 0 {
		t.Errorf("%s %+v, want %s", got, made.Warnings, want)
	}
	at := "/v1/agents/" + made.ID
	a, err := db.Agents().Get(t.Context(), s.Caller.Tenant.ID, made.ID)
	if h := a.Definition.Hands(); err != nil || h.Mode != agent.Orchestrator || !h.Parallel || h.TimeoutMS != agent.MaxTimeoutMS || h.MaxDelegations != agent.MaxDelegations {
		t.Fatalf("%+v, %v", h, err)
	}
	// The same again is no new version, and neither is what was read.
	if again := answer(t, ask(s, "POST", at, `{"multiagent": `+want+`}`), http.StatusOK); again.Version != 1 {
		t.Errorf("%+v", again)
	}
	if w := httpapitest.Ask(s.Server, "PATCH", "/v1/agents/"+made.ID, `{"version": 1, "multiagent": {"timeout_per_handoff_ms": 5000}}`, "Content-Type", "application/json"); w.Code != http.StatusOK {
		t.Fatal(w.Body)
	}
	second := answer(t, ask(s, "POST", at, fmt.Sprintf(`{"multiagent": {"type": "coordinator", "agents": [%q]}}`, ids[1])), http.StatusOK)
	if len(second.Warnings) != 1 || second.Warnings[0].Path != "multiagent" || !strings.Contains(text(second), "for texts") {
		t.Errorf("%+v", second)
	}
	if a, err = db.Agents().Get(t.Context(), s.Caller.Tenant.ID, made.ID); err != nil || a.Definition.Hands().TimeoutMS != 5000 || len(a.Definition.Handoffs) != 1 {
		t.Errorf("%+v, %v", a, err)
	}
	for body, says := range map[string]string{
		fmt.Sprintf(`[%q, {"type": "agent", "id": %q}]`, ids[0], ids[0]):   "multiagent.agents[1] is the same agent",
		fmt.Sprintf(`[%q, %q]`, ids[0], ids[2]):                            "multiagent.agents[1]: its tool would be called handoff_to_research",
		fmt.Sprintf(`[{"type": "agent", "id": %q, "version": 7}]`, ids[0]): "",
		`["agt_00000000000000000000000000000000"]`:                         "",
	} {
		w := ask(s, "POST", at, `{"multiagent": {"type": "coordinator", "agents": `+body+`}}`)
		if says != "" {
			refused(t, w, http.StatusBadRequest, "invalid_request_error", says)
		} else {
			refused(t, w, http.StatusNotFound, "not_found_error", "multiagent.agents[0]")
		}
	}
	if none := answer(t, ask(s, "POST", at, `{"multiagent": null}`), http.StatusOK); none.Multiagent != nil || len(none.Warnings) != 0 {
		t.Errorf("%+v", none)
	}
	// A swarm has no word in this form, and stays until one takes its place.
	if w := httpapitest.Ask(s.Server, "PATCH", "/v1/agents/"+made.ID, fmt.Sprintf(`{"version": 4, "handoffs": [{"agent_id": %q}], "multiagent": {"mode": "swarm"}}`, ids[0]), "Content-Type", "application/json"); w.Code != http.StatusOK {
		t.Fatal(w.Body)
	}
	swarm := answer(t, ask(s, "POST", at, `{"system": "Be kind."}`), http.StatusOK)
	if swarm.Multiagent != nil || len(swarm.Warnings) != 2 || swarm.Warnings[0].Path != "handoffs" {
		t.Errorf("%+v", swarm)
	}
	if lead := answer(t, ask(s, "POST", at, `{"multiagent": `+want+`}`), http.StatusOK); text(lead) != want || len(lead.Warnings) != 0 {
		t.Errorf("%+v", lead)
	}
}
