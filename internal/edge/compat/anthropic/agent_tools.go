package anthropic

import (
	"fmt"

	stdjson "encoding/json"

	"github.com/atoll-run/atoll/internal/agent/toolset"
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

// over returns a setting with what a configuration says.
func over(s toolset.Setting, c *ConfigFields, path string) (toolset.Setting, error) {
	if c == nil {
		return s, nil
	}
	if c.Enabled != nil {
		s.Enabled = *c.Enabled
	}
	if c.PermissionPolicy == nil {
		return s, nil
	}
	switch *c.PermissionPolicy.Type {
	case always:
		s.Ask = false
	case ask:
		s.Ask = true
	default:
		return s, httpapi.Invalid("%s.permission_policy.type must be %s or %s", path, always, ask)
	}
	return s, nil
}

// set reads the configurations of a toolset.
func (t *ToolFields) set(path string) (*toolset.Set, error) {
	def, err := over(toolset.Setting{Enabled: true}, t.DefaultConfig, path+".default_config")
	if err != nil {
		return nil, err
	}
	out := &toolset.Set{Default: def}
	for i := range t.Configs {
		c, at := &t.Configs[i], fmt.Sprintf("%s.configs[%d]", path, i)
		if err := out.CheckName(at, c.Name); err != nil {
			return nil, err
		}
		own, err := over(def, c, at)
		if err != nil {
			return nil, err
		}
		out.Put(*c.Name, own)
	}
	return out, nil
}

// addAgentToolset adds the tools of the agent toolset.
func (t *ToolFields) addAgentToolset(d *agent.Definition, path string, off func(agent.ToolType) error) error {
	if t.MCPServerName != nil || t.Name != nil || t.Description != nil || len(t.InputSchema) > 0 {
		return httpapi.Invalid("%s: a toolset of this type has default_config and configs alone", path)
	}
	set, err := t.set(path)
	if err != nil {
		return err
	}
	return set.AddBuiltin(d, path, off)
}

func (t *ToolFields) addMCPToolset(d *agent.Definition, path string) error {
	if t.Name != nil || t.Description != nil || len(t.InputSchema) > 0 || t.MCPServerName == nil {
		return httpapi.Invalid("%s must have mcp_server_name, and beside it default_config and configs alone", path)
	}
	of := *t.MCPServerName
	if err := (&agent.Tool{Type: agent.MCP, Server: of}).Check(path); err != nil {
		return httpapi.Invalid("%s.mcp_server_name must be the name of one of mcp_servers", path)
	}
	set, err := t.set(path)
	if err != nil {
		return err
	}
	return set.AddServer(d, path, of)
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
