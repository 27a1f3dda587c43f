package anthropic

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
)

func messageID(of run.ID, place int) string { return fmt.Sprintf("%s_m%d", ofRun(of), place) }
func interruptID(of run.ID) string          { return ofRun(of) + "_interrupt" }
func ofRun(of run.ID) string                { return "sevt_" + strings.TrimPrefix(string(of), "run_") }

// shownID is the id of the event that an item of a turn's output will be.
func shownID(item string) string {
	_, digits, _ := strings.Cut(item, "_")
	return "sevt_" + digits
}

// idOf is the id of an event. What a client was told of before it was recorded has an id of its
// turn, and any other one of its place.
func idOf(of session.ID, e *session.Event) string {
	switch {
	case e.Place > 0:
		return messageID(e.Run, e.Place)
	case e.Kind == run.EventInterrupt && e.Run != "":
		return interruptID(e.Run)
	case e.Shown != "" && e.Kind != run.EventCall:
		return shownID(e.Shown)
	}
	return session.EventID(of, e.Seq)
}

func eventOf(of session.ID, e *session.Event) Event {
	out := Event{ID: idOf(of, e), ProcessedAt: &e.At, Incomplete: e.Cut}
	about := ""
	if e.Of > 0 {
		about = session.EventID(of, e.Of)
	}
	if t := e.Thread; t != nil && (e.Kind == run.EventCall || e.Kind == run.EventResult || e.Kind == run.EventDecision) {
		out.SessionThreadID = t.ID // the call was made there
	}
	switch e.Kind {
	case run.EventMessage:
		switch out.Type = "agent.message"; e.Item.Message.Role {
		case model.User:
			out.Type = userMessage
		case model.System:
			out.Type = systemMessage
		}
		out.Content = blocksOf(e.Item.Message.Parts)
	case run.EventThinking:
		out.Type = "agent.thinking"
		if text := strings.Join(e.Item.Reasoning.Summary, "\n"); text != "" {
			out.Content = []Block{{Type: "text", Text: &text}}
		}
	case run.EventCall:
		out.call(e)
	case run.EventResult:
		out.result(e, about)
	case run.EventDecision:
		out.Type, out.ToolUseID, out.Result, out.KeyID, out.DenyMessage = userConfirmation, about, "deny", e.Decision.Key, e.Decision.Reason
		if e.Decision.Approve {
			out.Result = "allow"
		}
	case run.EventError:
		out.Type, out.Error = "session.error", errorOf(e.Failure)
	case run.EventCompacted:
		out.Type, out.Content = "agent.thread_context_compacted", blocksOf(e.Item.Message.Parts)
	case run.EventWarning:
		out.Type, out.Error = "session.error", warningOf(e.Warning)
	case run.EventUsage:
		out.Type, out.Turn = "session.usage", &TurnUsage{e.Spent.Usage.Input, e.Spent.Usage.Output, e.Spent.Cost.Dollars()}
		if e.Total != nil {
			out.Usage = usageOf(e.Total)
		}
	case run.EventStatus:
		if out.Type = "session.status_running"; !e.Status.Running {
			out.Type, out.StopReason = "session.status_idle", stopOf(of, e.Status)
		}
	case run.EventRequest:
		out.Type = "span.model_request_start"
	case run.EventAnswer:
		out.Type, out.ModelRequestStartID, out.IsError, out.ModelUsage = "span.model_request_end", about, &e.Failed, &ModelUsage{}
		if e.Spent != nil {
			out.ModelUsage = modelUsageOf(&e.Spent.Usage)
		}
	case run.EventOutcome:
		out.outcome(e.Outcome)
	case run.EventEvaluating, run.EventGrading, run.EventEvaluated:
		out.evaluation(of, e)
	case run.EventInterrupt:
		out.Type = userInterrupt
	case run.EventPlan, run.EventReview, run.EventDocument, run.EventReminder:
		text := string(e.Note.Data)
		out.Type, out.Content = ofSkill+string(e.Kind), []Block{{Type: "text", Text: &text}}
	case run.EventSpeaker:
		out.Type, out.Speaker = ofSkill+"speaker", &Speaker{e.Speaker.Agent, e.Speaker.Version, e.Speaker.Name}
	case run.EventOpened, run.EventSent, run.EventReceived, run.EventIdle, run.EventTerminated:
		out.thread(e.Kind, e.Thread)
	}
	return out
}

// thread renders what is told of work that was handed on.
func (out *Event) thread(kind run.EventKind, t *run.EventThread) {
	name := t.Member.Name
	switch kind {
	case run.EventOpened:
		out.Type, out.SessionThreadID, out.AgentName = "session.thread_created", t.ID, name
	case run.EventSent:
		out.Type, out.ToSessionThreadID, out.ToAgentName, out.Content = "agent.thread_message_sent", t.ID, name, []Block{{Type: "text", Text: &t.Text}}
	case run.EventReceived:
		out.Type, out.FromSessionThreadID, out.FromAgentName, out.Content = "agent.thread_message_received", t.ID, name, []Block{{Type: "text", Text: &t.Text}}
	case run.EventIdle:
		out.Type, out.SessionThreadID, out.AgentName, out.StopReason = "session.thread_status_idle", t.ID, name, &StopReason{Type: "end_turn"}
	case run.EventTerminated:
		out.Type, out.SessionThreadID, out.AgentName, out.Code = "session.thread_status_terminated", t.ID, name, cmp.Or(string(t.Reason), string(t.Status))
	}
}

