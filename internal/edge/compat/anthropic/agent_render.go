package anthropic

import (
	stdjson "encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/toolset"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

func agentOf(a *agent.Agent) Agent {
	d := &a.Definition
	out := Agent{
		ID: string(a.ID), Type: "agent", Name: d.Name, Description: httpapi.OrNull(d.Description), System: httpapi.OrNull(d.System), Model: Model{ID: d.Model.Name, Speed: standardSpeed},
		Tools: toolsOf(d), MCPServers: []Server{}, Skills: skillsOf(d), Multiagent: multiagentOf(d), ExecutionIdentity: Typed{serviceAccount}, Metadata: map[string]string{},
		Version: a.Version, CreatedAt: a.CreatedAt, UpdatedAt: a.UpdatedAt, Warnings: unsaid(a),
	}
	if slices.Contains(efforts, d.Model.Effort) {
		out.Model.Effort = &Typed{d.Model.Effort}
	}
	for _, s := range d.Servers {
		if s.Command != "" { // this form has no word for it
			continue
		}
		out.MCPServers = append(out.MCPServers, Server{"url", s.Name, s.URL})
	}
	for key, value := range d.Metadata {
		if text, ok := plain(value); ok {
			out.Metadata[key] = text
		}
	}
	if a.Archived() {
		out.ArchivedAt = &a.ArchivedAt
	}
	return out
}

// plain returns metadata that is a text.
func plain(value stdjson.RawMessage) (text string, ok bool) {
	var out *string
	if stdjson.Unmarshal(value, &out) != nil || out == nil {
		return "", false
	}
	return *out, true
}

// toolsOf shows tools with what the policy makes of them. The agent toolset stands where its
// first tool does.
func toolsOf(d *agent.Definition) []Tool {
	out := []Tool{}
	set := false
	for i := range d.Tools {
		switch t := &d.Tools[i]; d.Kind(t) {
		case agent.MCP:
			out = append(out, mcpToolsetOf(d, t.Server))
		case agent.Custom:
			schema := jsontext.Value(t.Schema)
			if len(schema) == 0 {
				schema = jsontext.Value(`{"type":"object"}`)
			}
			out = append(out, Tool{Type: customTool, Name: t.Name, Description: &t.Description, InputSchema: schema})
		case agent.Sandbox, agent.WebSearch, agent.FetchURL:
			if !set {
				set = true
				out = append(out, agentToolsetOf(d))
			}
		}
	}
	return out
}

func configOf(v agent.Verdict, name, kind string) Config {
	c := Config{Type: kind, Name: name, Enabled: v != agent.Denied, PermissionPolicy: Typed{always}}
	if v == agent.Asks {
		c.PermissionPolicy.Type = ask
	}
	return c
}

func agentToolsetOf(d *agent.Definition) Tool {
	def := configOf(agent.Allowed, "", "")
	return Tool{Type: agentToolset, DefaultConfig: &def, Configs: httpapi.Each(toolset.Builtin(d), func(j toolset.Judged) Config { return configOf(j.Verdict, j.Name, j.Name) })}
}

func mcpToolsetOf(d *agent.Definition, of string) Tool {
	verdict, own := toolset.Server(d, of)
	def := configOf(verdict, "", "")
	return Tool{Type: mcpToolset, MCPServerName: of, DefaultConfig: &def, Configs: httpapi.Each(own, func(j toolset.Judged) Config { return configOf(j.Verdict, j.Name, "") })}
}

// unsaid names what an agent has and this form has no word for.
func unsaid(a *agent.Agent) []Warning {
	out := []Warning{}
	d := &a.Definition
	add := func(has bool, path string) {
		if has {
			out = append(out, Warning{path, "it is set, and this form cannot show it; it holds, and stays in a change"})
		}
	}
	m := &d.Model
	add(a.Slug != "", "slug")
	add(a.Visibility != agent.Private, "visibility")
	add(m.MaxTokens != 0, "model.max_tokens")
	add(m.Temperature != nil, "model.temperature")
	add(m.TopP != nil, "model.top_p")
	add(m.Stop != nil, "model.stop")
	add(m.Effort != "" && !slices.Contains(efforts, m.Effort), "model.effort")
	for i, s := range d.Servers {
		add(s.Command != "", fmt.Sprintf("mcp_servers[%d]", i))
		add(s.Headers != nil, fmt.Sprintf("mcp_servers[%d].headers", i))
		add(s.Description != "", fmt.Sprintf("mcp_servers[%d].description", i))
	}
	for i := range d.Tools {
		add(d.Kind(&d.Tools[i]) == agent.Sandboxes, fmt.Sprintf("tools[%d]", i))
	}
	for i := range d.Skills {
		add(!d.Skills[i].Custom(), fmt.Sprintf("skills[%d]", i))
	}
	unsaidHands(d, add)
	for _, key := range slices.Sorted(maps.Keys(d.Metadata)) {
		_, ok := plain(d.Metadata[key])
		add(!ok, "metadata."+key)
	}
	other := func(list []string) bool {
		return slices.ContainsFunc(list, func(name string) bool { return !toolset.Manages(d, name) })
	}
	add(d.Policy.Allow != nil, "tool_policy.allow_list")
	add(other(d.Policy.Deny), "tool_policy.deny_list")
	add(other(d.Policy.Confirm), "tool_policy.require_confirmation")
	add(d.Policy.Within > 0, "tool_policy.confirm_within")
	for _, w := range d.Warnings() {
		out = append(out, Warning(w))
	}
	return out
}
