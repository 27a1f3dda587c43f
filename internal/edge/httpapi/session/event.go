package session

import (
	"cmp"
	stdjson "encoding/json"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/agent/skilltool"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// SessionEvent is something that happened in a session. It does not change.
type SessionEvent struct {
	ID         string             `json:"id" doc:"sevt_, the session's digits and the number of the event."`
	Type       run.EventKind      `json:"type"`
	TurnID     *string            `json:"turn_id" doc:"null for answers after which no turn began."`
	Role       *string            `json:"role,omitzero" enum:"user,assistant,system" doc:"Of message and user.define_outcome."`
	Content    *string            `json:"content,omitzero" doc:"Of message, thinking and tool_result; of reminder, what the model was told; of state, the document; of user.define_outcome, what the model was told; of thread_message_sent and thread_message_received, of context_summary and context_compacted, the text."`
	Files      *[]string          `json:"files,omitzero" doc:"Of message and user.define_outcome: the names of the files that came with it."`
	Incomplete *bool              `json:"incomplete,omitzero" doc:"Of message and thinking: it broke off, and is no part of the conversation."`
	ItemID     *string            `json:"item_id,omitzero" doc:"Of message and thinking: the id that their deltas have."`
	Name       *string            `json:"name,omitzero" doc:"Of tool_use."`
	Arguments  *string            `json:"arguments,omitzero" doc:"Of tool_use: the arguments that the model wrote, usually valid JSON."`
	ToolUseID  *string            `json:"tool_use_id,omitzero" doc:"Of tool_result and tool_confirmation, and of events of threads and speaker: the id of the event tool_use."`
	IsError    *bool              `json:"is_error,omitzero" doc:"Of tool_result."`
	Approve    *bool              `json:"approve,omitzero" doc:"Of tool_confirmation."`
	Reason     *string            `json:"reason,omitzero" doc:"Of tool_confirmation."`
	KeyID      *string            `json:"key_id,omitzero" doc:"Of tool_confirmation: of the key that gave it; omitted where the call has expired."`
	Warning    *TurnWarning       `json:"warning,omitzero" doc:"Of warning."`
	Error      *TurnError         `json:"error,omitzero" doc:"Of error, and of thread_terminated where there is something to say."`
	Usage      *TurnUsage         `json:"usage,omitzero" doc:"Of usage: of the whole turn. Of outcome_evaluation_end: of the models that graded."`
	Skill      *string            `json:"skill,omitzero" doc:"Of plan, review, state and reminder: the skill that it is of."`
	File       *SessionFile       `json:"file,omitzero" doc:"Of file: the shared file."`
	Plan       *SessionPlan       `json:"plan,omitzero" doc:"Of plan."`
	Review     *Review            `json:"review,omitzero" doc:"Of review."`
	Outcome    *SessionOutcome    `json:"outcome,omitzero" doc:"Of user.define_outcome."`
	Evaluation *OutcomeEvaluation `json:"evaluation,omitzero" doc:"Of outcome_evaluation_start, _ongoing and _end."`
	Status     *string            `json:"status,omitzero" enum:"running,idle,requires_action" doc:"Of status: the new status of the session."`
	StopReason *SessionStop       `json:"stop_reason,omitzero" doc:"Of status, but for running."`
	Thread     *EventThread       `json:"thread,omitzero" doc:"Of events of threads: the thread, with the agent that works in it."`
	Speaker    *EventThread       `json:"speaker,omitzero" doc:"Of speaker: the agent that speaks from then on."`
	CreatedAt  time.Time          `json:"created_at" doc:"When it happened."`
}

// SessionStop is why a turn stopped.
type SessionStop struct {
	Type           string        `json:"type" enum:"end_turn,requires_action,interrupted,expired,limit,error"`
	RequiresAction []WaitingCall `json:"requires_action" doc:"Calls that wait for the client."`
	ExpiresAt      *time.Time    `json:"expires_at,omitzero" doc:"Until when the calls wait."`
}

// SessionFile is a file that an agent has shared.
type SessionFile struct {
	ID        string    `json:"id"`
	FileName  string    `json:"filename"`
	Bytes     int64     `json:"bytes" doc:"Size in bytes."`
	ThreadID  *string   `json:"thread_id,omitzero" doc:"In a list: the thread in which it was shared, if it was in one."`
	CreatedAt time.Time `json:"created_at"`
}

// SessionPlan is the agent's plan, as it is from then on.
type SessionPlan struct {
	Steps   []PlanStep `json:"steps" doc:"The steps in their order."`
	WhyOpen *string    `json:"why_open,omitzero" doc:"Why steps stay open at the end of the turn."`
}

// PlanStep is a step of a plan.
type PlanStep struct {
	Step   string `json:"step" doc:"The task, in words."`
	Status string `json:"status" enum:"pending,in_progress,completed,cancelled"`
}

// Review is what a review says of an answer.
type Review struct {
	Iteration int     `json:"iteration" doc:"Of the turn, from 1."`
	Score     float64 `json:"score" doc:"0 to 1."`
	Threshold float64 `json:"threshold" doc:"The quality_threshold of the skill."`
	Passed    bool    `json:"passed" doc:"Whether the answer reached the threshold."`
	Feedback  string  `json:"feedback" doc:"Required improvements, in words."`
	Error     *string `json:"error,omitzero" doc:"Why there is no review: the answer stays as it is then."`
}

// TurnWarning reports a problem in a turn that continues.
type TurnWarning struct {
	Code    string     `json:"code" enum:"model_retry,mcp_unavailable,tool_unavailable,compaction_failed,image_building" doc:"image_building: the server is making programs that the agent's skills need, and calls that need them wait. compaction_failed: the beginning of the conversation could not be summarized, and is omitted. model_retry: the model's provider failed and is asked again. mcp_unavailable: an MCP server cannot be reached, and the turn continues without its tools. tool_unavailable: this server has a built-in tool turned off."`
	Message string     `json:"message" doc:"Error message."`
	Server  *string    `json:"server,omitzero" doc:"Of mcp_unavailable: the server's name."`
	RetryAt *time.Time `json:"retry_at,omitzero" doc:"When Atoll tries again. Omitted where the next turn does."`
}

func eventOf(id session.ID, e *session.Event) SessionEvent {
	out := SessionEvent{ID: session.EventID(id, e.Seq), Type: e.Kind, CreatedAt: e.At, ItemID: httpapi.OrNull(e.Shown)}
	if e.Run != "" {
		out.TurnID = new(turnID(e.Run))
	}
	if e.Of > 0 {
		out.ToolUseID = new(session.EventID(id, e.Of))
	}
	if e.Cut {
		out.Incomplete = new(true)
	}
	if it := e.Item; it != nil && e.Note == nil && e.Evaluation == nil {
		out.item(it)
	}
	if d := e.Decision; d != nil {
		out.Approve, out.Reason, out.KeyID = &d.Approve, httpapi.OrNull(d.Reason), httpapi.OrNull(d.Key)
	}
	switch {
	case e.Kind == run.EventFile:
		out.File = new(fileOf(e))
	case e.Note != nil:
		out.note(e)
	}
	if e.Outcome != nil {
		out.Outcome = OutcomeOf(e.Outcome)
	}
	if e.Evaluation != nil {
		out.Evaluation = evaluationOf(id, e.Evaluation)
	}
	if f := e.Failure; f != nil {
		out.Error = &TurnError{string(f.Reason), f.Message}
	}
	if w := e.Warning; w != nil {
		out.Warning = &TurnWarning{Code: string(w.Code), Message: w.Message, Server: httpapi.OrNull(w.Server)}
		if !w.Again.IsZero() {
			out.Warning.RetryAt = new(w.Again.UTC())
		}
	}
	if e.Compaction != nil {
		out.Role = nil
	}
	if e.Spent != nil {
		out.Usage = new(usageOf(e.Spent))
	}
	if st := e.Status; st != nil {
		out.status(id, st)
	}
	if t := e.Thread; t != nil {
		out.thread(t)
	}
	if m := e.Speaker; m != nil {
		out.Speaker = &EventThread{AgentID: m.Agent, AgentVersion: m.Version, Name: m.Name}
	}
	return out
}

func (out *SessionEvent) thread(t *run.EventThread) {
	if t.Text != "" {
		out.Content = &t.Text
	}
	if t.ID != "" {
		out.Thread = &EventThread{&t.ID, t.Member.Agent, t.Member.Version, t.Member.Name}
	}
	if out.Type == run.EventTerminated && t.Status != "" {
		out.Error = &TurnError{Code: cmp.Or(string(t.Reason), string(t.Status))}
	}
}

func (out *SessionEvent) item(it *model.Item) {
	switch {
	case it.Message != nil:
		out.Role, out.Content = new(string(it.Message.Role)), new(model.Joined(it.Message.Parts))
		if files := fileNames(it.Message.Parts); len(files) > 0 {
			out.Files = &files
		}
	case it.Call != nil:
		out.Name, out.Arguments = &it.Call.Name, &it.Call.Arguments
	case it.Result != nil:
		out.Content, out.IsError = new(model.Joined(it.Result.Parts)), &it.Result.Failed
	case it.Reasoning != nil:
		out.Content = new(strings.Join(it.Reasoning.Summary, "\n"))
	}
}

func (out *SessionEvent) status(id session.ID, st *run.SessionState) {
	if st.Running {
		out.Status = new("running")
		return
	}
	out.Status = new("idle")
	stop := &SessionStop{Type: session.Stops[st.End], RequiresAction: []WaitingCall{}}
	for _, w := range st.Waits {
		out.Status = new("requires_action")
		stop.RequiresAction = append(stop.RequiresAction, waitOf(id, w))
	}
	if !st.Until.IsZero() {
		stop.ExpiresAt = new(st.Until.UTC())
	}
	out.StopReason = stop
}

// note is what a skill tells readers.
func (out *SessionEvent) note(e *session.Event) {
	out.Skill = &e.Note.Skill
	switch e.Kind {
	case run.EventPlan:
		var p skilltool.Plan
		read(e, &p)
		out.Plan = &SessionPlan{Steps: httpapi.Each(p.Steps, func(s skilltool.Step) PlanStep { return PlanStep{s.Step, s.Status} }), WhyOpen: httpapi.OrNull(p.WhyOpen)}
	case run.EventReview:
		var r skilltool.Review
		read(e, &r)
		out.Review = &Review{r.Iteration, r.Score, r.Threshold, r.Passed, r.Feedback, httpapi.OrNull(r.Error)}
	case run.EventDocument:
		var d skilltool.Document
		read(e, &d)
		out.Content = &d.Document
	case run.EventReminder:
		var m skilltool.Reminder
		read(e, &m)
		out.Content = &m.Content
	}
}

// read decodes the note of a skill. If a later version of Atoll wrote it in another format, into stays
// empty.
func read(e *session.Event, into any) { _ = stdjson.Unmarshal(e.Note.Data, into) }
