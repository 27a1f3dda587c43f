package anthropic

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// SessionFields is the body that makes or changes a session.
type SessionFields struct {
	Agent         jsontext.Value   `json:"agent,omitzero"` // a text, or an AgentReference
	EnvironmentID *string          `json:"environment_id,omitzero"`
	Title         jsontext.Value   `json:"title,omitzero"`
	Metadata      jsontext.Value   `json:"metadata,omitzero"`
	InitialEvents []jsontext.Value `json:"initial_events,omitzero"`

	Budget    jsontext.Value `json:"budget,omitzero"`
	Resources jsontext.Value `json:"resources,omitzero"`
	VaultIDs  jsontext.Value `json:"vault_ids,omitzero"`
}

// AgentReference names an agent, and what else a session may want of it.
type AgentReference struct {
	Type    *string `json:"type" required:"true"`
	ID      *string `json:"id" required:"true"`
	Version *int    `json:"version,omitzero" minimum:"1"`

	Model      jsontext.Value `json:"model,omitzero"`
	System     jsontext.Value `json:"system,omitzero"`
	Tools      jsontext.Value `json:"tools,omitzero"`
	MCPServers jsontext.Value `json:"mcp_servers,omitzero"`
	Skills     jsontext.Value `json:"skills,omitzero"`
}

// BudgetFields is what a session may cost.
type BudgetFields struct {
	Type        *string       `json:"type" required:"true"`
	MaxListCost *AmountFields `json:"max_list_cost" required:"true"`
}

// AmountFields is money, in cents.
type AmountFields struct {
	Amount   *string `json:"amount" required:"true"`
	Currency *string `json:"currency" required:"true"`
}

// Sessions is a page of sessions.
type Sessions struct {
	Data     []Session `json:"data"`
	NextPage *string   `json:"next_page"`
	PrevPage *string   `json:"prev_page"`
}

// Session is a conversation with an agent.
type Session struct {
	ID                 string              `json:"id"`
	Type               string              `json:"type"`
	Agent              SessionAgent        `json:"agent"`
	EnvironmentID      string              `json:"environment_id"`
	Title              *string             `json:"title"`
	Metadata           map[string]string   `json:"metadata"`
	Status             string              `json:"status"`
	Resources          []Resource          `json:"resources"`
	VaultIDs           []string            `json:"vault_ids"`
	Budget             *Budget             `json:"budget"`
	DeploymentID       *string             `json:"deployment_id"`
	OutcomeEvaluations []OutcomeEvaluation `json:"outcome_evaluations"`
	Stats              Stats               `json:"stats"`
	Usage              SessionUsage        `json:"usage"`
	CreatedAt          time.Time           `json:"created_at"`
	UpdatedAt          time.Time           `json:"updated_at"`
	ArchivedAt         *time.Time          `json:"archived_at"`
	// Warnings are ours: what the session has and the fields above cannot say.
	Warnings []Warning `json:"warnings"`
}

// SessionAgent is the version of an agent that a session keeps.
type SessionAgent struct {
	ThreadAgent
	Multiagent *Multiagent `json:"multiagent"`
}

// ThreadAgent is a version of an agent as threads show it: without those that it hands on to.
type ThreadAgent struct {
	ID                string   `json:"id"`
	Type              string   `json:"type"`
	Version           int      `json:"version"`
	Name              string   `json:"name"`
	Description       *string  `json:"description"`
	System            *string  `json:"system"`
	Model             Model    `json:"model"`
	Tools             []Tool   `json:"tools"`
	MCPServers        []Server `json:"mcp_servers"`
	Skills            []Skill  `json:"skills"`
	ExecutionIdentity Typed    `json:"execution_identity"`
}

// Stats is how long a session was at work, and how long it is there.
type Stats struct {
	ActiveSeconds   float64 `json:"active_seconds"`
	DurationSeconds float64 `json:"duration_seconds"`
}

// SessionUsage is what all turns of a session that have ended came to, or a thread with those below it.
type SessionUsage struct {
	InputTokens   int64         `json:"input_tokens"`
	OutputTokens  int64         `json:"output_tokens"`
	CacheRead     int64         `json:"cache_read_input_tokens"`
	CacheCreation CacheCreation `json:"cache_creation"`
	ActiveSeconds float64       `json:"active_seconds"`
	ListCost      Amount        `json:"list_cost"`
	CostUSD       float64       `json:"cost_usd"` // ours: ListCost has whole cents
}

// CacheCreation is what was written to a provider's cache.
type CacheCreation struct {
	FiveMinutes int64 `json:"ephemeral_5m_input_tokens"`
	OneHour     int64 `json:"ephemeral_1h_input_tokens"`
}

// Amount is money, in cents.
type Amount struct {
	Amount   string `json:"amount"`
	Currency string `json:"currency"`
}

// Budget is what a session may cost.
type Budget struct {
	Type        string `json:"type"`
	MaxListCost Amount `json:"max_list_cost"`
}

// Deleted says that a session is deleted.
type Deleted struct {
	ID   string `json:"id"`
	Type string `json:"type"`
}
