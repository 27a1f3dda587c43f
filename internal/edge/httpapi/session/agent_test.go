package session

import (
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/skill"
)

// TestRequest has an agent's tools asked for as those of a response.
func TestRequest(t *testing.T) {
	d := &agent.Definition{
		Model: agent.Model{Name: "m", MaxTokens: 100, Effort: "low"}, System: "Be kind.",
		Tools: []agent.Tool{
			{Type: agent.MCP, Server: "web-search"}, {Type: agent.WebSearch}, {Type: agent.MCP, Server: "orders"}, {Type: agent.MCP, Server: "denied"},
			{Type: agent.MCP, Server: "unknown"}, {Type: agent.MCP, Server: "none"}, {Type: agent.Custom, Name: "theirs", Schema: []byte(`{"type":"object"}`)},
		},
		Servers: []agent.Server{
			{Name: "orders", URL: "https://mcp.example.com", Headers: map[string]string{"X-Key": "k"}, AllowedTools: []string{"look"}}, {Name: "denied", URL: "https://mcp.example.com/2"},
			{Name: "none", URL: "https://mcp.example.com/3", AllowedTools: []string{}},
		},
		Policy: agent.Policy{Deny: []string{"denied"}},
	}
	q, err := request(d)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, tool := range q.Tools {
		got = append(got, string(tool))
	}
	want := []string{
		`{"type":"web_search"}`,
		`{"allowed_tools":["look"],"headers":{"X-Key":"k"},"require_approval":"never","server_description":"","server_label":"orders","server_url":"https://mcp.example.com","type":"mcp"}`,
		`{"description":"","name":"theirs","parameters":{"type":"object"},"type":"function"}`,
	}
	if !slices.Equal(got, want) || *q.Model != "m" || *q.MaxOutputTokens != 100 || *q.Instructions != "Be kind." || *q.Reasoning.Effort != "low" {
		t.Errorf("%+v\n%s", q, strings.Join(got, "\n"))
	}
}

func TestGovern(t *testing.T) {
	tool := func(name, handler string) run.Tool {
		return run.Tool{Tool: model.Tool{Name: name}, Handler: handler}
	}
	remote := func(label, name string) run.Tool {
		return run.Tool{Tool: model.Tool{Name: label + "_" + name}, Handler: "mcp", Server: label, RemoteName: name}
	}
	all := []run.Tool{tool("run_code", sandboxtool.Handler), tool("read_file", sandboxtool.Handler), tool("web_search", "web"), remote("orders", "look"), remote("orders", "cancel"), tool("theirs", "")}
	for _, c := range []struct {
		policy  agent.Policy
		want    string // the tools that are left, with a ? behind those that ask
		webless bool
	}{
		{agent.Policy{}, "run_code read_file web_search orders_look orders_cancel theirs", false},
		{agent.Policy{Allow: []string{}}, "", true},
		{agent.Policy{Allow: []string{"orders", "theirs"}, Deny: []string{"cancel"}}, "orders_look theirs", true},
		{agent.Policy{Confirm: []string{"sandbox", "orders_cancel", "theirs"}}, "run_code? read_file? web_search orders_look orders_cancel? theirs", false},
		{agent.Policy{Deny: []string{"web-search", "run_code"}}, "read_file orders_look orders_cancel theirs", true},
		{agent.Policy{Deny: []string{"orders/cancel", "other/look"}, Confirm: []string{"orders/look"}}, "run_code read_file web_search orders_look? theirs", false},
		{agent.Policy{Allow: []string{"orders/look"}}, "orders_look", true},
		{agent.Policy{Confirm: []string{"fetch_url"}}, "run_code read_file web_search orders_look orders_cancel theirs", true},
	} {
		q := &run.Request{Tools: slices.Clone(all)}
		govern([]*agent.Policy{&c.policy})(q)
		var got []string
		for _, t := range q.Tools {
			name := t.Name
			if t.Approve {
				name += "?"
			}
			got = append(got, name)
		}
		if text := strings.Join(got, " "); text != c.want || webless([]*agent.Policy{&c.policy}) != c.webless {
			t.Errorf("%+v: %s, %t; want %s", c.policy, text, webless([]*agent.Policy{&c.policy}), c.want)
		}
	}
}

// TestBoxed: copies of uploaded files are for agents that have a sandbox, by a tool or by a skill.
func TestBoxed(t *testing.T) {
	for want, all := range map[bool][]agent.Definition{
		true: {
			{Tools: []agent.Tool{{Type: agent.Sandbox}}}, {Tools: []agent.Tool{{Type: agent.MCP, Server: "sandbox"}}},
			{Skills: []agent.Skill{{Name: skill.Code}}}, {Skills: []agent.Skill{{Name: skill.Files}}},
		},
		false: {{}, {Skills: []agent.Skill{{Name: skill.Planning}}}, {Skills: []agent.Skill{{ID: "skill_1", Name: skill.Files}}}},
	} {
		for i := range all {
			q, err := request(&all[i])
			if err != nil {
				t.Fatal(err)
			}
			if got := boxed(&all[i]); got != want || slices.ContainsFunc(q.Tools, isSandbox) != want {
				t.Errorf("%+v is said to have a sandbox: %t; it asks for %s", all[i], got, q.Tools)
			}
		}
	}
}
