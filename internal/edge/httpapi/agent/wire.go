package agent

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// AgentModel says which model an agent asks, and how.
type AgentModel struct {
	Name        *string  `json:"name" required:"true" doc:"GET /v1/models lists what there is."`
	MaxTokens   *int64   `json:"max_tokens,omitzero" minimum:"1" maximum:"1000000" doc:"Of all answers of a turn together."`
	Temperature *float64 `json:"temperature,omitzero" minimum:"0" maximum:"2" doc:"How freely the model chooses words, 0 to 2."`
	TopP        *float64 `json:"top_p,omitzero" minimum:"0" maximum:"1" doc:"From how much of the likely words the model chooses, 0 to 1."`
	Stop        []string `json:"stop,omitzero" doc:"Up to 16 texts before the first of which an answer ends."`
	Effort      *string  `json:"effort,omitzero" enum:"none,minimal,low,medium,high,xhigh" doc:"How much the model thinks before it answers."`
}

// AgentTool is a tool of an agent.
type AgentTool struct {
	Type        *string        `json:"type" required:"true" enum:"mcp,custom,sandbox,sandboxes,web_search,fetch_url"`
	Server      *string        `json:"server,omitzero" doc:"Of mcp: the name of one of mcp_servers, or web-search, fetch-url or sandbox for the server's own."`
	Name        *string        `json:"name,omitzero" doc:"Of custom."`
	Description *string        `json:"description,omitzero" doc:"Of custom."`
	InputSchema jsontext.Value `json:"input_schema,omitzero" doc:"Of custom: JSON Schema."`
}

// AgentServer is an MCP server that an agent may use.
type AgentServer struct {
	Name         *string           `json:"name" required:"true"`
	Type         *string           `json:"type,omitzero" enum:"url,stdio" doc:"url: a server at url; stdio: a program in the session's sandbox default. Omitted, what url or command says."`
	URL          *string           `json:"url,omitzero" doc:"It is shown as it is given: keys belong in headers."`
	Command      *string           `json:"command,omitzero" doc:"Of stdio: a program, by its name or path in the sandbox."`
	Args         []string          `json:"args,omitzero" doc:"Of stdio, shown as they are given."`
	Env          map[string]string `json:"env,omitzero" doc:"Of stdio: variables of the program. Stored encrypted and never shown. Omitted in a change, they stay while name and command do."`
	Description  *string           `json:"description,omitzero"`
	Headers      map[string]string `json:"headers,omitzero" doc:"Stored encrypted and never shown. Omitted in a change, they stay while name and url do."`
	AllowedTools []string          `json:"allowed_tools,omitzero" doc:"Omitted, all of them; empty, none."`
}

// ToolPolicy says which tools an agent may call.
type ToolPolicy struct {
	AllowList           []string `json:"allow_list,omitzero" doc:"Tools that the agent may call, by tool, kind, class, MCP server or server/tool; a bare name never admits a tool of an MCP server. Omitted, all; empty, none."`
	DenyList            []string `json:"deny_list,omitzero" doc:"Tools that the agent may not call, by any of these names; wins over allow_list."`
	RequireConfirmation []string `json:"require_confirmation,omitzero" doc:"Tools whose calls wait until a client confirms them."`
	ConfirmWithin       *int64   `json:"confirm_within,omitzero" minimum:"1" maximum:"31536000" doc:"Seconds that calls of a session wait for the client, and then expire; confirmation_time of the server if omitted."`
}

// AgentSkill is a skill of an agent.
type AgentSkill struct {
	Type    string         `json:"type" enum:"built_in,custom" doc:"built_in: one of the server's own; custom: one of the tenant's."`
	Name    string         `json:"name"`
	Config  jsontext.Value `json:"config,omitzero" doc:"Of built_in, as it was given."`
	SkillID *string        `json:"skill_id,omitzero" doc:"Of custom."`
	Version *string        `json:"version,omitzero" doc:"Of custom: the id of the version that the agent keeps."`
}