// call renders a call: of the client's, of an MCP server's tool, or of another one.
func (out *Event) call(e *session.Event) {
	c := e.Item.Call
	out.Name, out.Input = c.Name, jsontext.Value(c.Arguments)
	if !out.Input.IsValid() || out.Input.Kind() != '{' {
		out.Input, out.Arguments = jsontext.Value(`{}`), &c.Arguments
	}
	switch t := e.Tool; {
	case t == nil:
		out.Type, out.EvaluatedPermission = "agent.tool_use", "deny"
		return
	case t.Client:
		out.Type = "agent.custom_tool_use"
		return
	case t.Server != "":
		out.Type, out.MCPServerName = "agent.mcp_tool_use", t.Server
		if t.Name != "" {
			out.Name = t.Name
		}
	default:
		out.Type = "agent.tool_use"
	}
	out.EvaluatedPermission, out.Evaluation = "allow", &Typed{always}
	if e.Tool.Approve {
		out.EvaluatedPermission, out.Evaluation = "ask", &Typed{ask}
	}
}

func (out *Event) result(e *session.Event, about string) {
	r := e.Item.Result
	out.Content, out.IsError = blocksOf(r.Parts), &r.Failed
	switch t := e.Tool; {
	case t != nil && t.Client:
		out.Type, out.CustomToolUseID = userResult, about
	case t != nil && t.Server != "":
		out.Type, out.MCPToolUseID = "agent.mcp_tool_result", about
	default:
		out.Type, out.ToolUseID = "agent.tool_result", about
	}
}

func blocksOf(parts []model.Part) []Block {
	out := []Block{}
	for i := range parts {
		p := &parts[i]
		b := Block{Type: "text", Text: &p.Text}
		if p.Kind == model.PartImage || p.Kind == model.PartFile {
			b = Block{Type: "image", Source: &Source{Type: "url", URL: p.URL}}
			if p.URL == "" {
				b.Source = &Source{Type: "base64", MediaType: p.MediaType, Data: p.Data}
			}
			if p.Kind == model.PartFile {
				b.Type, b.Title = "document", p.Name
			}
		}
		out = append(out, b)
	}
	return out
}

// errorTypes are the types of errors by the reasons why turns end.
var errorTypes = map[run.Reason]string{
	run.ModelError: "model_request_failed_error", run.ContextLength: "model_request_failed_error", run.ContentFilter: "model_request_failed_error",
	run.MaxSteps: "tool_use_limit_reached_error", run.MaxCalls: "tool_use_limit_reached_error", run.RepeatedFailure: "tool_use_limit_reached_error",
	run.Budget: "billing_error", run.MaxCost: "billing_error", run.QuotaExceeded: "billing_error", run.SessionBudget: "billing_error",
}

// errorOf is never one after which a session is over: it takes the next message.
func errorOf(f *run.TurnFailure) *EventError {
	out := &EventError{Type: errorTypes[f.Reason], Message: f.Message, RetryStatus: Typed{"exhausted"}, Code: string(f.Reason)}
	if out.Type == "" {
		out.Type = "unknown_error"
	}
	if out.Message == "" {
		out.Message = "the turn ended: " + out.Code
	}
	return out
}

// warningOf is an error that does not end the turn.
func warningOf(w *run.Warning) *EventError {
	out := &EventError{Type: "model_request_failed_error", Message: w.Message, RetryStatus: Typed{"retrying"}, Code: string(w.Code)}
	switch w.Code {
	case run.MCPUnavailable:
		out.Type, out.Server = "mcp_connection_failed_error", w.Server
	case run.ToolUnavailable, run.CompactionFailed, run.ImageBuilding:
		out.Type = "unknown_error"
	}
	return out
}

func stopOf(of session.ID, st *run.SessionState) *StopReason {
	switch {
	case st.End == run.RequiresAction:
		stop := &StopReason{Type: "requires_action", EventIDs: []string{}}
		for _, w := range st.Waits {
			stop.EventIDs = append(stop.EventIDs, session.EventID(of, w.Of))
		}
		return stop
	case st.Reason == run.SessionBudget:
		return &StopReason{Type: "budget_reached"}
	case st.Reason == run.ContentFilter:
		return &StopReason{Type: "refusal"}
	case st.End == run.Failed || st.End == run.Incomplete:
		return &StopReason{Type: "retries_exhausted"}
	}
	return &StopReason{Type: "end_turn"}
}
