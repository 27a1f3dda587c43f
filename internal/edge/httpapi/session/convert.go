package session

import (
	"cmp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/vault"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

func turnID(id run.ID) string { return "turn_" + strings.TrimPrefix(string(id), "run_") }

func sessionOf(s *session.Session) Session {
	out := Session{
		ID: string(s.ID), Type: "session", AgentID: string(s.Agent), AgentVersion: s.Version, Environment: s.Environment, Title: httpapi.OrNull(s.About.Title), Metadata: map[string]jsontext.Value{},
		Status: "idle", Events: s.Events, QueuedTurns: s.Queued, Budget: budgetOf(s.Budget), Vaults: httpapi.Each(s.Vaults, func(id vault.ID) string { return string(id) }), Webhook: httpapi.OrNull(s.Webhook.URL), Usage: usageOf(&s.Used),
		CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt,
	}
	out.Mounts = httpapi.Each(s.About.Mounts, mountOf)
	if out.Speaker = (SessionSpeaker{string(s.Agent), s.Version}); s.Speaker.Agent != "" {
		out.Speaker = SessionSpeaker{string(s.Speaker.Agent), s.Speaker.Version}
	}
	for key, value := range s.About.Metadata {
		out.Metadata[key] = jsontext.Value(value)
	}
	switch {
	case s.Archived():
		out.Status, out.ArchivedAt = "archived", &s.ArchivedAt
	case s.Run != "":
		out.Status = "running"
	case s.Waits > 0:
		out.Status = "requires_action"
	}
	return out
}

func turnOf(s *session.Session, state *run.State) SessionTurn {
	out := SessionTurn{
		ID: new(turnID(state.ID)), Type: "message", Role: "assistant", SessionID: string(s.ID), Status: string(state.End.Status), RequiresAction: []WaitingCall{},
		Usage: usageOf(&run.Spent{Usage: state.AllUsage(), Cost: state.Spent()}),
	}
	for _, it := range state.Output {
		if it.Message != nil {
			out.Content = model.Joined(it.Message.Parts)
		}
	}
	if state.End.Reason != run.Done || state.End.Message != "" {
		out.Error = &TurnError{string(state.End.Reason), state.End.Message}
	}
	if last := state.Evaluation(); last != nil {
		out.Evaluation = evaluationOf(s.ID, last)
	}
	for _, of := range state.Waits() {
		w := waitOf(s.ID, of)
		w.Arguments = &of.Arguments
		out.RequiresAction = append(out.RequiresAction, w)
	}
	return out
}

// waitingFor is the answer to an event after which other calls wait for one, too.
func waitingFor(s *session.Session, calls []session.Call) SessionTurn {
	out := SessionTurn{Type: "message", Role: "assistant", SessionID: string(s.ID), Status: string(run.RequiresAction)}
	for _, w := range calls {
		out.RequiresAction = append(out.RequiresAction, waitOf(s.ID, w.Wait))
	}
	return out
}

func waitOf(id session.ID, w run.Wait) WaitingCall {
	out := WaitingCall{ToolUseID: session.EventID(id, w.Of), Name: w.Tool, Needs: "tool_result", ThreadID: httpapi.OrNull(w.Thread)}
	if w.Approve {
		out.Needs = "tool_confirmation"
	}
	return out
}

func usageOf(s *run.Spent) TurnUsage {
	return TurnUsage{s.Usage.Input, s.Usage.Output, s.Cost.Dollars(), s.Usage.Estimated}
}

func eventOf(id session.ID, e *session.Event) SessionEvent {
	out := SessionEvent{ID: session.EventID(id, e.Seq), Type: string(e.Kind), CreatedAt: e.At, ItemID: httpapi.OrNull(e.Shown)}
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
	case e.Kind == run.ToldFile:
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

func (out *SessionEvent) thread(t *run.ToldThread) {
	if t.Text != "" {
		out.Content = &t.Text
	}
	if t.ID != "" {
		out.Thread = &EventThread{&t.ID, t.Member.Agent, t.Member.Version, t.Member.Name}
	}
	if out.Type == string(run.ToldTerminated) && t.Status != "" {
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

func (out *SessionEvent) status(id session.ID, st *run.ToldState) {
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