// NewAgent is the body that makes an agent.
type NewAgent struct {
	Name        *string                   `json:"name" required:"true"`
	Slug        *string                   `json:"slug,omitzero" doc:"Unique among the tenant's agents; taken wherever an id is."`
	Description *string                   `json:"description,omitzero"`
	Model       *AgentModel               `json:"model" required:"true"`
	System      *string                   `json:"system,omitzero" doc:"System prompt."`
	Tools       []AgentTool               `json:"tools,omitzero"`
	MCPServers  []AgentServer             `json:"mcp_servers,omitzero" doc:"MCP servers that tools name."`
	Skills      []jsontext.Value          `json:"skills,omitzero" doc:"Names of skills; or objects with name and config of one of the server's own, or skill_id (or name) and version of one of the tenant's."`
	ToolPolicy  *ToolPolicy               `json:"tool_policy,omitzero" doc:"metadata.tool_policy says the same."`
	Metadata    map[string]jsontext.Value `json:"metadata,omitzero" doc:"Metadata: an object of your own."`
	Visibility  *string                   `json:"visibility,omitzero" enum:"private,template" doc:"private, or template for one that other tenants may see and copy by its id, without headers, queries of URLs, metadata and hand-offs."`
	Handoffs    []AgentHandoff            `json:"handoffs,omitzero" doc:"Agents that it may hand work to: each is a tool of the model's."`
	Multiagent  *AgentMultiagent          `json:"multiagent,omitzero" doc:"How work is handed on to other agents."`
	Compaction  *AgentCompaction          `json:"compaction,omitzero" doc:"When a long conversation is summarized; auto if omitted."`
	MaxSteps    *int                      `json:"max_steps,omitzero" minimum:"1" maximum:"10000" doc:"How many times a turn may ask the model; 100 if omitted."`
	RetryForMS  *int64                    `json:"retry_for_ms,omitzero" minimum:"0" maximum:"3600000" doc:"How long Atoll asks the model again after its provider answered 429, 529 or 5xx or broke off; the setting model_retry_for, 2 minutes, if omitted. 0 ends the turn at the first failure."`
}

// AgentChange makes another version; omitted fields stay unchanged.
type AgentChange struct {
	Version     *int                       `json:"version" required:"true" doc:"The current version: a change that was made for another one returns 409."`
	Name        *string                    `json:"name,omitzero"`
	Slug        *string                    `json:"slug,omitzero" doc:"A name for URLs, the only one of its kind in the tenant."`
	Description *string                    `json:"description,omitzero" doc:"Description of the agent's purpose; null removes it."`
	Model       *AgentModel                `json:"model,omitzero" doc:"Replaces it."`
	System      *string                    `json:"system,omitzero" doc:"System prompt."`
	Tools       *[]AgentTool               `json:"tools,omitzero" doc:"Replaces the list."`
	MCPServers  *[]AgentServer             `json:"mcp_servers,omitzero" doc:"Replaces the list."`
	Skills      *[]jsontext.Value          `json:"skills,omitzero" doc:"Replaces the list."`
	ToolPolicy  *ToolPolicy                `json:"tool_policy,omitzero" doc:"Replaces it."`
	Metadata    *map[string]jsontext.Value `json:"metadata,omitzero" doc:"Replaces it."`
	Visibility  *string                    `json:"visibility,omitzero" enum:"private,template" doc:"private, or template for one that other tenants may see and copy by its id."`
	Handoffs    *[]AgentHandoff            `json:"handoffs,omitzero" doc:"Replaces the list."`
	Multiagent  *AgentMultiagent           `json:"multiagent,omitzero" doc:"Replaces it; {} for what holds by itself."`
	Compaction  *AgentCompaction           `json:"compaction,omitzero" doc:"Replaces it."`
	MaxSteps    *int                       `json:"max_steps,omitzero" minimum:"1" maximum:"10000" doc:"How many times a turn may ask the model."`
	RetryForMS  *int64                     `json:"retry_for_ms,omitzero" minimum:"0" maximum:"3600000" doc:"How long Atoll asks the model again after its provider failed."`
}

// AgentCopy says in what a copy differs; the body may be omitted.
type AgentCopy struct {
	Name  *string     `json:"name,omitzero" doc:"The agent's if omitted."`
	Slug  *string     `json:"slug,omitzero" doc:"A name for URLs, the only one of its kind in the tenant."`
	Model *AgentModel `json:"model,omitzero" doc:"The agent's if omitted."`
}

