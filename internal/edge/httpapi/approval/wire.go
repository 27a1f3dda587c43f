package approval

import (
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/approval"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Approval is a tool call with its decision, or without one while it waits.
type Approval struct {
	ID            string     `json:"id" doc:"apr_ and 32 hexadecimal digits."`
	Type          string     `json:"type" doc:"approval"`
	Status        string     `json:"status" enum:"pending,approved,denied,expired,cancelled" doc:"expired: Atoll denied the call at its deadline. cancelled: a client interrupted or archived the session."`
	SessionID     *string    `json:"session_id" doc:"The agent's session; null for a response."`
	TurnID        *string    `json:"turn_id" doc:"The turn that requested the call; null for a response."`
	ToolUseID     *string    `json:"tool_use_id" doc:"The event of the call in the session; null for a response."`
	ThreadID      *string    `json:"session_thread_id" doc:"The thread of the session that made the call; null for the session itself."`
	ResponseID    *string    `json:"response_id" doc:"The response that requested the call; null for a session."`
	RequestID     *string    `json:"approval_request_id" doc:"The item mcp_approval_request of the response; null for a session."`
	AgentID       *string    `json:"agent_id" doc:"The agent that wants to make the call; null for a response."`
	KeyID         string     `json:"key_id" doc:"The key that began the turn or response."`
	EnvironmentID string     `json:"environment_id" doc:"The environment in which Atoll would run the call."`
	Tool          string     `json:"tool" doc:"The name of the tool."`
	Server        *string    `json:"server" doc:"The MCP server of the tool; null for other tools."`
	Arguments     string     `json:"arguments" doc:"The arguments of the call as JSON, redacted."`
	CreatedAt     time.Time  `json:"created_at" doc:"When the call began to wait."`
	ExpiresAt     *time.Time `json:"expires_at" doc:"The deadline, at which Atoll denies the call; null without a deadline."`
	DecidedAt     *time.Time `json:"decided_at" doc:"When the call was decided; null while it waits."`
	DecidedBy     *string    `json:"decided_by" doc:"The key or token that decided; null while the call waits, and after its deadline."`
	Reason        *string    `json:"reason" doc:"The reason of the decision; null without one."`
	ContinuedBy   *string    `json:"continued_by" doc:"The turn or response that continues after the decision; null while other calls of the same answer wait, or while a limit delays the response."`
}

// Decision approves or denies a tool call.
type Decision struct {
	Approve *bool   `json:"approve" required:"true" doc:"true approves the call, false denies it."`
	Reason  *string `json:"reason,omitzero" doc:"Why, at most 4 KiB. The model reads the reason of a denial."`
}

// callers holds the caller of a request in the environments of the approvals that it reads, by their ids.
type callers map[string]*tenant.Principal

func (h *Handlers) wire(c *httpapi.Call, a *approval.Approval, in callers) (Approval, error) {
	caller := in[a.Environment]
	if caller == nil {
		p, err := h.Within(c.Context(), *c.Caller, a.Environment)
		if err != nil {
			return Approval{}, err
		}
		caller, in[a.Environment] = &p, &p
	}
	arguments, err := h.Cover(caller, a.Arguments)
	if err != nil {
		return Approval{}, err
	}
	out := Approval{
		ID: string(a.ID), Type: "approval", Status: string(a.Status), SessionID: httpapi.OrNull(a.Session), ThreadID: httpapi.OrNull(a.Thread), RequestID: httpapi.OrNull(a.Item),
		AgentID: httpapi.OrNull(a.Agent), KeyID: a.Key, EnvironmentID: a.Environment, Tool: a.Tool, Server: httpapi.OrNull(a.Server), Arguments: arguments,
		CreatedAt: a.CreatedAt, DecidedBy: httpapi.OrNull(a.By), Reason: httpapi.OrNull(a.Reason),
	}
	asked, next := idOf(a, a.Run), ""
	if a.Next != "" {
		next = idOf(a, a.Next)
	}
	if out.ContinuedBy = httpapi.OrNull(next); a.Session == "" {
		out.ResponseID = &asked
	} else {
		event := session.EventID(session.ID(a.Session), a.Of)
		out.TurnID, out.ToolUseID = &asked, &event
	}
	if !a.Deadline.IsZero() {
		out.ExpiresAt = &a.Deadline
	}
	if !a.DecidedAt.IsZero() {
		out.DecidedAt = &a.DecidedAt
	}
	return out, nil
}

// idOf returns the id under which clients know a run of an approval.
func idOf(a *approval.Approval, id run.ID) string {
	return (&run.Run{ID: id, Session: a.Session}).TurnID()
}

// runOf returns the run with a client's id of a response or turn.
func runOf(id string) run.ID {
	for _, prefix := range []string{"resp_", "turn_"} {
		if digits, ok := strings.CutPrefix(id, prefix); ok {
			return run.ID("run_" + digits)
		}
	}
	return run.ID(id)
}
