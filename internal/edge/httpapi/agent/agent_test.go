package agent_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/agent/agents"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/agent/agenttest"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/core/skill/skilltest"
	agentapi "github.com/atoll-run/atoll/internal/edge/httpapi/agent"
	"github.com/atoll-run/atoll/internal/infra/store"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
	"github.com/atoll-run/atoll/test/httpapitest"
)

func open(t *testing.T) (*httpapitest.Server, *store.DB) {
	t.Helper()
	db := storetest.SQLite(t)
	declared := &httpapitest.Declared{}
	all := model.Spec{Capabilities: model.Capabilities}
	declared.Set(model.Record{Name: "claude-sonnet-4", Provider: "anthropic", AllTenants: true, Spec: model.Spec{MaxOutput: 64000, Capabilities: model.Capabilities}},
		model.Record{Name: "m", Provider: "openai", AllTenants: true, Spec: all}, model.Record{Name: "plain", Provider: "openai", AllTenants: true},
		model.Record{Name: "others", Provider: "openai", Tenants: []string{"other"}, Source: "file"})
	catalog := model.NewCatalog(model.CatalogConfig{Store: db.Models(), Declared: declared, Tenant: db.Tenants().Tenant, Plan: db.Tenants().Plan})
	s := httpapitest.New(t, func(c *httpapitest.Setup) {
		c.Agents = &agentapi.Handlers{Service: &agents.Service{Store: db.Agents(), Models: catalog, Skills: db.Skills(), Limits: agent.Limits{Agents: 50, Versions: 100}}}
	})
	storetest.Tenant(t, db, s.Caller.Tenant.ID)
	return s, db
}

var answer = httpapitest.Decode[agentapi.Agent]

// TestTheContractsRequests sends what the original contract's document has.
func TestTheContractsRequests(t *testing.T) {
	s, _ := open(t)
	const base = "/default/v1/agents"
	made := answer(t, httpapitest.Ask(s, "POST", base, `{"name": "Customer Support Agent", "slug": "support-agent",
		"model": {"name": "claude-sonnet-4", "max_tokens": 4096, "temperature": 0.7}, "system": "You are a helpful customer support agent.",
		"tools": [{"type": "mcp", "server": "web-search"}, {"type": "mcp", "server": "database-query"}],
		"mcp_servers": [{"name": "web-search", "url": "https://mcp.sandbase.ai/web-search"}]}`), http.StatusCreated)
	if made.Version != 1 || len(made.Warnings) != 1 || made.Warnings[0].Path != "tools[1].server" || *made.Slug != "support-agent" {
		t.Errorf("%+v", made)
	}
	second := answer(t, httpapitest.Ask(s, "PATCH", base+"/"+made.ID, `{"system": "Updated system prompt...", "version": 1}`, "Content-Type", "application/json"), http.StatusOK)
	if second.Version != 2 || *second.System != "Updated system prompt..." || len(second.Tools) != 2 {
		t.Errorf("%+v", second)
	}
	httpapitest.Refused(t, httpapitest.Ask(s, "PATCH", base+"/support-agent", `{"system": "Mine", "version": 1}`, "Content-Type", "application/json"), http.StatusConflict, "conflict", "at version 2")
	if again := answer(t, httpapitest.Ask(s, "PATCH", base+"/support-agent", `{"system": "Updated system prompt...", "version": 2}`, "Content-Type", "application/json"), http.StatusOK); again.Version != 2 {
		t.Errorf("a change of nothing made version %d", again.Version)
	}
	if first := answer(t, httpapitest.Ask(s, "GET", base+"/support-agent/versions/1", ""), http.StatusOK); *first.System == *second.System {
		t.Errorf("%+v", first)
	}
	policy := answer(t, httpapitest.Ask(s, "POST", base, `{"name": "Safe Assistant", "slug": "safe-assistant", "model": {"name": "claude-sonnet-4"},
		"system": "You are a helpful assistant with limited capabilities.", "tools": [{"type": "mcp", "server": "web-search"}, {"type": "mcp", "server": "calculator"}],
		"metadata": {"tool_policy": {"allow_list": ["web-search", "calculator"], "deny_list": ["database-query", "file-write"], "require_confirmation": ["web-search"]}}}`), http.StatusCreated)
	if len(policy.ToolPolicy.DenyList) != 2 || policy.ToolPolicy.RequireConfirmation[0] != "web-search" || policy.Metadata["tool_policy"] == nil {
		t.Errorf("%+v", policy)
	}
	if archived := answer(t, httpapitest.Ask(s, "POST", base+"/support-agent/archive", ""), http.StatusOK); archived.ArchivedAt == nil {
		t.Errorf("%+v", archived)
	}
	httpapitest.Refused(t, httpapitest.Ask(s, "PATCH", base+"/support-agent", `{"system": "Late", "version": 2}`, "Content-Type", "application/json"), http.StatusConflict, "conflict", "archived")
	if w := httpapitest.Ask(s, "GET", base, ""); strings.Contains(w.Body.String(), made.ID) || !strings.Contains(w.Body.String(), policy.ID) {
		t.Errorf("%s", w.Body)
	}
}

