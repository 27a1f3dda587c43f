// Package sessionstream streams the events of sessions and threads to HTTP clients, in the form of each API.
package sessionstream

import (
	"errors"
	"net/http"

	"github.com/atoll-run/atoll/internal/agent/feed"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Streams streams events.
type Streams struct{ Feeds *feed.Feeds }

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
	t, err := h.Open(c, s)
	if err != nil {
		return err
	}
	defer t.Close()
	return t.send(feed.Request{After: after, Deltas: deltas}, form)
}

// Thread is Session for a thread, until it has ended.
func (h *Streams) Thread(c *httpapi.Call, t *session.Thread, after int64, deltas bool, form Form) error {
	of, err := open(c, session.ID(t.ID), func() (*feed.Reader, error) { return h.Feeds.Thread(t) })
	if err != nil {
		return err
	}
	defer of.Close()
	return of.send(feed.Request{After: after, Deltas: deltas}, form)
}

// Turn is the stream of a session, such as of a turn that is about to start, or of a thread.
type Turn struct {
	c      *httpapi.Call
	id     session.ID
	reader *feed.Reader
	end    func()
}

// Open joins the readers of a session before a turn starts, so that each piece of it comes.
func (h *Streams) Open(c *httpapi.Call, s *session.Session) (*Turn, error) {
	return open(c, s.ID, func() (*feed.Reader, error) { return h.Feeds.Session(s) })
}

func open(c *httpapi.Call, id session.ID, join func() (*feed.Reader, error)) (t *Turn, err error) {
	t = &Turn{c: c, id: id}
	if t.end, err = c.OpenStream(); err != nil {
		return nil, err
	}
	if t.reader, err = join(); err != nil {
		t.end()
		return nil, err
	}
	return t, nil
}

// Close leaves the readers.
func (t *Turn) Close() {
	t.reader.Close()
	t.end()
}

// Follow sends the events of the session after one, to the end of a turn.
func (t *Turn) Follow(after int64, turn run.ID, deltas bool, form Form) error {
	return t.send(feed.Request{After: after, Until: turn, Deltas: deltas}, form)
}

// send sends what the reader reads.
func (t *Turn) send(q feed.Request, form Form) error {
	ctx, stop := t.c.Living(t.c.Context())
	defer stop()
	out := newSSE(t.c, form)
	defer out.end()
	err := t.reader.Read(ctx, q, out)
	switch {
	case errors.Is(err, feed.ErrOver):
		err = out.last(false)
	case errors.Is(err, session.ErrNotFound):
		err = out.last(true)
	}
	if err != nil {
		t.c.Log().DebugContext(ctx, "stream ended early", "session", t.id, "error", err)
		panic(http.ErrAbortHandler) // half a stream must not look like a whole one
	}
	return nil
}
