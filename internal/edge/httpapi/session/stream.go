package session

import (
	"errors"
	"net/http"
	"slices"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

const (
	readPage  = 100 // events that are read at a time, at most
	firstPage = 8   // events that a reader reads before it knows how large they are
	// maxHeld is about how many bytes are held for a client that does not read.
	maxHeld = 64 << 10
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
	return h.Stream(c, s, after, c.Bool("deltas"), plain{s.ID})
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
	return h.StreamThread(c, t, after, c.Bool("deltas"), plain{session.ID(t.ID)})
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

// Form is how one stream writes what happens in a session.
type Form interface {
	// Event renders an event; one without a Kind is not sent.
	Event(e *session.Event) Frame
	// Delta renders a piece of an item of a turn's output.
	Delta(turn run.ID, item string, d *run.Delta) []Frame
	// Over is what comes last when the session was archived or the thread has ended, or when the
	// session was deleted.
	Over(deleted bool) Frame
}

// Frame is an event of a stream.
type Frame struct {
	Kind string
	Body any
}

// plain is the form of the contract.
type plain struct{ of session.ID }

func (p plain) Event(e *session.Event) Frame {
	if !slices.Contains(kinds, e.Kind) {
		return Frame{}
	}
	return Frame{string(e.Kind), eventOf(p.of, e)}
}

func (plain) Delta(turn run.ID, item string, d *run.Delta) []Frame {
	out := deltaOf(d)
	out.TurnID, out.ItemID = turnID(turn), item
	return []Frame{{out.Type, out}}
}

func (plain) Over(bool) Frame { return Frame{} }

// Stream sends the events after one and those to come in a form, with pieces of items if
// deltas are wanted.
func (h *Handlers) Stream(c *httpapi.Call, s *session.Session, after int64, deltas bool, form Form) error {
	return h.serve(c, s.ID, ofSession{h.Service.Store, s}, place{s.Tenant, s.ID, s.Events}, &reader{form: form, after: after, deltas: deltas})
}

// StreamThread is Stream for a thread, until it has ended.
func (h *Handlers) StreamThread(c *httpapi.Call, t *session.Thread, after int64, deltas bool, form Form) error {
	return h.serve(c, t.Session, ofThread{h.Service.Store, t}, place{t.Tenant, session.ID(t.ID), t.Events}, &reader{form: form, after: after, deltas: deltas})
}

// serve sends what a reader gets.
func (h *Handlers) serve(c *httpapi.Call, within session.ID, of source, at place, r *reader) error {
	end, err := c.OpenStream()
	if err != nil {
		return err
	}
	defer end()
	r.subscriber, err = h.join(within, of, at)
	if err != nil {
		return err
	}
	defer h.leave(r.subscriber)
	return h.pass(c, of, r, false)
}

// pass sends what a reader that has joined gets. early is for one that joined before its turn began.
func (h *Handlers) pass(c *httpapi.Call, of source, r *reader, early bool) error {
	ctx, stop := c.Living(c.Context())
	defer stop()
	r.of, r.id, r.out = of, r.feed.at.id, newSSE(c)
	defer r.out.end()
	err := r.read(ctx, early)
	switch {
	case errors.Is(err, errOver):
		err = r.last(false)
	case errors.Is(err, session.ErrNotFound):
		err = r.last(true)
	}
	if err != nil {
		c.Log().DebugContext(ctx, "stream ended early", "session", r.id, "error", err)
		panic(http.ErrAbortHandler) // half a stream must not look like a whole one
	}
	return nil
}

// turnStream is the stream of a turn that is about to begin.
type turnStream struct {
	h   *Handlers
	c   *httpapi.Call
	of  source
	sub *subscriber
	end func()
}

// openTurn joins the readers of a session before a turn begins, so that each piece of it comes. It
// is nil if the client wants no stream.
func (h *Handlers) openTurn(c *httpapi.Call, s *session.Session) (t *turnStream, err error) {
	if httpapi.PrefersAsync(c.R.Header) || !httpapi.Accepts(c.R.Header, httpapi.EventStream) {
		return nil, nil
	}
	t = &turnStream{h: h, c: c, of: ofSession{h.Service.Store, s}}
	if t.end, err = c.OpenStream(); err != nil {
		return nil, err
	}
	if t.sub, err = h.join(s.ID, t.of, place{s.Tenant, s.ID, s.Events}); err != nil {
		t.end()
		return nil, err
	}
	return t, nil
}

// close is for every turnStream, nil ones too.
func (t *turnStream) close() {
	if t != nil {
		t.h.leave(t.sub)
		t.end()
	}
}

// follow sends the events of a session after one, to the end of a turn.
func (t *turnStream) follow(after int64, turn run.ID) error {
	r := &reader{subscriber: t.sub, form: plain{t.sub.feed.at.id}, after: after, until: turn, deltas: t.c.Bool("deltas")}
	return t.h.pass(t.c, t.of, r, true)
}

// deltaOf renders a piece of an item that is under way.
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