// AgentHandoff is an agent that another one may hand work to.
type AgentHandoff struct {
	AgentID      *string `json:"agent_id" required:"true" doc:"Id or slug of an agent of the tenant."`
	AgentVersion *int    `json:"agent_version,omitzero" minimum:"1" doc:"The version that is kept: the current one if omitted."`
	Name         *string `json:"name,omitzero" doc:"Name that the model sees, from which the name of its tool derives; the agent's name if omitted."`
	Description  *string `json:"description,omitzero" doc:"Strengths of the agent; its description if omitted."`
	Trigger      *string `json:"trigger,omitzero" doc:"When to hand on."`
}

// AgentMultiagent says how an agent hands on.
type AgentMultiagent struct {
	Mode           *string `json:"mode,omitzero" enum:"orchestrator,swarm" doc:"orchestrator, if omitted: the other agent works in a thread of its own, and its answer comes back. swarm: the conversation moves to the other agent."`
	MaxDelegations *int    `json:"max_delegations,omitzero" minimum:"1" maximum:"100" doc:"Hand-offs of a turn, with those of the agents that it handed on to; 10 if omitted."`
	Parallel       *bool   `json:"parallel,omitzero" doc:"Of orchestrator: up to 8 of them work side by side. false if omitted."`
	ContextSharing *string `json:"context_sharing,omitzero" enum:"full,summary" doc:"The conversation that the other agent sees: all of it (full), or a summary by the model (summary). summary if omitted; always full in a swarm."`
	TimeoutMS      *int64  `json:"timeout_per_handoff_ms,omitzero" minimum:"100" maximum:"86400000" doc:"Of orchestrator: 60000 if omitted."`
	Sandbox        *string `json:"sandbox,omitzero" enum:"shared,own" doc:"Of orchestrator: whether the tool sandbox of the other agent is that of this one, or one of its own that ends with its work. shared if omitted."`
}

// AgentCompaction says when a conversation is summarized.
type AgentCompaction struct {
	Mode     *string `json:"mode" required:"true" enum:"auto,off" doc:"auto: before a conversation is longer than the model reads, the model summarizes its beginning. off: its beginning is omitted."`
	AtTokens *int64  `json:"at_tokens,omitzero" minimum:"1000" doc:"Of auto: summarize from this size on, if the model reads more."`
}

// DeletedAgent says that an agent is gone.
type DeletedAgent struct {
	ID   string `json:"id"`
	Type string `json:"type" enum:"agent_deleted"`
}

// Agent is a version of an agent.
type Agent struct {
	ID          string                    `json:"id" doc:"agt_ and 32 hexadecimal digits."`
	Type        string                    `json:"type" enum:"agent"`
	Name        string                    `json:"name"`
	Slug        *string                   `json:"slug" doc:"A name for URLs, the only one of its kind in the tenant."`
	Description *string                   `json:"description"`
	Model       AgentModel                `json:"model"`
	System      *string                   `json:"system" doc:"System prompt."`
	Tools       []AgentTool               `json:"tools"`
	MCPServers  []AgentServer             `json:"mcp_servers" doc:"Without their headers and variables."`
	Skills      []AgentSkill              `json:"skills" doc:"Skills that it works with."`
	ToolPolicy  ToolPolicy                `json:"tool_policy" doc:"Which tools are allowed, denied, or wait for a confirmation."`
	Handoffs    []AgentHandoff            `json:"handoffs" doc:"With the versions that are kept."`
	Multiagent  *AgentMultiagent          `json:"multiagent" doc:"null where it was not given."`
	Compaction  *AgentCompaction          `json:"compaction" doc:"When a long conversation is summarized; null for auto."`
	MaxSteps    *int                      `json:"max_steps" doc:"How many times a turn may ask the model; null for 100."`
	RetryForMS  *int64                    `json:"retry_for_ms" doc:"How long Atoll asks the model again after its provider failed; null for the server's setting."`
	Metadata    map[string]jsontext.Value `json:"metadata"`
	Visibility  string                    `json:"visibility" doc:"private, or template for one that other tenants may see and copy by its id."`
	Version     int                       `json:"version" doc:"Its number, from 1."`
	Warnings    []Warning                 `json:"warnings" doc:"Stored fields that have no effect."`
	CreatedAt   time.Time                 `json:"created_at"`
	UpdatedAt   time.Time                 `json:"updated_at" doc:"When this version was made."`
	ArchivedAt  *time.Time                `json:"archived_at"`
}

// Warning is about a part of an agent.
type Warning struct {
	Path    string `json:"path" doc:"Where it stands in the body."`
	Message string `json:"message"`
}
