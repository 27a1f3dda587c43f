package session

import (
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
