// Package sessionstream streams the events of sessions and threads to HTTP clients, in the form of each API.
//
// However many clients follow a session, one feed of this process reads it.
package sessionstream

import (
	"errors"
	"net/http"

	"github.com/atoll-run/atoll/internal/agent/conversation"
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

// Streams streams events.
type Streams struct {
	Service *conversation.Service
	// News says when a session has changed; nil where no other process changes any, and sessions are
	// looked at every second.
	News run.News

	hub hub
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
	// Cached says that every reader in this form gets the same frames, so that a feed keeps them.
	Cached() bool
}

// Frame is an event of a stream.
type Frame struct {
	Kind string
	Body any
}

// Session sends the events after one and those to come in a form, with pieces of items if
// deltas are wanted.
func (h *Streams) Session(c *httpapi.Call, s *session.Session, after int64, deltas bool, form Form) error {
	return h.serve(c, s.ID, ofSession{h.Service.Store, s}, place{s.Tenant, s.ID, s.Events}, &reader{form: form, after: after, deltas: deltas})
}

// Thread is Session for a thread, until it has ended.
func (h *Streams) Thread(c *httpapi.Call, t *session.Thread, after int64, deltas bool, form Form) error {
	return h.serve(c, t.Session, ofThread{h.Service.Store, t}, place{t.Tenant, session.ID(t.ID), t.Events}, &reader{form: form, after: after, deltas: deltas})
}

// serve sends what a reader gets.
func (h *Streams) serve(c *httpapi.Call, within session.ID, of source, at place, r *reader) error {
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
	return h.pass(c, of, r)
}

// pass sends the events of a reader that has joined.
func (h *Streams) pass(c *httpapi.Call, of source, r *reader) error {
	ctx, stop := c.Living(c.Context())
	defer stop()
	r.of, r.id, r.out = of, r.feed.at.id, newSSE(c)
	defer r.out.end()
	err := r.read(ctx)
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

// Turn is the stream of a turn that is about to start.
type Turn struct {
	h   *Streams
	c   *httpapi.Call
	of  source
	sub *subscriber
	end func()
}

// Open joins the readers of a session before a turn starts, so that each piece of it comes.
func (h *Streams) Open(c *httpapi.Call, s *session.Session) (t *Turn, err error) {
	t = &Turn{h: h, c: c, of: ofSession{h.Service.Store, s}}
	if t.end, err = c.OpenStream(); err != nil {
		return nil, err
	}
	if t.sub, err = h.join(s.ID, t.of, place{s.Tenant, s.ID, s.Events}); err != nil {
		t.end()
		return nil, err
	}
	return t, nil
}

// Close leaves the readers.
func (t *Turn) Close() {
	t.h.leave(t.sub)
	t.end()
}

// Follow sends the events of the session after one, to the end of a turn.
func (t *Turn) Follow(after int64, turn run.ID, deltas bool, form Form) error {
	return t.h.pass(t.c, t.of, &reader{subscriber: t.sub, form: form, after: after, until: turn, deltas: deltas})
}
