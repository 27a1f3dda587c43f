package anthropic

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/core/agent"
)

// AgentFields is the body that makes or changes an agent. In a change, null clears a field and
// one that is omitted stays; hence fields that keep null apart.
type AgentFields struct {
	Name        *string        `json:"name,omitzero"`
	Model       jsontext.Value `json:"model,omitzero"`
	Description jsontext.Value `json:"description,omitzero"`
	System      jsontext.Value `json:"system,omitzero"`
	Tools       jsontext.Value `json:"tools,omitzero"`
	MCPServers  jsontext.Value `json:"mcp_servers,omitzero"`
	Metadata    jsontext.Value `json:"metadata,omitzero"`
	Version     *int           `json:"version,omitzero"`

	ExecutionIdentity jsontext.Value `json:"execution_identity,omitzero"`
	Multiagent        jsontext.Value `json:"multiagent,omitzero"`
	Skills            jsontext.Value `json:"skills,omitzero"`

	off func(agent.ToolType) error // agents.Service.Off
}

// ModelFields says which model an agent asks.
type ModelFields struct {
	ID           *string        `json:"id" required:"true"`
	Effort       jsontext.Value `json:"effort,omitzero"` // a text, or an object with a type
	Speed        *string        `json:"speed,omitzero"`
	InferenceGeo *string        `json:"inference_geo,omitzero"`
}

// Typed is an object that says no more than its type.
type Typed struct {
	Type string `json:"type"`
}

// TypedFields is a Typed of a request.
type TypedFields struct {
	Type *string `json:"type" required:"true"`
}

// ServerFields is an MCP server.
type ServerFields struct {
	Type *string `json:"type" required:"true" enum:"url"`
	Name *string `json:"name" required:"true"`
	URL  *string `json:"url" required:"true"`
}

// ToolFields is a tool, or a set of them.
type ToolFields struct {
	Type          *string        `json:"type" required:"true" enum:"agent_toolset_20260401,mcp_toolset,custom"`
	MCPServerName *string        `json:"mcp_server_name,omitzero"`
	DefaultConfig *ConfigFields  `json:"default_config,omitzero"`
	Configs       []ConfigFields `json:"configs,omitzero"`
	Name          *string        `json:"name,omitzero"`
	Description   *string        `json:"description,omitzero"`
	InputSchema   jsontext.Value `json:"input_schema,omitzero"`
}

// ConfigFields says whether a tool may be called, and whether the client is asked first.
type ConfigFields struct {
	Type             *string      `json:"type,omitzero"`
	Name             *string      `json:"name,omitzero"`
	Enabled          *bool        `json:"enabled,omitzero"`
	PermissionPolicy *TypedFields `json:"permission_policy,omitzero"`
}

// Agent is a version of an agent.
type Agent struct {
	ID                string            `json:"id"`
	Type              string            `json:"type"`
	Name              string            `json:"name"`
	Description       *string           `json:"description"`
	System            *string           `json:"system"`
	Model             Model             `json:"model"`
	Tools             []Tool            `json:"tools"`
	MCPServers        []Server          `json:"mcp_servers"`
	Skills            []Skill           `json:"skills"`
	Multiagent        *Multiagent       `json:"multiagent"`
	ExecutionIdentity Typed             `json:"execution_identity"`
	Metadata          map[string]string `json:"metadata"`
	Version           int               `json:"version"`
	CreatedAt         time.Time         `json:"created_at"`
	UpdatedAt         time.Time         `json:"updated_at"`
	ArchivedAt        *time.Time        `json:"archived_at"`
	// Warnings are ours: what the agent has and the fields above cannot say.
	Warnings []Warning `json:"warnings"`
}

// Model says which model an agent asks.
type Model struct {
	ID     string `json:"id"`
	Effort *Typed `json:"effort"`
	Speed  string `json:"speed"`
}

// Server is an MCP server.
type Server struct {
	Type string `json:"type"`
	Name string `json:"name"`
	URL  string `json:"url"`
}

// Tool is a tool, or a set of them.
type Tool struct {
	Type          string         `json:"type"`
	MCPServerName string         `json:"mcp_server_name,omitzero"`
	DefaultConfig *Config        `json:"default_config,omitzero"`
	Configs       []Config       `json:"configs,omitzero"`
	Name          string         `json:"name,omitzero"`
	Description   *string        `json:"description,omitzero"`
	InputSchema   jsontext.Value `json:"input_schema,omitzero"`
}

// Config says whether a tool may be called, and whether the client is asked first.
type Config struct {
	Type             string `json:"type,omitzero"`
	Name             string `json:"name,omitzero"`
	Enabled          bool   `json:"enabled"`
	PermissionPolicy Typed  `json:"permission_policy"`
}

// Warning is about a part of an agent.
type Warning struct {
	Path    string `json:"path"`
	Message string `json:"message"`
}
