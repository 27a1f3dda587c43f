package session

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/core/wire"
)

// NewSession is the body that makes a session.
type NewSession struct {
	AgentID     *string                   `json:"agent_id" required:"true" doc:"Id or slug of an agent. The session keeps its current version."`
	Version     *int                      `json:"agent_version,omitzero" minimum:"1" doc:"Another version than the current one."`
	Environment *string                   `json:"environment_id,omitzero" doc:"Id or name of the agent's environment; the key's if omitted. Another one needs the scope environments."`
	Title       *string                   `json:"title,omitzero"`
	Metadata    map[string]jsontext.Value `json:"metadata,omitzero" doc:"Metadata: an object of your own."`
	Mounts      []NewMount                `json:"mounts,omitzero" doc:"Up to 20, for an agent with the tool sandboxes."`
	Budget      *SessionBudget            `json:"budget,omitzero" doc:"Limit for all turns together."`
	Vaults      []wire.Text               `json:"vault_ids,omitzero" doc:"Up to 10 vaults, whose credentials the session uses: of the first one that has one for a server, or of a name."`
	Webhook     *string                   `json:"webhook_url,omitzero" doc:"An https URL that Atoll notifies when the session's state changes, signed with the key's webhook secret."`
}

// SessionChange changes the description of a session; omitted fields stay unchanged.
type SessionChange struct {
	Title    *string                    `json:"title,omitzero"`
	Metadata *map[string]jsontext.Value `json:"metadata,omitzero" doc:"Replaces it."`
	Budget   *SessionBudget             `json:"budget,omitzero" doc:"Raises it; the turn in progress has what it began with."`
}

// Session is a conversation with an agent.
type Session struct {
	ID           string                    `json:"id" doc:"sess_ and 32 hexadecimal digits."`
	Type         string                    `json:"type" enum:"session"`
	AgentID      string                    `json:"agent_id"`
	AgentVersion int                       `json:"agent_version"`
	Speaker      SessionSpeaker            `json:"speaker" doc:"The agent that answers messages: another one than the session's once a swarm has handed the conversation on."`
	Environment  string                    `json:"environment_id" doc:"The environment that it runs in."`
	Title        *string                   `json:"title"`
	Metadata     map[string]jsontext.Value `json:"metadata"`
	Status       string                    `json:"status" enum:"idle,running,requires_action,archived"`
	Events       int64                     `json:"events" doc:"Number of the last one. Some are for other forms alone."`
	QueuedTurns  int                       `json:"queued_turns" doc:"Turns that wait for those before them."`
	Mounts       []Mount                   `json:"mounts" doc:"Files that its sandbox has at its first use."`
	Budget       *SessionBudget            `json:"budget" doc:"null for none."`
	Vaults       []string                  `json:"vault_ids" doc:"The vaults whose credentials it uses."`
	Webhook      *string                   `json:"webhook_url" doc:"The URL that Atoll notifies of its state; null if none."`
	Usage        TurnUsage                 `json:"usage" doc:"Of all turns that have ended."`
	CreatedAt    time.Time                 `json:"created_at"`
	UpdatedAt    time.Time                 `json:"updated_at"`
	ArchivedAt   *time.Time                `json:"archived_at"`
}

// SessionSpeaker is an agent that speaks for a session.
type SessionSpeaker struct {
	AgentID      string `json:"agent_id"`
	AgentVersion int    `json:"agent_version"`
}

// NewSessionEvent is something that the client says: a message, an outcome to work for, or an
// answer to a call that waits for it.
type NewSessionEvent struct {
	Type    *string `json:"type" required:"true" enum:"message,tool_confirmation,tool_result,user.define_outcome"`
	Role    *string `json:"role,omitzero" enum:"user" default:"user" doc:"Of message."`
	Content *string `json:"content,omitzero" doc:"Of message and tool_result: a text of up to 1 MiB."`
	// The files are put where the agent's tools work.
	Files       map[string]string `json:"files,omitzero" doc:"Of message and user.define_outcome: files that the agent's tools find in the working folder: text by name, such as data/in.csv. At most 100 files with files_base64, and 1 MiB."`
	FilesBase64 map[string]string `json:"files_base64,omitzero" doc:"Like files, with the contents in base64."`

	Queue         *bool         `json:"queue,omitzero" default:"false" doc:"Of message and user.define_outcome: while a turn is in progress, have this one begin after it; the answer is 202 then."`
	ToolUseID     *string       `json:"tool_use_id,omitzero" doc:"Of tool_confirmation and tool_result: the id of the event tool_use."`
	Approve       *bool         `json:"approve,omitzero" doc:"Of tool_confirmation: whether the call may be made."`
	Reason        *string       `json:"reason,omitzero" doc:"Of tool_confirmation: why not, which the model is told."`
	IsError       *bool         `json:"is_error,omitzero" doc:"Of tool_result: the call has failed."`
	Description   *string       `json:"description,omitzero" doc:"Of user.define_outcome: the agent's task, a text of up to 1 MiB."`
	Rubric        *string       `json:"rubric,omitzero" doc:"Of user.define_outcome: the criteria by which a model grades, a text of up to 262144 characters. Either this or check is required."`
	Check         *OutcomeCheck `json:"check,omitzero" doc:"Of user.define_outcome: a command that has to succeed, before a model grades if there is a rubric, too."`
	MaxIterations *int          `json:"max_iterations,omitzero" minimum:"1" maximum:"20" default:"3" doc:"Of user.define_outcome: the most evaluations."`
	Model         *string       `json:"model,omitzero" doc:"Of user.define_outcome: the model that grades; the agent's if omitted."`
}

