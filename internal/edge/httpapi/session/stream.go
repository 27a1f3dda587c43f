package session

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

const (
	// lookEvery is how often a reader looks for what began in another process.
	lookEvery = time.Second
	readPage  = 100 // events that are read at a time
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
	return h.follow(c, s, after, "")
}

// streamThread is stream for a thread.
func (h *Handlers) streamThread(c *httpapi.Call) error {
	t, err := h.Thread(c)
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
	after, ok := EventSeq(of, last)
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

// follow sends events, to the end of a turn if there is one in until.
func (h *Handlers) follow(c *httpapi.Call, s *session.Session, after int64, until run.ID) error {
	r := h.reader(s, after, c.Bool("deltas"), plain{s.ID})
	r.until = until
	return h.serve(c, s.ID, r)
}

// Stream sends the events after one and those to come in a form, with pieces of items if
// deltas are wanted.
func (h *Handlers) Stream(c *httpapi.Call, s *session.Session, after int64, deltas bool, form Form) error {
	return h.serve(c, s.ID, h.reader(s, after, deltas, form))
}

// StreamThread is Stream for a thread, until it has ended.
func (h *Handlers) StreamThread(c *httpapi.Call, t *session.Thread, after int64, deltas bool, form Form) error {
	return h.serve(c, t.Session, &reader{h: h, of: ofThread{h.Store, t}, tenant: t.Tenant, id: session.ID(t.ID), known: t.Events, form: form, after: after, deltas: deltas})
}

func (h *Handlers) reader(s *session.Session, after int64, deltas bool, form Form) *reader {
	return &reader{h: h, of: ofSession{h.Store, s}, tenant: s.Tenant, id: s.ID, known: s.Events, form: form, after: after, deltas: deltas}
}

func (h *Handlers) serve(c *httpapi.Call, within session.ID, r *reader) error {
	ctx, stop := c.Living(c.Context())
	defer stop()
	news, leave := h.hub.join(within)
	defer leave()
	r.out = newSSE(c)
	defer r.out.end()
	err := r.read(ctx, news)
	if errors.Is(err, session.ErrNotFound) {
		err = r.last(true)
	}
	if err != nil {
		c.Log().DebugContext(ctx, "stream ended early", "session", within, "error", err)
		panic(http.ErrAbortHandler) // half a stream must not look like a whole one
	}
	return nil
}

// reader sends the events of a session or thread to one client: those on record, which the
// events that runs publish make it look for.
type reader struct {
	h      *Handlers
	of     source
	tenant tenant.ID
	id     session.ID // that events are named by; of a thread, its own
	known  int64      // Seq of the last event when the stream began
	out    *sse
	form   Form
	after  int64  // the client has this event and those before it
	until  run.ID // the turn after which it ends; "" for none
	deltas bool

	began    run.ID          // the last turn whose beginning was sent
	sent     map[string]bool // ids of its items whose events were
	due      run.ID          // the turn whose pieces are to come, although it may have ended
	followed run.ID          // the turn whose pieces come, or came
	pieces   bool            // they come
	items    map[int]string  // ids of items of that turn, by their index
	whole    map[string]bool // those of which all pieces have come
	over     bool
}

func (r *reader) read(ctx context.Context, news func() <-chan struct{}) error {
	for {
		next := news()
		now, over, err := r.of.look(ctx)
		if err != nil {
			return err
		}
		switch {
		case r.until != "" && r.followed == "":
			now = r.until // although it may have ended
		case r.due != "":
			now = r.due
		}
		if now != "" && now != r.followed {
			if err := r.turn(ctx, now); err != nil || r.over {
				return err
			}
			continue
		}
		if err := r.drain(ctx); err != nil || r.over {
			return err
		}
		if over {
			return r.last(false)
		}
		look := time.NewTimer(lookEvery)
		select {
		case <-next:
		case <-look.C:
		case <-ctx.Done():
		}
		look.Stop()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// turn sends the events of a turn that is under way as they come.
func (r *reader) turn(ctx context.Context, now run.ID) error {
	r.due, r.followed, r.pieces, r.items, r.whole = "", now, true, map[int]string{}, map[string]bool{}
	err := r.drain(ctx)
	if err == nil {
		// All pieces are for one who was told of the beginning, however far the turn is by now.
		err = r.h.Turns.Follow(ctx, r.tenant, now, now == r.until || now == r.began, func(events []run.Event) error { return r.live(ctx, events) })
	}
	r.pieces = false
	if err != nil {
		return err
	}
	return r.drain(ctx)
}

// drain sends what is on record, but for what is to come in pieces before.
func (r *reader) drain(ctx context.Context) error {
	for !r.over && r.due == "" {
		page, err := r.of.after(ctx, r.after, readPage)
		if err != nil {
			return err
		}
		for i := range page {
			e := &page[i]
			if r.deltas && r.pieces && e.Run == r.followed && e.Shown != "" && !r.whole[e.Shown] {
				return r.out.send()
			}
			if f := r.form.Event(e); f.Kind != "" {
				if err := r.out.put(EventID(r.id, e.Seq), f); err != nil {
					return err
				}
			}
			r.after = e.Seq
			if r.note(e); r.due != "" {
				return r.out.send()
			}
			if r.until != "" && e.Run == r.until && e.Status != nil && !e.Status.Running {
				r.over = true
				break
			}
		}
		if err := r.out.send(); err != nil || len(page) < readPage {
			return err
		}
	}
	return nil
}

// note notes what was sent of a turn. One that began after the stream is followed from its
// beginning, however far it is by then.
func (r *reader) note(e *session.Event) {
	switch {
	case e.Status != nil && e.Status.Running:
		r.began, r.sent = e.Run, map[string]bool{}
		if r.deltas && e.Run != r.followed && e.Seq > r.known {
			r.due = e.Run
		}
	case e.Shown != "" && e.Run == r.began:
		r.sent[e.Shown] = true
	}
}

// last ends the stream of a session that is archived or deleted, or of a thread.
func (r *reader) last(deleted bool) error {
	if f := r.form.Over(deleted); f.Kind != "" {
		if err := r.out.put("", f); err != nil {
			return err
		}
	}
	return r.out.send()
}

// live sends deltas, and looks for what is on record: events are published after that.
func (r *reader) live(ctx context.Context, events []run.Event) error {
	for i := range events {
		switch e := &events[i]; {
		case e.Delta == nil:
			switch {
			case e.Began != nil:
				r.items[e.Began.Index] = e.Began.Item.ID
			case e.Done != nil:
				r.whole[e.Done.Item.ID] = true
			}
			if err := r.drain(ctx); err != nil || r.over {
				return err
			}
		case r.deltas && !r.sent[r.items[e.Delta.Index]]:
			for _, f := range r.form.Delta(r.followed, r.items[e.Delta.Index], e.Delta) {
				if err := r.out.put("", f); err != nil {
					return err
				}
			}
		}
	}
	return r.out.send()
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
