package anthropic

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
)

// EventsFields is the body that sends events.
type EventsFields struct {
	Events []jsontext.Value `json:"events" required:"true"`
}

// EventFields is an event that a client sends.
type EventFields struct {
	Type            *string          `json:"type" required:"true"`
	Content         []jsontext.Value `json:"content,omitzero"`
	ToolUseID       *string          `json:"tool_use_id,omitzero"`
	CustomToolUseID *string          `json:"custom_tool_use_id,omitzero"`
	Result          *string          `json:"result,omitzero" enum:"allow,deny"`
	DenyMessage     *string          `json:"deny_message,omitzero"`
	IsError         *bool            `json:"is_error,omitzero"`
	Thread          *string          `json:"session_thread_id,omitzero"`
	Description     *string          `json:"description,omitzero"`
	Rubric          jsontext.Value   `json:"rubric,omitzero"`
	MaxIterations   *int             `json:"max_iterations,omitzero"`
}

// BlockFields is a part of what an event says.
type BlockFields struct {
	Type   *string       `json:"type" required:"true"`
	Text   *string       `json:"text,omitzero"`
	Source *SourceFields `json:"source,omitzero"`
	Title  *string       `json:"title,omitzero"`
}

// SourceFields is where a picture or document is.
type SourceFields struct {
	Type      *string `json:"type" required:"true"`
	MediaType *string `json:"media_type,omitzero"`
	Data      *string `json:"data,omitzero"`
	URL       *string `json:"url,omitzero"`
	FileID    *string `json:"file_id,omitzero"`
}

// Sent has the events that were taken.
type Sent struct {
	Data []Event `json:"data"`
}

// Event is something that happened in a session.
type Event struct {
	ID          string     `json:"id"`
	Type        string     `json:"type"`
	ProcessedAt *time.Time `json:"processed_at"` // nil for one that waits

	Content []Block `json:"content,omitzero"`

	Name                string         `json:"name,omitzero"`
	Input               jsontext.Value `json:"input,omitzero"`
	MCPServerName       string         `json:"mcp_server_name,omitzero"`
	EvaluatedPermission string         `json:"evaluated_permission,omitzero"`
	Evaluation          *Typed         `json:"evaluation,omitzero"`

	ToolUseID       string `json:"tool_use_id,omitzero"`
	MCPToolUseID    string `json:"mcp_tool_use_id,omitzero"`
	CustomToolUseID string `json:"custom_tool_use_id,omitzero"`
	IsError         *bool  `json:"is_error,omitzero"`
	Result          string `json:"result,omitzero"`
	DenyMessage     string `json:"deny_message,omitzero"`

	Error      *EventError `json:"error,omitzero"`
	StopReason *StopReason `json:"stop_reason,omitzero"`

	SessionThreadID     string `json:"session_thread_id,omitzero"`
	AgentName           string `json:"agent_name,omitzero"`
	ToSessionThreadID   string `json:"to_session_thread_id,omitzero"`
	ToAgentName         string `json:"to_agent_name,omitzero"`
	FromSessionThreadID string `json:"from_session_thread_id,omitzero"`
	FromAgentName       string `json:"from_agent_name,omitzero"`

	ModelRequestStartID string      `json:"model_request_start_id,omitzero"`
	ModelUsage          *ModelUsage `json:"model_usage,omitzero"`
	Usage               any         `json:"usage,omitzero"` // a SessionUsage, or the ModelUsage of an evaluation

	OutcomeID     string  `json:"outcome_id,omitzero"`
	Description   string  `json:"description,omitzero"`
	Rubric        *Rubric `json:"rubric,omitzero"`
	MaxIterations *int    `json:"max_iterations,omitzero"`
	Iteration     *int    `json:"iteration,omitzero"`
	StartID       *string `json:"outcome_evaluation_start_id,omitzero"` // "" where the outcome ended before an evaluation
	Explanation   *string `json:"explanation,omitzero"`

	// Ours: what the fields above cannot say.
	Incomplete bool               `json:"incomplete,omitzero"` // the answer broke off, and is not part of the conversation
	Arguments  *string            `json:"arguments,omitzero"`  // of a call whose arguments are not an object
	KeyID      string             `json:"key_id,omitzero"`     // of the decision
	Turn       *TurnUsage         `json:"turn,omitzero"`       // usage of this turn
	Check      *sandboxtool.Check `json:"check,omitzero"`      // for an outcome
	Model      string             `json:"model,omitzero"`      // the model that grades the outcome
	Speaker    *Speaker           `json:"speaker,omitzero"`    // the agent that speaks from then on
	Code       string             `json:"code,omitzero"`       // why a thread ended
}

// Block is a part of what an event says.
type Block struct {
	Type   string  `json:"type"`
	Text   *string `json:"text,omitzero"`
	Source *Source `json:"source,omitzero"`
	Title  string  `json:"title,omitzero"`
}

// Source is where a picture or document is.
type Source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type,omitzero"`
	Data      []byte `json:"data,omitzero"`
	URL       string `json:"url,omitzero"`
}

// EventError is why a turn did not complete.
type EventError struct {
	Type        string `json:"type"`
	Message     string `json:"message"`
	RetryStatus Typed  `json:"retry_status"`
	Code        string `json:"code"` // ours: the reason as it is in other forms
	Server      string `json:"mcp_server_name,omitzero"`
}

// StopReason is why a session is idle.
type StopReason struct {
	Type     string   `json:"type"`
	EventIDs []string `json:"event_ids,omitzero"` // of the calls that wait
}

// ModelUsage is what one answer of a model came to.
type ModelUsage struct {
	Input         int64 `json:"input_tokens"`
	Output        int64 `json:"output_tokens"`
	CacheRead     int64 `json:"cache_read_input_tokens"`
	CacheCreation int64 `json:"cache_creation_input_tokens"`
}

// TurnUsage is what a turn came to.
type TurnUsage struct {
	InputTokens  int64   `json:"input_tokens"`
	OutputTokens int64   `json:"output_tokens"`
	CostUSD      float64 `json:"cost_usd"`
}

// Start opens the preview of an event that is to come.
type Start struct {
	Type  string  `json:"type"`
	Event Preview `json:"event"`
}

// Preview is what is known of an event that is to come.
type Preview struct {
	ID   string `json:"id"`
	Type string `json:"type"`
}

// Delta is a piece of an event that is to come.
type Delta struct {
	Type    string  `json:"type"`
	EventID string  `json:"event_id"`
	Delta   Content `json:"delta"`
}

// Content is the piece.
type Content struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Content Block  `json:"content"`
}

// Speaker is an agent that speaks for a session.
type Speaker struct {
	AgentID string `json:"agent_id"`
	Version int    `json:"agent_version"`
	Name    string `json:"name"`
}
