package anthropic

import (
	"fmt"
	"slices"
	"strings"

	stdjson "encoding/json"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Types of tools, and of permission policies.
const (
	agentToolset = "agent_toolset_20260401"
	mcpToolset   = "mcp_toolset"
	customTool   = "custom"
	always       = "always_allow"
	ask          = "always_ask"
)

// member is a tool of the agent toolset, and what Atoll has for it.
type member struct {
	name  string
	kind  agent.ToolType
	names []string // by which a policy denies it, or has it confirmed
}

var members = []member{
	{"bash", agent.Sandbox, []string{"run_code"}},
	{"read", agent.Sandbox, []string{"read_file"}},
	{"write", agent.Sandbox, []string{"write_file"}},
	{"edit", agent.Sandbox, []string{"edit_file", "apply_patch"}},
	{"glob", agent.Sandbox, []string{"glob"}},
	{"grep", agent.Sandbox, []string{"grep"}},
	{"web_fetch", agent.FetchURL, []string{"fetch_url"}},
	{"web_search", agent.WebSearch, []string{"web_search"}},
}

// managed reports whether a name in a list of a policy is one that this form speaks of.
func managed(d *agent.Definition, name string) bool {
	for _, m := range members {
		if slices.Contains(m.names, name) || slices.Contains(m.kind.Names(), name) {
			return true
		}
	}
	server, _, _ := strings.Cut(name, "/")
	return slices.ContainsFunc(d.Tools, func(t agent.Tool) bool { return t.Type == agent.MCP && t.Server == server })
}

// forget takes out of a policy what tools of this form say anew. An allow list stays: it
// restricts whatever comes.
func forget(d *agent.Definition) {
	rest := func(list []string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(name string) bool { return managed(d, name) })
	}
	d.Policy.Deny, d.Policy.Confirm = rest(d.Policy.Deny), rest(d.Policy.Confirm)
}

// setting is what the configurations of a toolset make of one tool.
type setting struct{ enabled, ask bool }

// over returns the setting with what a configuration says.
func (s setting) over(c *ConfigFields, path string) (setting, error) {
	if c == nil {
		return s, nil
	}
	if c.Enabled != nil {
		s.enabled = *c.Enabled
	}
	if c.PermissionPolicy == nil {
		return s, nil
	}
	switch *c.PermissionPolicy.Type {
	case always:
		s.ask = false
	case ask:
		s.ask = true
	default:
		return s, httpapi.Invalid("%s.permission_policy.type must be %s or %s", path, always, ask)
	}
	return s, nil
}

// settings reads the configurations of a toolset: the default, and those of tools by name.
func (t *ToolFields) settings(path string) (def setting, own map[string]setting, err error) {
	if def, err = (setting{enabled: true}).over(t.DefaultConfig, path+".default_config"); err != nil {
		return def, nil, err
	}
	own = map[string]setting{}
	for i := range t.Configs {
		c, at := &t.Configs[i], fmt.Sprintf("%s.configs[%d]", path, i)
		if c.Name == nil || *c.Name == "" || strings.Contains(*c.Name, "/") {
			return def, nil, httpapi.Invalid("%s.name must be the name of a tool", at)
		}
		if _, twice := own[*c.Name]; twice {
			return def, nil, httpapi.Invalid("%s.name: duplicate %q", at, *c.Name)
		}
		if own[*c.Name], err = def.over(c, at); err != nil {
			return def, nil, err
		}
	}
	return def, own, nil
}

// addAgentToolset adds the tools of the agent toolset. Those that are off on this server are not
// among them, unless they are asked for by name.
func (t *ToolFields) addAgentToolset(d *agent.Definition, path string, off func(agent.ToolType) error) error {
	if t.MCPServerName != nil || t.Name != nil || t.Description != nil || len(t.InputSchema) > 0 {
		return httpapi.Invalid("%s: a toolset of this type has default_config and configs alone", path)
	}
	def, own, err := t.settings(path)
	if err != nil {
		return err
	}
	for name := range own {
		if !slices.ContainsFunc(members, func(m member) bool { return m.name == name }) {
			return httpapi.Invalid("%s.configs: there is no tool %q", path, name)
		}
	}
	of := func(m member) setting {
		if s, ok := own[m.name]; ok {
			return s
		}
		if off != nil && off(m.kind) != nil {
			return setting{}
		}
		return def
	}
	there := func(kind agent.ToolType) bool {
		return slices.ContainsFunc(d.Tools, func(o agent.Tool) bool { return o.Type == kind })
	}
	if there(agent.Sandbox) || there(agent.WebSearch) || there(agent.FetchURL) {
		return httpapi.Invalid("%s: there is another toolset of this type", path)
	}
	for _, m := range members {
		if of(m).enabled && !there(m.kind) {
			d.Tools = append(d.Tools, agent.Tool{Type: m.kind})
		}
	}
	for _, m := range members {
		switch s := of(m); {
		case !there(m.kind): // with all of its kind
		case !s.enabled:
			d.Policy.Deny = append(d.Policy.Deny, m.names...)
		case s.ask:
			d.Policy.Confirm = append(d.Policy.Confirm, m.names...)
		}
	}
	return nil
}

func (t *ToolFields) addMCPToolset(d *agent.Definition, path string) error {
	if t.Name != nil || t.Description != nil || len(t.InputSchema) > 0 || t.MCPServerName == nil {
		return httpapi.Invalid("%s must have mcp_server_name, and beside it default_config and configs alone", path)
	}
	of := *t.MCPServerName
	tool := agent.Tool{Type: agent.MCP, Server: of}
	if err := tool.Check(path); err != nil {
		return httpapi.Invalid("%s.mcp_server_name must be the name of one of mcp_servers", path)
	}
	def, own, err := t.settings(path)
	if err != nil {
		return err
	}
	server := d.Server(of)
	if server == nil && (!def.enabled || len(own) > 0) {
		return httpapi.Invalid("%s.mcp_server_name: only the tools of one of mcp_servers can be configured, and there is no %q", path, of)
	}
	d.Tools = append(d.Tools, tool)
	if server != nil {
		server.AllowedTools = nil
		if !def.enabled {
			server.AllowedTools = []string{}
		}
	}
	if def.enabled && def.ask {
		d.Policy.Confirm = append(d.Policy.Confirm, of)
	}
	for i := range t.Configs { // in their order, so that the same makes the same version
		name := *t.Configs[i].Name
		s := own[name]
		switch {
		case !s.enabled && def.enabled:
			d.Policy.Deny = append(d.Policy.Deny, of+"/"+name)
		case s.enabled && !def.enabled:
			server.AllowedTools = append(server.AllowedTools, name)
		}
		switch {
		case s.enabled && s.ask && !(def.enabled && def.ask):
			d.Policy.Confirm = append(d.Policy.Confirm, of+"/"+name)
		case s.enabled && !s.ask && def.enabled && def.ask:
			return httpapi.Invalid("%s.configs[%d].permission_policy: below a default of %s there is no %s in this version", path, i, ask, always)
		}
	}
	return nil
}

func (t *ToolFields) addCustom(d *agent.Definition, path string) error {
	if t.MCPServerName != nil || t.DefaultConfig != nil || t.Configs != nil || t.Name == nil {
		return httpapi.Invalid("%s must have name, description and input_schema alone", path)
	}
	tool := agent.Tool{Type: agent.Custom, Name: *t.Name, Schema: agent.Canonical(stdjson.RawMessage(t.InputSchema))}
	if t.Description != nil {
		tool.Description = *t.Description
	}
	d.Tools = append(d.Tools, tool)
	return tool.Check(path)
}