func TestRefusals(t *testing.T) {
	s, _ := open(t)
	for says, with := range map[string]string{
		"skills[0].config.allowed_domains must have 1 to 64":                      `"skills": [{"name": "web-browsing", "config": {"allowed_domains": []}}]`,
		"skills[0].config.allowed_domains[1]:":                                    `"skills": [{"name": "web-browsing", "config": {"allowed_domains": ["192.0.2.7", "https://example.com"]}}]`,
		"skills[0].config.allowed_domains[0] must be a domain":                    `"skills": [{"name": "web-browsing", "config": {"allowed_domains": ["*.example.com"]}}]`,
		"skills[0].config.max_pages must be":                                      `"skills": [{"name": "web-browsing", "config": {"max_pages": 201}}]`,
		"skills[0].config.max_text_kb must be":                                    `"skills": [{"name": "web-browsing", "config": {"max_text_kb": 65}}]`,
		"skills[0].config.page_timeout_ms must be":                                `"skills": [{"name": "web-browsing", "config": {"page_timeout_ms": 999}}]`,
		"skills[0].config: screenshots must be":                                   `"skills": [{"name": "web-browsing", "config": {"screenshots": "no"}}]`,
		"skills[0]: web-browsing needs the tool sandbox":                          `"tools": [{"type": "sandboxes"}], "skills": ["web-browsing"]`,
		"already has a tool named open_page":                                      `"tools": [{"type": "custom", "name": "open_page"}], "skills": ["web-browsing"]`,
		"skills[0].name: there is no skill":                                       `"skills": ["unknown"]`,
		"skills[0].skill_id: there is no skill":                                   `"skills": [{"type": "custom", "skill_id": "skill_0123456789abcdef0123456789abcdef"}]`,
		"skills[0]: skill_id applies only to your own skills":                     `"skills": [{"name": "structured-planning", "skill_id": "skill_0123456789abcdef0123456789abcdef"}]`,
		"skills[1]: duplicate structured-planning":                                `"skills": ["structured-planning", {"name": "structured-planning"}]`,
		"skills[0].config: unknown field":                                         `"skills": [{"name": "structured-planning", "config": {"steps": 1}}]`,
		"skills[0].config.formats[1] must be one of":                              `"skills": [{"name": "file-management", "config": {"formats": ["pdf", "odt"]}}]`,
		"skills[0].config.max_file_mb must be":                                    `"skills": [{"name": "file-management", "config": {"max_file_mb": 0}}]`,
		"already has a tool named read_document":                                  `"tools": [{"type": "custom", "name": "read_document"}], "skills": ["file-management"]`,
		"skills[0].config.max_iterations must be a whole number between 1 and 10": `"skills": [{"name": "reflection-loop", "config": {"max_iterations": 11}}]`,
		"skills[0].config.quality_threshold must be between 0 and 1":              `"skills": [{"name": "reflection-loop", "config": {"quality_threshold": 1.5}}]`,
		"skills[0].config.max_state_size_kb must be":                              `"skills": [{"name": "long-running-state", "config": {"max_state_size_kb": 1.5}}]`,
		"skills[0].config: max_state_size_kb must be":                             `"skills": [{"name": "long-running-state", "config": {"max_state_size_kb": "x"}}]`,
		"skills[0].version applies only to your own skills":                       `"skills": [{"name": "structured-planning", "version": 1}]`,
		"skills[0] must be the name":                                              `"skills": [7]`,
		"already has a tool named update_plan":                                    `"tools": [{"type": "custom", "name": "update_plan"}], "skills": ["structured-planning"]`,
		"multiagent.parallel must be false in a swarm":                            `"multiagent": {"mode": "swarm", "parallel": true}`,
		"multiagent.sandbox must be shared in a swarm":                            `"multiagent": {"mode": "swarm", "sandbox": "own"}`,
		"multiagent.context_sharing must be full in a swarm":                      `"multiagent": {"mode": "swarm", "context_sharing": "summary"}`,
		"multiagent.timeout_per_handoff_ms must be omitted in a swarm":            `"multiagent": {"mode": "swarm", "timeout_per_handoff_ms": 1000}`,
		"multiagent.timeout_per_handoff_ms must be between":                       `"multiagent": {"timeout_per_handoff_ms": 99}`,
		"multiagent.max_delegations must be between 1 and 100":                    `"multiagent": {"max_delegations": 101}`,
		"multiagent.mode":                         `"multiagent": {"mode": "chain"}`,
		"visibility":                              `"visibility": "public"`,
		"slug must have":                          `"slug": "Not a slug"`,
		"tools[0].server":                         `"tools": [{"type": "mcp"}]`,
		"tools[1]: duplicate":                     `"tools": [{"type": "sandbox"}, {"type": "sandbox"}]`,
		"mcp_servers[0].url":                      `"mcp_servers": [{"name": "a", "url": "ftp://x"}]`,
		"tools[1]: sandbox and sandboxes":         `"tools": [{"type": "mcp", "server": "sandbox"}, {"type": "sandboxes"}]`,
		"mcp_servers[0] must have url or command": `"mcp_servers": [{"name": "a", "url": "https://x.example", "command": "x"}]`,
		"mcp_servers[0].type: a server":           `"mcp_servers": [{"name": "a", "url": "https://x.example", "type": "stdio"}]`,
		"mcp_servers[0]: args and env":            `"mcp_servers": [{"name": "a", "url": "https://x.example", "args": ["x"]}]`,
		"mcp_servers[0].env must have names":      `"mcp_servers": [{"name": "a", "command": "x", "env": {"A B": "x"}}]`,
		"mcp_servers[0].args must have":           `"mcp_servers": [{"name": "a", "command": "x", "args": ["\u0000"]}]`,
		"tool_policy.deny_list[0]":                `"tool_policy": {"deny_list": [""]}`,
		"metadata.tool_policy":                    `"metadata": {"tool_policy": {"deny": []}}`,
		"are the same; give one of them":          `"tool_policy": {}, "metadata": {"tool_policy": {}}`,
	} {
		w := httpapitest.Ask(s, "POST", "/v1/agents", `{"name": "n", "model": {"name": "m"}, `+with+`}`)
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), says) {
			t.Errorf("%s: %d %s", with, w.Code, w.Body)
		}
	}
	for says, body := range map[string]string{
		`model.name: there is no model \"none\"`:   `"model": {"name": "none"}`,
		`model.name: there is no model \"others\"`: `"model": {"name": "others"}`,
		"tools[1].type is required":                `"model": {"name": "m"}, "tools": [{"type": "sandbox"}, {}]`,
		"tools[0].type is required":                `"model": {"name": "m"}, "tools": [null]`,
		"mcp_servers[0].name is required":          `"model": {"name": "m"}, "mcp_servers": [{}]`,
		"mcp_servers[0] must have url or":          `"model": {"name": "m"}, "mcp_servers": [{"name": "a"}]`,
		"model.name is required":                   `"model": {}`,
		"model.max_tokens must be at most 64000":   `"model": {"name": "claude-sonnet-4", "max_tokens": 64001}`,
		"model.temperature must be at most 1":      `"model": {"name": "claude-sonnet-4", "temperature": 1.5}`,
		"model.temperature must be between":        `"model": {"name": "m", "temperature": 2.5}`,
		"model.effort must be omitted":             `"model": {"name": "plain", "effort": "low"}`,
		"tools must be empty":                      `"model": {"name": "plain"}, "tools": [{"type": "sandbox"}]`,
		"model.stop[0] must have":                  `"model": {"name": "m", "stop": [""]}`,
		"at most 1048576 bytes of JSON":            `"model": {"name": "m"}, "tools": [` + large("a") + `,` + large("b") + `,` + large("c") + `,` + large("d") + `,` + large("e") + `]`,
	} {
		w := httpapitest.Ask(s, "POST", "/v1/agents", `{"name": "n", `+body+`}`)
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), says) {
			t.Errorf("%s: %d %s", says, w.Code, w.Body)
		}
	}
	for _, path := range []string{"/v1/agents/none", "/v1/agents/agt_00000000000000000000000000000000", "/v1/agents/none/versions", "/v1/agents/none/versions/1"} {
		if w := httpapitest.Ask(s, "GET", path, ""); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// large is a tool that is nearly as large as one may be.
func large(name string) string {
	return `{"type": "custom", "name": "` + name + `", "input_schema": {"description": "` + strings.Repeat("x", 250<<10) + `"}}`
}

// TestNothingIsNotAll: an empty list of what is allowed allows nothing, from the request to the
// store and back, also after a change that leaves it out.
func TestNothingIsNotAll(t *testing.T) {
	s, db := open(t)
	const servers = `"mcp_servers": [{"name": "a", "url": "https://a.example", "allowed_tools": []}]`
	for slug, with := range map[string]string{"own": `"tool_policy": {"allow_list": []}`, "in-metadata": `"metadata": {"tool_policy": {"allow_list": []}}`} {
		made := answer(t, httpapitest.Ask(s, "POST", "/v1/agents", `{"name": "n", "slug": "`+slug+`", "model": {"name": "m"}, `+servers+`, `+with+`}`), http.StatusCreated)
		changed := answer(t, patch(s, "/v1/agents/"+slug, `{"version": 1, "system": "x", "metadata": {"team": "a"}}`), http.StatusOK)
		for _, a := range []agentapi.Agent{made, changed, answer(t, httpapitest.Ask(s, "GET", "/v1/agents/"+slug, ""), http.StatusOK)} {
			if a.ToolPolicy.AllowList == nil || len(a.ToolPolicy.AllowList) > 0 || a.MCPServers[0].AllowedTools == nil || len(a.MCPServers[0].AllowedTools) > 0 {
				t.Errorf("%s: version %d has %#v and %#v", slug, a.Version, a.ToolPolicy, a.MCPServers[0])
			}
		}
		kept, err := db.Agents().Get(t.Context(), s.Caller.Tenant.ID, slug)
		if err != nil || kept.Definition.Policy.Allow == nil || kept.Definition.Servers[0].AllowedTools == nil {
			t.Errorf("%s: %+v, %v", slug, kept, err)
		}
	}
	// null is what is omitted; and lists that mean the same empty or omitted are no change.
	open := answer(t, httpapitest.Ask(s, "POST", "/v1/agents", `{"name": "n", "slug": "open", "model": {"name": "m", "stop": []}, "tools": [], "metadata": {"tool_policy": null},
		"mcp_servers": [{"name": "a", "url": "https://a.example", "headers": {}}], "tool_policy": {"allow_list": null, "deny_list": [], "require_confirmation": []}}`), http.StatusCreated)
	if open.ToolPolicy.AllowList != nil || open.MCPServers[0].AllowedTools != nil {
		t.Errorf("%+v", open)
	}
	same := answer(t, patch(s, "/v1/agents/open", `{"version": 1, "model": {"name": "m"}, "tools": [], "mcp_servers": [{"name": "a", "url": "https://a.example", "headers": {}}], "tool_policy": {"deny_list": []}}`), http.StatusOK)
	if same.Version != 1 {
		t.Errorf("a change of nothing made version %d", same.Version)
	}
	// One agent does not say two things of its policy.
	answer(t, patch(s, "/v1/agents/in-metadata", `{"version": 2, "metadata": {"tool_policy": {"deny_list": ["a"]}}}`), http.StatusOK)
	both := answer(t, patch(s, "/v1/agents/in-metadata", `{"version": 3, "tool_policy": {"deny_list": ["b"]}}`), http.StatusOK)
	if text := string(both.Metadata["tool_policy"]); !strings.Contains(text, `["b"]`) || both.ToolPolicy.DenyList[0] != "b" {
		t.Errorf("%+v, and metadata %s", both.ToolPolicy, text)
	}
}

func patch(s *httpapitest.Server, path, body string) *httptest.ResponseRecorder {
	return httpapitest.Ask(s, "PATCH", path, body, "Content-Type", "application/json")
}

// TestLimits: what a tenant has is bounded, and what is at its bound can still be read.
func TestLimits(t *testing.T) {
	s, _ := open(t)
	for i := range 50 {
		answer(t, httpapitest.Ask(s, "POST", "/v1/agents", fmt.Sprintf(`{"name": "n", "slug": "a%d", "model": {"name": "m"}}`, i)), http.StatusCreated)
	}
	httpapitest.Refused(t, httpapitest.Ask(s, "POST", "/v1/agents", `{"name": "n", "model": {"name": "m"}}`), http.StatusTooManyRequests, "rate_limited", "archive or delete some")
	for i := range 50 {
		answer(t, patch(s, "/v1/agents/a0", fmt.Sprintf(`{"version": %d, "system": "%[1]d"}`, i+1)), http.StatusOK)
	}
	httpapitest.Refused(t, patch(s, "/v1/agents/a0", `{"version": 51, "system": "more"}`), http.StatusTooManyRequests, "rate_limited", "100 agent versions")
	answer(t, httpapitest.Ask(s, "GET", "/v1/agents/a0", ""), http.StatusOK)
}

// TestHeadersAreKeptSecret: no answer has them, and a change that leaves them out keeps them
// while the server is the same.
func TestHeadersAreKeptSecret(t *testing.T) {
	s, db := open(t)
	w := httpapitest.Ask(s, "POST", "/v1/agents", `{"name": "n", "slug": "n", "model": {"name": "m"}, "mcp_servers": [{"name": "a", "url": "https://a.example", "headers": {"Authorization": "Bearer hidden"}}]}`)
	made := answer(t, w, http.StatusCreated)
	again := httpapitest.Ask(s, "PATCH", "/v1/agents/n", `{"version": 1, "mcp_servers": [{"name": "a", "url": "https://a.example", "description": "d"}]}`, "Content-Type", "application/json")
	answer(t, again, http.StatusOK)
	moved := httpapitest.Ask(s, "PATCH", "/v1/agents/n", `{"version": 2, "mcp_servers": [{"name": "a", "url": "https://b.example"}]}`, "Content-Type", "application/json")
	answer(t, moved, http.StatusOK)
	if strings.Contains(w.Body.String()+again.Body.String()+moved.Body.String(), "hidden") {
		t.Error("an answer has a header")
	}
	for version, want := range map[int]string{2: "Bearer hidden", 3: ""} {
		a, err := db.Agents().At(t.Context(), s.Caller.Tenant.ID, made.ID, version)
		if err != nil || a.Definition.Servers[0].Headers["Authorization"] != want {
			t.Errorf("version %d has %+v, %v", version, a, err)
		}
	}
	events, err := db.Tenants().PolicyEvents(t.Context(), s.Caller.Tenant.ID)
	if err != nil || len(events) != 3 || events[2].Field != "agent/"+made.ID || events[2].Old != "version 2" || events[2].New != "version 3" {
		t.Errorf("the trail of policy is %+v, %v", events, err)
	}
}

// TestTemplates: another tenant's template is seen and copied by its id, without what is its
// owner's alone; nothing else of it can be reached, and nothing of an agent that is private.
func TestTemplates(t *testing.T) {
	s, db := open(t)
	theirs := agenttest.New("ten_other", "support")
	theirs.Definition.Servers[0].URL += "?token=hidden"
	theirs.Definition.Servers[0].Headers = map[string]string{"Authorization": "Bearer hidden"}
	theirs.Definition.Metadata["note"] = json.RawMessage(`"hidden"`)
	if err := db.Agents().Create(t.Context(), theirs, agent.Limits{}); err != nil {
		t.Fatal(err)
	}
	at := "/v1/agents/" + string(theirs.ID)
	for _, method := range []string{"GET " + at, "POST " + at + "/copy"} {
		verb, path, _ := strings.Cut(method, " ")
		httpapitest.Refused(t, httpapitest.Ask(s, verb, path, ""), http.StatusNotFound, "not_found", "agent not found")
	}
	theirs.Version, theirs.Visibility = 2, agent.Template
	if err := db.Agents().Update(t.Context(), theirs, agent.Limits{}); err != nil {
		t.Fatal(err)
	}
	w := httpapitest.Ask(s, "GET", at, "")
	seen := answer(t, w, http.StatusOK)
	if strings.Contains(w.Body.String(), "hidden") || seen.Slug != nil || *seen.System != "Be concise." || *seen.MCPServers[0].URL != "https://mcp.example.com/orders" || len(seen.Metadata) > 0 || seen.ToolPolicy.RequireConfirmation[0] != "ask" {
		t.Errorf("another tenant sees %s", w.Body)
	}
	for _, path := range []string{"GET " + at + "/versions", "GET " + at + "/versions/2", "POST " + at + "/archive", "GET /v1/agents/support"} {
		verb, path, _ := strings.Cut(path, " ")
		httpapitest.Refused(t, httpapitest.Ask(s, verb, path, ""), http.StatusNotFound, "not_found", "")
	}
	httpapitest.Refused(t, patch(s, at, `{"version": 2, "system": "x"}`), http.StatusNotFound, "not_found", "agent not found")
	if w := httpapitest.Ask(s, "GET", "/v1/agents?include_archived=true", ""); strings.Contains(w.Body.String(), string(theirs.ID)) {
		t.Errorf("the list has %s", w.Body)
	}
	made := answer(t, httpapitest.Ask(s, "POST", at+"/copy", `{"slug": "mine", "name": "Mine", "model": {"name": "claude-sonnet-4"}}`), http.StatusCreated)
	if made.ID == seen.ID || made.Version != 1 || made.Visibility != "private" || *made.Slug != "mine" || made.Name != "Mine" || *made.Model.Name != "claude-sonnet-4" || *made.System != "Be concise." {
		t.Errorf("%+v", made)
	}
	kept, err := db.Agents().Get(t.Context(), s.Caller.Tenant.ID, "mine")
	if err != nil || kept.Definition.Servers[0].Headers != nil || strings.Contains(fmt.Sprint(kept.Definition), "hidden") {
		t.Errorf("the copy has %+v, %v", kept, err)
	}
	answer(t, httpapitest.Ask(s, "POST", at+"/copy", ""), http.StatusCreated)
	httpapitest.Refused(t, httpapitest.Ask(s, "POST", at+"/copy", `{"slug": "mine"}`), http.StatusConflict, "conflict", "taken")
	httpapitest.Refused(t, httpapitest.Ask(s, "POST", at+"/copy", `{"model": {"name": "none"}}`), http.StatusBadRequest, "validation_error", "model.name")
	if _, err := db.Agents().Archive(t.Context(), "ten_other", "support"); err != nil {
		t.Fatal(err)
	}
	httpapitest.Refused(t, httpapitest.Ask(s, "GET", at, ""), http.StatusNotFound, "not_found", "agent not found")

	// A copy of one's own has its metadata, and no headers either.
	answer(t, httpapitest.Ask(s, "POST", "/v1/agents", `{"name": "n", "slug": "own", "model": {"name": "m"}, "visibility": "template", "metadata": {"team": "a"}, "mcp_servers": [{"name": "a", "url": "https://a.example?x=1", "headers": {"A": "b"}}]}`), http.StatusCreated)
	own := answer(t, httpapitest.Ask(s, "POST", "/v1/agents/own/copy", ""), http.StatusCreated)
	if own.Slug != nil || own.Metadata["team"] == nil || *own.MCPServers[0].URL != "https://a.example?x=1" {
		t.Errorf("%+v", own)
	}
	if kept, err := db.Agents().Get(t.Context(), s.Caller.Tenant.ID, own.ID); err != nil || kept.Definition.Servers[0].Headers != nil {
		t.Errorf("%+v, %v", kept, err)
	}
}

// TestSkills: skills are kept with their configuration, those of the tenant's by their versions,
// and templates have those of the server's own alone.
func TestSkills(t *testing.T) {
	s, db := open(t)
	k := skilltest.New(s.Caller.Tenant.ID)
	if err := db.Skills().Create(t.Context(), k, skilltest.Bundle(t, "report", "Writes reports."), skill.Limits{}); err != nil {
		t.Fatal(err)
	}
	made := answer(t, httpapitest.Ask(s, "POST", "/v1/agents", `{"name": "n", "slug": "skilled", "model": {"name": "m"}, "visibility": "template", "skills": ["structured-planning",
		{"name": "reflection-loop", "config": {"max_iterations": 3, "quality_threshold": 0.8}},
		{"name": "long-running-state", "config": {"checkpoint_interval_ms": 30000, "max_state_size_kb": 512}}, "report"]}`), http.StatusCreated)
	if len(made.Skills) != 4 || made.Skills[0].Type != "built_in" || string(made.Skills[1].Config) != `{"max_iterations":3,"quality_threshold":0.8}` ||
		*made.Skills[3].SkillID != string(k.ID) || *made.Skills[3].Version != string(k.Latest.ID) {
		t.Errorf("%+v", made.Skills)
	}
	first := k.Latest.ID
	k.Latest.ID = skill.NewVersionID()
	if err := db.Skills().AddVersion(t.Context(), k, skilltest.Bundle(t, "report", "Writes better reports."), skill.Limits{}); err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]skill.VersionID{`1`: first, `"1"`: first, `"latest"`: k.Latest.ID, `null`: k.Latest.ID, fmt.Sprintf("%q", first): first} {
		now := answer(t, httpapitest.Ask(s, "GET", "/v1/agents/skilled", ""), http.StatusOK)
		got := answer(t, patch(s, "/v1/agents/skilled", fmt.Sprintf(`{"version": %d, "skills": [{"type": "custom", "skill_id": %q, "version": %s}, "structured-planning"]}`, now.Version, k.ID, version)), http.StatusOK)
		if *got.Skills[0].Version != string(want) {
			t.Errorf("version %s is %+v", version, got.Skills)
		}
	}
	now := answer(t, httpapitest.Ask(s, "GET", "/v1/agents/skilled", ""), http.StatusOK)
	if _, err := db.Skills().Archive(t.Context(), k.Tenant, k.ID); err != nil {
		t.Fatal(err)
	}
	answer(t, patch(s, "/v1/agents/skilled", fmt.Sprintf(`{"version": %d, "skills": ["report"]}`, now.Version)), http.StatusOK)
	httpapitest.Refused(t, httpapitest.Ask(s, "POST", "/v1/agents", `{"name": "n", "model": {"name": "m"}, "skills": ["report"]}`), http.StatusBadRequest, "validation_error", "archived")
	httpapitest.Refused(t, httpapitest.Ask(s, "POST", "/v1/agents", `{"name": "n", "model": {"name": "plain"}, "skills": ["structured-planning"]}`), http.StatusBadRequest, "validation_error", "does not support tools")
	answer(t, httpapitest.Ask(s, "POST", "/v1/agents", `{"name": "n", "model": {"name": "plain"}, "skills": ["reflection-loop"]}`), http.StatusCreated)

	theirs := agenttest.New("ten_other", "theirs")
	theirs.Visibility = agent.Template
	theirs.Definition.Skills = []agent.Skill{{Name: "secret", ID: skill.NewID(), Version: skill.NewVersionID()}, {Name: "structured-planning"}}
	if err := db.Agents().Create(t.Context(), theirs, agent.Limits{}); err != nil {
		t.Fatal(err)
	}
	if seen := answer(t, httpapitest.Ask(s, "GET", "/v1/agents/"+string(theirs.ID), ""), http.StatusOK); len(seen.Skills) != 1 || seen.Skills[0].Name != "structured-planning" {
		t.Errorf("another tenant sees %+v", seen.Skills)
	}
}