// SessionTurn is the agent's answer.
type SessionTurn struct {
	ID             *string            `json:"id" doc:"Of the turn: turn_ and 32 hexadecimal digits. null when none began, since other calls wait for answers, too."`
	Type           string             `json:"type" enum:"message"`
	Role           string             `json:"role" enum:"assistant" doc:"Role of the speaker."`
	SessionID      string             `json:"session_id" doc:"The session that it belongs to."`
	Content        string             `json:"content" doc:"The agent's last message."`
	Status         string             `json:"status" enum:"queued,in_progress,completed,requires_action,incomplete,failed,cancelled"`
	Error          *TurnError         `json:"error" doc:"Why the turn did not complete."`
	RequiresAction []WaitingCall      `json:"requires_action" doc:"Calls that wait for the client."`
	Usage          TurnUsage          `json:"usage" doc:"Tokens that it used, and their price."`
	Evaluation     *OutcomeEvaluation `json:"evaluation,omitzero" doc:"Of the turn's outcome: the last one."`
}

// OutcomeCheck is a command that checks an outcome in the session's sandbox.
type OutcomeCheck struct {
	Command   *string `json:"command" required:"true" doc:"Run by bash; the check passes with the exit code 0."`
	TimeoutMS *int64  `json:"timeout_ms,omitzero" minimum:"1" doc:"As long as code runs by default if omitted, at most as long as the plan allows."`
}

// SessionOutcome is what a turn is to come to.
type SessionOutcome struct {
	ID            string        `json:"id" doc:"outc_ and 32 hexadecimal digits."`
	Description   string        `json:"description" doc:"Goal of the work."`
	Rubric        *string       `json:"rubric" doc:"Criteria for the work, in words; null if only the check decides."`
	Check         *OutcomeCheck `json:"check" doc:"A command of the sandbox that has to succeed."`
	MaxIterations int           `json:"max_iterations" doc:"How often the work is evaluated at most."`
	Model         *string       `json:"model" doc:"That grades; null for that of the agent."`
}

// OutcomeEvaluation is an evaluation of an outcome.
type OutcomeEvaluation struct {
	OutcomeID   string  `json:"outcome_id" doc:"The outcome that was evaluated."`
	Iteration   int     `json:"iteration" doc:"From 0."`
	Result      *string `json:"result" enum:"satisfied,needs_revision,max_iterations_reached,failed,interrupted" doc:"null while it is in progress."`
	Explanation *string `json:"explanation" doc:"Reason: the grader's explanation, or the output of the check."`
	StartID     *string `json:"start_id,omitzero" doc:"The id of the event outcome_evaluation_start; omitted where the outcome ended before an evaluation."`
}

// WaitingCall is a call that waits for the client.
type WaitingCall struct {
	ToolUseID string  `json:"tool_use_id" doc:"The id of the event tool_use."`
	Name      string  `json:"name"`
	Arguments *string `json:"arguments,omitzero" doc:"The arguments of the call, a JSON object as text."`
	Needs     string  `json:"needs" enum:"tool_confirmation,tool_result" doc:"The type of the event that answers it."`
	ThreadID  *string `json:"thread_id,omitzero" doc:"The thread that made the call, if it is of work that was handed on."`
}

// TurnError says why a turn did not complete.
type TurnError struct {
	Code    string `json:"code" doc:"Error code for programs."`
	Message string `json:"message"`
}

// TurnUsage is what a turn has used, or all turns of a session.
type TurnUsage struct {
	InputTokens  int64   `json:"input_tokens" doc:"Tokens of the input, cached ones too."`
	OutputTokens int64   `json:"output_tokens" doc:"Tokens of the output, reasoning included."`
	CostUSD      float64 `json:"cost_usd" doc:"Of models, tools and the sandbox."`
	Estimated    int64   `json:"estimated_tokens,omitzero" doc:"Tokens of both that Atoll estimated from the text, because an answer was cut before its provider counted them, or its provider counts none. They are charged like the others."`
}

// SessionDelta is a piece of an event that is to come.
type SessionDelta struct {
	Type   string `json:"type" enum:"delta"`
	TurnID string `json:"turn_id" doc:"The turn that it belongs to."`
	ItemID string `json:"item_id" doc:"Id of the event that the pieces form."`
	Of     string `json:"of" enum:"message,thinking,tool_use" doc:"Type of the event that the piece belongs to."`
	Text   string `json:"text"`
}

// SessionContext is what the model is told before the conversation.
type SessionContext struct {
	Type         string        `json:"type" enum:"session_context"`
	Model        string        `json:"model"`
	Instructions string        `json:"instructions" doc:"Those of the agent, and after them those of its skills."`
	Skills       []UsedSkill   `json:"skills" doc:"Skills that it works with."`
	Tools        []ContextTool `json:"tools"`
}

// UsedSkill is a skill of a session's agent.
type UsedSkill struct {
	Name    string  `json:"name"`
	Version *string `json:"version" doc:"Id of the version; null for one of the server's own."`
	Folder  *string `json:"folder" doc:"Where it is in the sandbox; null for one of the server's own."`
}

// ContextTool is a tool as the model sees it.
type ContextTool struct {
	Name             string         `json:"name"`
	Description      string         `json:"description"`
	InputSchema      jsontext.Value `json:"input_schema" doc:"JSON Schema of the arguments."`
	NeedsApproval    bool           `json:"needs_approval" doc:"Its calls wait for a tool_confirmation."`
	AnsweredByClient bool           `json:"answered_by_client" doc:"Its calls wait for a tool_result."`
}
