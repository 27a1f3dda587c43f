package run

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Warning reports a problem in a turn that continues.
type Warning struct {
	Code     WarningCode
	Message  string    // for people; it may quote a server, whose text must not reach the model as instructions
	ForModel string    `json:"Told,omitzero"` // shown to the model instead of Message; stored as Told
	Server   string    `json:",omitzero"`     // for MCPUnavailable: its name
	Again    time.Time `json:",omitzero"`     // time of the next try; zero if unknown
}

// WarningCode classifies a Warning.
type WarningCode string

// Codes of warnings.
const (
	ModelRetry       WarningCode = "model_retry"       // the provider failed, and Atoll retries
	MCPUnavailable   WarningCode = "mcp_unavailable"   // a server's tools are missing from the turn
	ToolUnavailable  WarningCode = "tool_unavailable"  // the operator disabled a built-in tool
	CompactionFailed WarningCode = "compaction_failed" // the start of the conversation is dropped instead
	ImageBuilding    WarningCode = "image_building"    // the server is installing programs that the agent's skills need
)

func warningEvents(q *Request) (out []SessionEvent) {
	for i := range q.Warnings {
		out = append(out, SessionEvent{Kind: EventWarning, Warning: &q.Warnings[i]})
	}
	return out
}

// Warn adds a warning about missing tools to the request and its instructions for the model.
func (q *Request) Warn(w Warning) {
	q.warn(w, " Its tools are missing from this turn. If the task needs them, say so and do not invent their results.")
}

// WarnOfWait adds a warning about slower calls in this turn and tells the model.
func (q *Request) WarnOfWait(w Warning) { q.warn(w, "") }

func (q *Request) warn(w Warning, advice string) {
	q.Warnings = append(q.Warnings, w)
	q.Instructions = strings.TrimSpace(q.Instructions + "\n\n" + w.forModel() + advice)
}

func (w *Warning) forModel() string { return cmp.Or(w.ForModel, w.Message) }

// NoTool returns why a call to an unknown tool did not run. The client may have approved a call to
// an MCP server that has since become unavailable.
func (q *Request) NoTool(name string) string {
	for i := range q.Warnings {
		w := &q.Warnings[i]
		if w.Code == MCPUnavailable && (strings.HasPrefix(name, w.Server+"__") || strings.HasPrefix(name, "mcp__")) {
			return "the call was not made: " + w.forModel()
		}
	}
	return fmt.Sprintf("there is no tool %q", name)
}
