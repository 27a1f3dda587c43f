package conversation

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/agent/handoff"
	"github.com/atoll-run/atoll/internal/agent/pooltool"
	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/agent/skilltool"
	"github.com/atoll-run/atoll/internal/control/tools"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/web"
)

// of is the rule for an agent that work was handed to by others, the first one first.
func of(d *agent.Definition, by ...*agent.Definition) *rule {
	return &rule{held: append(by, d), own: d}
}

// TestTools gives a turn the tools of an agent's definition.
func TestTools(t *testing.T) {
	d := &agent.Definition{
		Tools: []agent.Tool{
			{Type: agent.MCP, Server: "sandbox"}, {Type: agent.Sandbox}, {Type: agent.MCP, Server: "orders"}, {Type: agent.MCP, Server: "denied"},
			{Type: agent.MCP, Server: "unknown"}, {Type: agent.MCP, Server: "none"}, {Type: agent.Custom, Name: "theirs", Description: "Theirs.", Schema: []byte(`{"type":"object"}`)}, {Type: agent.WebSearch},
		},
		Servers: []agent.Server{
			{Name: "orders", URL: "https://mcp.example.com", Headers: map[string]string{"X-Key": "k"}, AllowedTools: []string{"look"}}, {Name: "denied", URL: "https://mcp.example.com/2"},
			{Name: "none", URL: "https://mcp.example.com/3", AllowedTools: []string{}},
		},
		Policy: agent.Policy{Deny: []string{"denied"}},
	}
	q := &run.Request{}
	servers, err := of(d).tools(q, web.New(web.Config{}))
	if err != nil {
		t.Fatal(err)
	}
	want := append(sandboxtool.Tools(), run.Tool{Tool: model.Tool{Name: "theirs", Description: "Theirs.", Parameters: []byte(`{"type":"object"}`)}})
	if !reflect.DeepEqual(q.Tools, want) || !q.PlaceFiles {
		t.Errorf("%+v", q.Tools)
	}
	if len(q.Warnings) != 1 || q.Warnings[0].Code != run.ToolUnavailable {
		t.Errorf("the server has no web search: %+v", q.Warnings)
	}
	if len(servers) != 1 {
		t.Fatalf("%+v", servers)
	}
	s := servers[0]
	if s.path != "tools[2]" || s.Label != "orders" || s.Target.URL != "https://mcp.example.com" || s.Target.Headers["X-Key"] != "k" || !slices.Equal(s.Allowed.Names, []string{"look"}) || s.Never == nil || !s.Optional {
		t.Errorf("%+v", s)
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
		{agent.Policy{Allow: []string{"run_code", "look", "orders_look", "web-search"}}, "run_code web_search", true},
		{agent.Policy{Deny: []string{"files"}}, "web_search orders_look orders_cancel theirs", false},
		{agent.Policy{Deny: []string{"network"}}, "run_code read_file theirs", true},
		{agent.Policy{Allow: []string{"code", "network"}}, "run_code web_search", false},
		{agent.Policy{Allow: []string{"orders", "theirs"}, Deny: []string{"cancel"}}, "orders_look theirs", true},
		{agent.Policy{Confirm: []string{"sandbox", "orders_cancel", "theirs"}}, "run_code? read_file? web_search orders_look orders_cancel? theirs", false},
		{agent.Policy{Deny: []string{"web-search", "run_code"}}, "read_file orders_look orders_cancel theirs", true},
		{agent.Policy{Deny: []string{"orders/cancel", "other/look"}, Confirm: []string{"orders/look"}}, "run_code read_file web_search orders_look? theirs", false},
		{agent.Policy{Allow: []string{"orders/look"}}, "orders_look", true},
		{agent.Policy{Confirm: []string{"fetch_url"}}, "run_code read_file web_search orders_look orders_cancel theirs", true},
	} {
		q := &run.Request{Tools: slices.Clone(all)}
		r := of(&agent.Definition{Policy: c.policy, Servers: []agent.Server{{Name: "orders", URL: "https://mcp.example.com"}}})
		r.govern(q)
		var got []string
		for _, t := range q.Tools {
			name := t.Name
			if t.Approve {
				name += "?"
			}
			got = append(got, name)
		}
		if text := strings.Join(got, " "); text != c.want || r.offline() != c.webless {
			t.Errorf("%+v: %s, %t; want %s", c.policy, text, r.offline(), c.want)
		}
	}
}

