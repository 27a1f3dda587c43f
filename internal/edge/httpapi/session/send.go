package session

import (
	"net/http"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/agent/conversation"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/edge/httpapi/sessionstream"
)

// send takes a message, or an answer to a call.
func (h *Handlers) send(c *httpapi.Call, in *NewSessionEvent) error {
	s, err := h.find(c)
	if err != nil {
		return err
	}
	b, err := in.batch()
	if err != nil {
		return err
	}
	var stream *sessionstream.Turn
	if !httpapi.PrefersAsync(c.R.Header) && httpapi.Accepts(c.R.Header, httpapi.EventStream) && b.Starts(s) {
		if stream, err = h.Streams.Open(c, s); err != nil {
			return err
		}
		defer stream.Close()
	}
	taken, err := h.Service.Take(c.Context(), c.Starter(), s, b)
	switch {
	case err != nil:
		return err
	case taken.Turn == "":
		return httpapi.WriteJSON(c.W, http.StatusOK, waitingFor(s, taken.Waits))
	case taken.Queued:
		return accepted(c, s, taken.Turn, run.Queued)
	case httpapi.PrefersAsync(c.R.Header):
		c.W.Header().Set("Preference-Applied", "respond-async")
		return accepted(c, s, taken.Turn, run.InProgress)
	case stream != nil:
		return stream.Follow(s.Events, taken.Turn, c.Bool("deltas"), plain{s.ID})
	}
	state, err := h.Service.Wait(c.Context(), taken)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(c.W, http.StatusOK, turnOf(s, state))
}

// accepted answers before the end of a turn.
func accepted(c *httpapi.Call, s *session.Session, turn run.ID, status run.Status) error {
	return httpapi.WriteJSON(c.W, http.StatusAccepted, SessionTurn{
		ID: new(turnID(turn)), Type: "message", Role: "assistant", SessionID: string(s.ID), Status: string(status), RequiresAction: []WaitingCall{},
	})
}

// batch reads an event.
func (in *NewSessionEvent) batch() (b *conversation.Batch, err error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	b = &conversation.Batch{Queue: in.Queue != nil && *in.Queue}
	switch *in.Type {
	case "message":
		b.Messages, err = in.message(*in.Content)
	case string(run.EventOutcome):
		if b.Outcome, err = in.outcome(); err == nil {
			b.Messages, err = in.message(b.Outcome.Task())
		}
	default:
		a := conversation.Answer{Of: *in.ToolUseID, Approve: in.Approve, Failed: in.IsError != nil && *in.IsError}
		if in.Reason != nil {
			a.Reason = *in.Reason
		}
		if in.Content != nil {
			a.Parts = []model.Part{{Kind: model.PartText, Text: *in.Content}}
		}
		b.Answers = []conversation.Answer{a}
	}
	return b, err
}

// check refuses what an event of its type cannot have.
func (in *NewSessionEvent) check() error {
	const outcome = string(run.EventOutcome)
	fields := []struct {
		name  string
		given bool
		of    []string
	}{
		{"role", in.Role != nil, []string{"message"}},
		{"content", in.Content != nil, []string{"message", "tool_result"}},
		{"tool_use_id", in.ToolUseID != nil, []string{"tool_result", "tool_confirmation"}},
		{"files", in.Files != nil, []string{"message", outcome}},
		{"files_base64", in.FilesBase64 != nil, []string{"message", outcome}},
		{"queue", in.Queue != nil, []string{"message", outcome}},
		{"approve", in.Approve != nil, []string{"tool_confirmation"}},
		{"reason", in.Reason != nil, []string{"tool_confirmation"}},
		{"is_error", in.IsError != nil, []string{"tool_result"}},
		{"description", in.Description != nil, []string{outcome}},
		{"rubric", in.Rubric != nil, []string{outcome}},
		{"check", in.Check != nil, []string{outcome}},
		{"max_iterations", in.MaxIterations != nil, []string{outcome}},
		{"model", in.Model != nil, []string{outcome}},
	}
	optional := []string{"role", "files", "files_base64", "queue", "reason", "is_error", "rubric", "check", "max_iterations", "model"}
	for _, f := range fields {
		switch of := slices.Contains(f.of, *in.Type); {
		case f.given && !of:
			return httpapi.Invalid("%s has no meaning in an event of the type %s", f.name, *in.Type)
		case of && !f.given && !slices.Contains(optional, f.name):
			return httpapi.Invalid("%s is required in an event of the type %s", f.name, *in.Type)
		}
	}
	switch {
	case *in.Type == "message" && (strings.TrimSpace(*in.Content) == "" || len(*in.Content) > session.MaxMessage):
		return httpapi.Invalid("content must be a text of 1 to %d bytes", session.MaxMessage)
	case in.Content != nil && len(*in.Content) > session.MaxMessage:
		return httpapi.Invalid("content must be a text of at most %d bytes", session.MaxMessage)
	case in.Reason != nil && len(*in.Reason) > session.MaxReason:
		return httpapi.Invalid("reason must be a text of at most %d bytes", session.MaxReason)
	case in.Reason != nil && *in.Approve:
		return httpapi.Invalid("reason requires approve false")
	}
	return nil
}
