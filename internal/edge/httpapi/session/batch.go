package session

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/edge/httpapi/response"
)

// Batch is what a client says at once. It is taken as a whole, or not at all: an interrupt, or
// answers to calls, and messages after them.
type Batch struct {
	Interrupt bool
	Answers   []Answer
	Messages  jsontext.Value // items, as the input of a response; empty for none
	Outcome   *Outcome       // that the last of Messages defines; nil for none
}

// Answer is what a client says to a call that waits for it: whether it may be made, or what it
// came to.
type Answer struct {
	Of      string // id of the event of the call
	Thread  string // in which the call was made; "" for what Of says
	Approve *bool  // nil for what it came to
	Reason  string // why it may not be made
	Parts   []model.Part
	Failed  bool
}

// Taken is what became of a batch.
type Taken struct {
	Interrupted run.ID     // the turn whose end is asked for; "" for a wait that ended
	Told        []run.Told // what the session was told by then: answers, the end of a wait
	Turn        run.ID     // the one that the messages are in; "" for none
	Queued      bool       // it begins later
}

// Take takes a batch for a session of the caller.
func (h *Handlers) Take(c *httpapi.Call, s *session.Session, b *Batch) (out *Taken, err error) {
	switch {
	case s.Archived():
		return nil, session.ErrArchived
	case s.Events >= session.MaxEvents:
		return nil, tooLong(s)
	case len(b.Answers) > 0 && s.Run != "":
		if s, err = h.settled(c, s, b.Answers); err != nil {
			return nil, err
		}
	}
	if b.Interrupt && len(b.Messages) == 0 {
		return h.restart(c, s, nil)
	}
	t, err := h.plan(c, s)
	if err != nil {
		return nil, err
	}
	t.In.Input = b.Messages
	if b.Outcome != nil {
		t.Outcome, t.Check = &b.Outcome.Outcome, b.Outcome.Command
	}
	switch {
	case len(b.Answers) > 0:
		return h.resume(c, s, b, t)
	case b.Interrupt:
		return h.restart(c, s, t)
	case s.Waits > 0:
		return nil, session.ErrWaits
	}
	return h.converse(c, s, t)
}

// converse has a turn begin, now or after those before it.
func (h *Handlers) converse(c *httpapi.Call, s *session.Session, t *response.Turn) (*Taken, error) {
	r, q, err := h.Turns.Prepare(c, t)
	if err != nil {
		return nil, err
	}
	return h.put(c, s, r, q)
}

func (h *Handlers) put(c *httpapi.Call, s *session.Session, r *run.Run, q *run.Request) (*Taken, error) {
	out := &Taken{Turn: r.ID, Queued: s.Run != "" || s.Queued > 0 && len(q.Turn.Answers) == 0}
	if out.Queued {
		if err := h.Store.Enqueue(c.Context(), &session.Queued{Run: *r, Request: *q, Speaker: s.Speaker}); err != nil {
			return nil, err
		}
		h.Queued()
		return out, nil
	}
	if err := h.Turns.Start(c, r, q); err != nil {
		return nil, err
	}
	return out, nil
}

// resume answers calls. A turn begins when none is left that waits.
func (h *Handlers) resume(c *httpapi.Call, s *session.Session, b *Batch, t *response.Turn) (*Taken, error) {
	left, err := h.settle(c, s, b.Answers, t)
	if err != nil {
		return nil, err
	}
	told := run.TellAnswers(s.Events+1, time.Now().UTC(), t.Answers)
	if len(left) == 0 {
		out, err := h.converse(c, s, t)
		if err == nil {
			out.Told = told
		}
		return out, err
	}
	if len(b.Messages) > 0 {
		return nil, session.ErrWaits
	}
	if err := h.Store.Answer(c.Context(), s, t.Answers, false); err != nil {
		return nil, err
	}
	return &Taken{Told: told}, nil
}

// restart ends what is under way, and has the messages that came with that begin a turn, if
// there are any.
func (h *Handlers) restart(c *httpapi.Call, s *session.Session, t *response.Turn) (out *Taken, err error) {
	out = &Taken{Interrupted: s.Run}
	var r *run.Run
	var q *run.Request
	if t != nil {
		if r, q, err = h.Turns.Prepare(c, t); err != nil {
			return nil, err
		}
	}
	told := int64(0)
	if s.Run != "" {
		err = h.Turns.Interrupt(c.Context(), s)
	} else {
		told, err = h.giveUp(c, s)
	}
	if err == nil && r != nil {
		after := *s
		after.Events, after.Waits = s.Events+told, 0
		if q.Turn.Until = after.Events; s.Run == "" {
			if q.Turn.After, err = h.Store.Window(c.Context(), s.ID, after.Events); err != nil {
				return nil, err
			}
		}
		var begun *Taken
		if begun, err = h.put(c, &after, r, q); err == nil {
			out.Turn, out.Queued = begun.Turn, begun.Queued
		}
	}
	if told > 0 {
		out.Told = []run.Told{{Kind: run.ToldInterrupt, Seq: s.Events + told - 1, At: time.Now().UTC()}}
	}
	return out, err
}

// settled waits for the end of the turn whose calls are answered: a client may know of a call
// before the turn has come to its end.
func (h *Handlers) settled(c *httpapi.Call, s *session.Session, answers []Answer) (*session.Session, error) {
	for i := range answers {
		if _, own := EventSeq(s.ID, answers[i].Of); !own {
			continue // of a thread: the end of the turn says whether it waits
		}
		e, err := h.call(c, s, nil, &answers[i])
		if err != nil {
			return nil, err
		}
		if e.Run != s.Run {
			return nil, session.ErrAnswered
		}
	}
	ctx, stop := c.Living(c.Context())
	defer stop()
	if err := h.Turns.Follow(ctx, s.Tenant, s.Run, true, func([]run.Event) error { return nil }); err != nil {
		return nil, err
	}
	now, err := h.Store.Get(ctx, s.Tenant, s.ID)
	if err == nil && now.Run != "" {
		err = session.ErrBusy
	}
	return now, err
}

// call finds the event of a call that is answered. One of those that wait and were made in threads
// may be named by its event in the thread, too.
func (h *Handlers) call(c *httpapi.Call, s *session.Session, waiting []session.Call, a *Answer) (*session.Event, error) {
	seq, ok := EventSeq(s.ID, a.Of)
	for i := range waiting {
		if w := &waiting[i]; w.Thread != "" && EventID(session.ID(w.Thread), w.In) == a.Of {
			seq, ok = w.Of, true
		}
	}
	if ok && seq <= s.Events {
		found, err := h.Store.After(c.Context(), s.Tenant, s.ID, seq-1, 1)
		if err != nil {
			return nil, err
		}
		if len(found) > 0 && found[0].Kind == run.ToldCall {
			if of := found[0].Thread; a.Thread != "" && (of == nil || of.ID != a.Thread) {
				return nil, httpapi.Invalid("session_thread_id is not the thread that made the call: leave it out")
			}
			return &found[0], nil
		}
	}
	return nil, fault.New(fault.NotFound, "tool_use_id names no call of this session")
}

func tooLong(s *session.Session) error {
	return fault.New(fault.Conflict, "the session has %d events, which is the most that one may have: begin another one", s.Events)
}