// TestHandoffs: an agent keeps versions of those that it hands on to, as deep as there may be.
func TestHandoffs(t *testing.T) {
	s, _ := open(t)
	ask := func(method, path, body string, want int, says string) (a agentapi.Agent) {
		t.Helper()
		w := httpapitest.Ask(s, method, path, body, "Content-Type", "application/json")
		if w.Code != want || !strings.Contains(w.Body.String(), says) {
			t.Fatalf("%s %s %s: %d %s, want %d and %s", method, path, body, w.Code, w.Body, want, says)
		}
		_ = json.Unmarshal(w.Body.Bytes(), &a)
		return a
	}
	level := func(name, more string) string {
		return `{"name": "` + name + `", "slug": "` + name + `", "description": "d of ` + name + `", "model": {"name": "m"}` + more + `}`
	}
	ask("POST", "/v1/agents", level("zero", ""), 201, `"handoffs":[],"multiagent":null`)
	a := ask("POST", "/v1/agents", level("one", `, "handoffs": [{"agent_id": "zero", "trigger": "always"}], "multiagent": {"parallel": true}`), 201, `"context_sharing":"summary","timeout_per_handoff_ms":60000,"sandbox":"shared"`)
	if h := a.Handoffs[0]; *h.Name != "zero" || *h.Description != "d of zero" || *h.AgentVersion != 1 || *h.Trigger != "always" {
		t.Errorf("%+v", h)
	}
	ask("PATCH", "/v1/agents/zero", `{"version": 1, "system": "Be brief."}`, 200, "")
	ask("PATCH", "/v1/agents/one", `{"version": 1, "system": "Be brief."}`, 200, `"agent_version":1`)
	ask("PATCH", "/v1/agents/one", `{"version": 2, "handoffs": [{"agent_id": "zero"}]}`, 200, `"agent_version":2`)
	ask("PATCH", "/v1/agents/one", `{"version": 3, "handoffs": [{"agent_id": "zero", "agent_version": 3}]}`, 404, "handoffs[0].agent_version: the agent has no version 3")
	ask("PATCH", "/v1/agents/one", `{"version": 3, "multiagent": {}}`, 200, `"multiagent":null`)
	ask("PATCH", "/v1/agents/one", `{"version": 4, "multiagent": {}}`, 200, `"version":4`)
	ask("POST", "/v1/agents", level("two", `, "handoffs": [{"agent_id": "one"}]`), 201, "")
	ask("POST", "/v1/agents", level("three", `, "handoffs": [{"agent_id": "two"}]`), 201, "")
	ask("POST", "/v1/agents", level("four", `, "handoffs": [{"agent_id": "three"}]`), 201, "")
	ask("POST", "/v1/agents", level("five", `, "handoffs": [{"agent_id": "one"}, {"agent_id": "four"}]`), 400, "handoffs[1].agent_id: the agent has 4 levels of hand-offs below it, but this agent may have at most 4")
	ask("POST", "/v1/agents", level("swarm", `, "handoffs": [{"agent_id": "four"}, {"agent_id": "zero"}], "multiagent": {"mode": "swarm"}`), 201, `"context_sharing":"full"}`)
	ask("POST", "/v1/agents", level("five", `, "handoffs": [{"agent_id": "swarm"}]`), 400, "handoffs[0].agent_id: the agent is a swarm")
	ask("PATCH", "/v1/agents/swarm", `{"version": 1, "handoffs": [{"agent_id": "swarm"}]}`, 400, "handoffs[0].agent_id: an agent is always in its own swarm")
	ask("PATCH", "/v1/agents/swarm", `{"version": 1, "handoffs": [{"agent_id": "zero"}, {"agent_id": "zero", "name": "Other"}]}`, 400, "handoffs[1].agent_id: duplicate")
	ask("POST", "/v1/agents", level("six", `, "handoffs": [{"agent_id": "none"}]`), 404, "handoffs[0].agent_id: agent")
	ask("POST", "/v1/agents", level("six", `, "handoffs": [{"agent_id": "agt_00000000000000000000000000000000"}]`), 404, "handoffs[0].agent_id: agent")
	ask("POST", "/v1/agents", level("six", `, "handoffs": [{"agent_id": "one", "name": "A b"}, {"agent_id": "zero", "name": "a-B!"}]`), 400, "handoffs[1].name: its tool would be named handoff_to_a_b, like the tool for handoffs[0]")
	ask("POST", "/v1/agents", level("six", `, "handoffs": [{"agent_id": "one"}], "tools": [{"type": "custom", "name": "handoff_to_one"}]`), 400, "tools[0].name: the tool for handoffs[0] already has the name handoff_to_one")
	ask("POST", "/v1/agents", level("six", `, "handoffs": [{"agent_id": "one", "trigger": "`+strings.Repeat("x", 2049)+`"}]`), 400, "handoffs[0].trigger must have at most 2048")
	ask("POST", "/v1/agents/zero/archive", "", 200, "")
	ask("POST", "/v1/agents", level("six", `, "handoffs": [{"agent_id": "zero"}]`), 400, "handoffs[0].agent_id: the agent is archived")
	ask("PATCH", "/v1/agents/one", `{"version": 4, "handoffs": [{"agent_id": "zero", "name": "Zero"}]}`, 200, `"version":5`)
	ask("POST", "/v1/agents", level("seven", `, "multiagent": {"max_delegations": 2}`), 201, `"path":"multiagent"`)
	ask("POST", "/v1/agents/one/copy", `{"slug": "one-copy"}`, 201, `"name":"Zero"`)
}
