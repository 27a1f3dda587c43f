package session

import (
	"slices"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/edge/httpapi/sessionstream"
)

// stream answers with the events after the one that the client has, and those to come.
func (h *Handlers) stream(c *httpapi.Call) error {
	s, err := h.find(c)
	if err != nil {
		return err
	}
	after, err := lastOf(c, s.ID, s.Events)
	if err != nil {
		return err
	}
	return h.Streams.Session(c, s, after, c.Bool("deltas"), plain{s.ID})
}

// streamThread is stream for a thread.
func (h *Handlers) streamThread(c *httpapi.Call) error {
	t, err := h.findThread(c)
	if err != nil {
		return err
	}
	after, err := lastOf(c, session.ID(t.ID), t.Events)
	if err != nil {
		return err
	}
	return h.Streams.Thread(c, t, after, c.Bool("deltas"), plain{session.ID(t.ID)})
}

// lastOf is the place of the last event that the client has, of a session or a thread.
func lastOf(c *httpapi.Call, of session.ID, events int64) (after int64, err error) {
	last := c.R.Header.Get("Last-Event-ID")
	if c.Has("after") {
		last = c.Text("after")
	}
	if last == "" {
		return 0, nil
	}
	after, ok := session.EventSeq(of, last)
	if !ok || after > events {
		return 0, httpapi.Invalid("Last-Event-ID and after must be the id of an event of this stream")
	}
	return after, nil
}

// plain is the form of the contract.
type plain struct{ of session.ID }

func (p plain) Event(e *session.Event) sessionstream.Frame {
	if !slices.Contains(run.EventKinds(), e.Kind) {
		return sessionstream.Frame{}
	}
	return sessionstream.Frame{Kind: string(e.Kind), Body: eventOf(p.of, e)}
}

func (plain) Delta(turn run.ID, item string, d *run.Delta) []sessionstream.Frame {
	out := deltaOf(d)
	out.TurnID, out.ItemID = turnID(turn), item
	return []sessionstream.Frame{{Kind: out.Type, Body: out}}
}

func (plain) Over(bool) sessionstream.Frame { return sessionstream.Frame{} }

// Cached implements sessionstream.Form.
func (plain) Cached() bool { return true }

// deltaOf renders a piece of an item that is in progress.
func deltaOf(d *run.Delta) SessionDelta {
	out := SessionDelta{Type: "delta", Of: "message", Text: d.Text}
	switch d.Kind {
	case model.Thinking, model.Summarized:
		out.Of = "thinking"
	case model.SummaryEnded:
		out.Of, out.Text = "thinking", "\n"
	case model.CallArguments:
		out.Of = "tool_use"
	}
	return out
}