// TestGovernHandedOn: an agent that work is handed to has other tools, and servers that it names.
func TestGovernHandedOn(t *testing.T) {
	parent := &agent.Definition{Policy: agent.Policy{Allow: []string{"sandbox", "shell", "web-search"}}}
	child := &agent.Definition{
		Tools:   []agent.Tool{{Type: agent.MCP, Server: "web-search"}, {Type: agent.MCP, Server: "evil"}, {Type: agent.MCP, Server: "near"}},
		Servers: []agent.Server{{Name: "web-search", URL: "https://evil.example"}, {Name: "evil", URL: "https://evil.example"}, {Name: "near", Command: "sh"}},
	}
	shell := run.Tool{Tool: model.Tool{Name: "shell"}, Handler: pooltool.Handler}
	all := []run.Tool{shell}
	for _, s := range child.Servers {
		for _, name := range []string{"shell", "web-search", "sandbox"} {
			all = append(all, run.Tool{Tool: model.Tool{Name: s.Name + "__" + name}, Handler: "mcp", Server: s.Name, RemoteName: name})
		}
	}
	r := of(child, parent)
	q := &run.Request{Tools: slices.Clone(all)}
	if r.govern(q); len(q.Tools) != 1 || q.Tools[0].Name != "shell" {
		t.Errorf("the servers of the child admit themselves: %+v", q.Tools)
	}
	if servers, err := r.tools(&run.Request{}, nil); err != nil || len(servers) > 0 || len(r.programs(&tenant.Principal{}, &session.Session{})) > 0 {
		t.Errorf("servers are asked for tools that are denied: %+v, %v", servers, err)
	}
	for _, deny := range []string{"run_code", "sandbox", "code"} {
		parent.Policy = agent.Policy{Deny: []string{deny}}
		q := &run.Request{Tools: []run.Tool{shell}}
		if r.govern(q); len(q.Tools) > 0 {
			t.Errorf("%s is denied, and the child has shell", deny)
		}
		parent.Policy = agent.Policy{Confirm: []string{deny}}
		if r.judge(&shell) != agent.Asks {
			t.Errorf("%s asks, and the child's shell does not", deny)
		}
	}
	hands := run.Tool{Tool: model.Tool{Name: "handoff_to_b"}, Handler: handoff.Handler}
	parent.Policy = agent.Policy{Deny: []string{"delegate"}}
	if r.judge(&hands) != agent.Denied {
		t.Error("the child hands on, and its parent may not")
	}
}

// TestClasses: each tool of ours has a class, or is known to have none, and the documentation says so.
func TestClasses(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/reference/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	all := sandboxtool.Tools()
	for _, p := range skilltool.Programs() {
		all = append(all, p.Tool())
	}
	for _, n := range sandboxtool.NamedTools() {
		all = append(all, run.Tool{Tool: model.Tool{Name: n.Name()}})
	}
	for _, d := range tools.Definitions() {
		all = append(all, run.Tool{Tool: model.Tool{Name: d.Name}})
	}
	for _, name := range []string{web.SearchName, web.PeopleName, web.FetchName} {
		all = append(all, run.Tool{Tool: model.Tool{Name: name}})
	}
	for _, t1 := range all {
		class, ok := agent.ClassOf(t1.Name)
		row := regexp.MustCompile("(?m)^\\| `" + string(class) + "` \\|.*`" + t1.Name + "`")
		if class == "" {
			row = regexp.MustCompile("(?m)^.*`" + t1.Name + "`.* have no class")
		}
		if !ok || !row.Match(doc) {
			t.Errorf("the class of %s is %q, %t, and docs/reference/agents.md does not say so", t1.Name, class, ok)
		}
	}
}

// TestBoxed: copies of uploaded files are for agents that have a sandbox, by a tool or by a skill.
func TestBoxed(t *testing.T) {
	for want, all := range map[bool][]agent.Definition{
		true: {
			{Tools: []agent.Tool{{Type: agent.Sandbox}}}, {Tools: []agent.Tool{{Type: agent.MCP, Server: "sandbox"}}},
			{Skills: []agent.Skill{{Name: skilltool.Code}}}, {Skills: []agent.Skill{{Name: skilltool.Files}}},
		},
		false: {{}, {Skills: []agent.Skill{{Name: skilltool.Planning}}}, {Skills: []agent.Skill{{ID: "skill_1", Name: skilltool.Files}}}},
	} {
		for i := range all {
			q := &run.Request{}
			if _, err := of(&all[i]).tools(q, nil); err != nil {
				t.Fatal(err)
			}
			if got := boxed(&all[i]); got != want || q.PlaceFiles != want || len(q.Tools) > 0 != want {
				t.Errorf("%+v is said to have a sandbox: %t; it has %+v", all[i], got, q.Tools)
			}
		}
	}
}
