package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const supportAgent = `# Support
---
name: Support
slug: support
model: {name: m, max_tokens: 4096, temperature: 0.7}
system: |
  You are a helpful customer support agent.
tools:
  - {type: mcp, server: orders}
  - {type: mcp, server: calculator}
mcp_servers:
  - name: orders
    url: https://mcp.example.com/orders
    headers: {Authorization: Bearer hidden}
tool_policy: {allow_list: [orders], require_confirmation: [orders]}
metadata: {team: a}
`

func TestAgentCommands(t *testing.T) {
	o, _ := newOperator(t)
	o.says("model add m --provider openai")
	o.says("model add m2 --provider openai")
	o.env["ATOLL_API_KEY"] = "sk-atoll-development"
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	support := file("support.yaml", supportAgent)
	out := o.says("agent apply "+support, "support: created", "support: warning: tools[1].server")
	out += o.says("agent apply "+support, "support: unchanged")
	out += o.says("agent show support", "slug support", "version 1", "tools mcp orders, mcp calculator", "servers orders https://mcp.example.com/orders", "allowed orders", "denied none", "to confirm orders", "warning tools[1].server")
	if strings.Contains(out, "hidden") {
		t.Errorf("a header is shown: %s", out)
	}
	two := file("two.yaml", strings.Replace(supportAgent, "helpful", "kind", 1)+"---\nname: Sales\nslug: sales\nmodel: {name: m}\ntool_policy: {allow_list: []}\n")
	o.says("agent apply "+two, "support: updated to version 2", "sales: created")
	o.says("agent show sales", "allowed none")
	o.says("agent apply "+file("bare.yaml", "{name: Support, slug: support, model: {name: m}}"), "support: updated to version 3") // what is left out goes
	o.says("agent show support", "allowed all", "tools -\n")
	o.says("agent show support --json", `"metadata": {}`, `"system": null`)
	o.says("agent show support --version 2 --json", `"team": "a"`, "kind customer")
	o.in = "system: Be quick.\n"
	o.says("agent update support -", "version 4")
	o.in = "{version: 3, system: Late}"
	if _, stderr := o.run(1, "agent", "update", "support", "-"); !strings.Contains(stderr, "is now at version 4") {
		t.Errorf("a late change: %s", stderr)
	}
	o.says("agent versions support", "4 ", "3 ", "2 ", "1 ")
	o.says("agent create "+file("made.yaml", "{name: Made, model: {name: m}}"), "slug -\n", "version 1", "id agt_")
	o.says("agent apply --model m2 "+file("other.yaml", "{name: Sales, slug: sales, model: m, tool_policy: {allow_list: []}}"), "sales: updated to version 2")
	o.says("agent apply "+file("other.yaml", "{name: Sales, slug: sales, model: m, tool_policy: {allow_list: []}}"), "sales: updated to version 3")
	o.says("agent list", "sales Sales m 3", "support Support m 4")
	o.says("agent copy support --slug support-copy --name Copy", "slug support-copy", "name Copy", "version 1")
	o.says("agent archive sales support", "archived sales", "archived support")
	if out := o.says("agent list -q"); strings.Contains(out, "sales") || !strings.Contains(out, "agt_") {
		t.Errorf("after archiving there is %s", out)
	}
	o.says("agent list --archived", "sales", "support")
	for text, want := range map[string]string{
		"{name: x, slug: x}": "model.name", "{name: x, slug: x, model: {name: m}, prompt: y}": `unknown field "prompt"; known fields are `, "{name: x, model: m}": "is required",
		"{name: x, slug: x, model: [m]}": "model must be an object", "{name: x, slug: x, model: {name: 7}}": "model.name must be a string",
		"# nothing": "is empty", "{slug: support, name: x, model: {name: m}}": "support: the agent is archived", "name: [": "bad.yaml", "{1: x}": "is not valid JSON",
		"{name: x, slug: x, model: {name: m}, skills: [{name: web-browsing, config: {max_pages: 0}}]}": "skills[0].config.max_pages must be", "{name: x, slug: x, model: {name: m}}\n---\n{name: y, slug: x, model: {name: m}}": "duplicate slug x",
	} {
		if _, stderr := o.run(1, "agent", "apply", file("bad.yaml", text)); !strings.Contains(stderr, want) {
			t.Errorf("%s: %s, want %q", text, stderr, want)
		}
	}
	if out := o.says("agent list --archived -q"); strings.Contains(out, "\nx") {
		t.Errorf("a refused file made %s", out)
	}
}
