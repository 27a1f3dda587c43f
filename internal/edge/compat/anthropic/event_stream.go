package anthropic

import (
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/edge/httpapi/sessionstream"
)

// previews are the types of events that can be seen while they come.
var previews = []string{"agent.message", "agent.thinking"}

// stream is how one stream of a session is written.
type stream struct {
	of    session.ID
	want  []string        // of previews
	begun map[string]bool // ids of events whose previews are open, or were
}

func (s *stream) Event(e *session.Event) sessionstream.Frame {
	out := eventOf(s.of, e)
	return sessionstream.Frame{Kind: out.Type, Body: out}
}

// Delta opens the preview of an event with its first piece. Thinking is no more than begun.
func (s *stream) Delta(_ run.ID, item string, d *run.Delta) (out []sessionstream.Frame) {
	kind := "agent.message"
	switch d.Kind {
	case model.Said, model.Refused:
	case model.Thinking, model.Summarized, model.SummaryEnded:
		kind = "agent.thinking"
	default:
		return nil
	}
	if !slices.Contains(s.want, kind) {
		return nil
	}
	id := shownID(item)
	if !s.begun[id] {
		s.begun[id] = true
		out = append(out, sessionstream.Frame{Kind: "event_start", Body: Start{"event_start", Preview{id, kind}}})
	}
	if kind == "agent.message" {
		out = append(out, sessionstream.Frame{Kind: "event_delta", Body: Delta{"event_delta", id, Content{Type: "content_delta", Content: Block{Type: "text", Text: &d.Text}}}})
	}
	return out
}

func (s *stream) Over(deleted bool) sessionstream.Frame {
	now := time.Now().UTC()
	out := Event{ID: "sevt_" + strings.TrimPrefix(string(s.of), "sess_") + "_end", Type: "session.status_terminated", ProcessedAt: &now}
	if deleted {
		out.Type = "session.deleted"
	}
	return sessionstream.Frame{Kind: out.Type, Body: out}
}

// Cached implements sessionstream.Form: clients choose their deltas.
func (*stream) Cached() bool { return false }
