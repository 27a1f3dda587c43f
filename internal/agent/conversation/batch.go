package conversation

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/agent/admission"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
)

// Batch is one request of a client: an interrupt or answers to calls, followed by messages. The
// Service applies all of it or none.
type Batch struct {
	Interrupt bool
	Answers   []Answer
	Messages  []model.Item
	Outcome   *Outcome // that the last of Messages defines; nil for none
	// Queue lets messages wait for earlier turns, and answers wait for the end of the turn that
	// asked. Without it, a busy session rejects the batch.
	Queue bool
}

// Answer is a client's answer to a waiting call: a decision, or the result of the call.
type Answer struct {
	Of      string // id of the event of the call
	Thread  string // that made the call; "" for the one that Of names
	Approve *bool  // nil for a result
	Reason  string // of a rejection
	Parts   []model.Part
	Failed  bool
}

// Taken is the result of a batch.
type Taken struct {
	Interrupted run.ID             // the turn that is ending; "" if only a wait ended
	Events      []run.SessionEvent // new events of the session: answers, the end of a wait
	Turn        run.ID             // with the messages; "" for none
	Queued      bool               // Turn starts later
	Waits       []session.Call     // other calls that wait for answers, so that no turn has started

	run  *run.Run
	done <-chan struct{} // closed when this process no longer drives Turn
}

// busy reports whether a session queues messages, or rejects them.
func busy(of *session.Session) bool { return of.Run != "" || of.Queued > 0 && of.Waits == 0 }

// Starts reports whether a session starts a turn with b now, unless Take rejects b.
func (b *Batch) Starts(of *session.Session) bool {
	return !of.Archived() && !busy(of) && of.Waits <= len(b.Answers)
}

// Take applies a batch to a session of the caller.
func (s *Service) Take(ctx context.Context, caller *admission.Caller, of *session.Session, b *Batch) (*Taken, error) {
	switch {
	case of.Archived():
		return nil, session.ErrArchived
	case busy(of) && !b.Queue:
		return nil, session.ErrBusy
	case of.Events >= session.MaxEvents:
		return nil, fault.New(fault.Conflict, "the session has %d events, which is the most that one may have: begin another one", of.Events)
	}
	if err := b.allowed(caller); err != nil {
		return nil, err
	}
	if len(b.Answers) > 0 && of.Run != "" {
		var err error
		if of, err = s.settled(ctx, of, b.Answers); err != nil {
			return nil, err
		}
	}
	if b.Interrupt && len(b.Messages) == 0 {
		return s.restart(ctx, caller, of, nil)
	}
	t, err := s.plan(ctx, caller, of)
	if err != nil {
		return nil, err
	}
	t.input = b.Messages
	if b.Outcome != nil {
		t.outcome, t.check = &b.Outcome.Outcome, b.Outcome.Command
	}
	switch {
	case len(b.Answers) > 0:
		return s.resume(ctx, of, b, t)
	case b.Interrupt:
		return s.restart(ctx, caller, of, t)
	case of.Waits > 0:
		return nil, session.ErrWaits
	}
	return s.converse(ctx, of, t)
}

// allowed rejects what the caller's token may not do.
func (b *Batch) allowed(caller *admission.Caller) error {
	for i := range b.Answers {
		if b.Answers[i].Approve == nil {
			continue
		}
		if err := caller.MayConfirm(); err != nil {
			return err
		}
	}
	if b.Outcome == nil {
		return nil
	}
	return caller.MayDefineOutcome(b.Outcome.Command != nil)
}

// converse starts a turn, now or after those before it.
func (s *Service) converse(ctx context.Context, of *session.Session, t *turn) (*Taken, error) {
	r, q, err := s.prepare(ctx, t)
	if err != nil {
		return nil, err
	}
	return s.put(ctx, of, r, q)
}

// put starts or queues a turn.
func (s *Service) put(ctx context.Context, of *session.Session, r *run.Run, q *run.Request) (out *Taken, err error) {
	out = &Taken{Turn: r.ID, run: r, Queued: of.Run != "" || of.Queued > 0 && len(q.Turn.Answers) == 0}
	if !out.Queued {
		out.done, err = s.Runs.Begin(ctx, r, q, s.MaxUnderWay, nil)
		return out, err
	}
	if err := s.Store.Enqueue(ctx, &session.Queued{Run: *r, Request: *q, Speaker: of.Speaker}); err != nil {
		return nil, err
	}
	s.Wake()
	return out, nil
}

// resume answers calls. A turn starts when no other call waits.
func (s *Service) resume(ctx context.Context, of *session.Session, b *Batch, t *turn) (*Taken, error) {
	left, err := s.settle(ctx, of, b.Answers, t)
	if err != nil {
		return nil, err
	}
	events := run.AnswerEvents(of.Events+1, time.Now().UTC(), t.answers)
	if len(left) == 0 {
		out, err := s.converse(ctx, of, t)
		if err == nil {
			out.Events = events
		}
		return out, err
	}
	if len(b.Messages) > 0 {
		return nil, session.ErrWaits
	}
	if err := s.Store.Answer(ctx, of, t.answers, false); err != nil {
		return nil, err
	}
	return &Taken{Events: events, Waits: left}, nil
}

// restart ends the turn or the wait under way, and starts t afterwards; nil for no turn.
func (s *Service) restart(ctx context.Context, caller *admission.Caller, of *session.Session, t *turn) (out *Taken, err error) {
	out = &Taken{Interrupted: of.Run}
	var r *run.Run
	var q *run.Request
	if t != nil {
		if r, q, err = s.prepare(ctx, t); err != nil {
			return nil, err
		}
	}
	added, err := s.stop(ctx, caller.Principal, of)
	if err == nil && r != nil {
		after := *of
		after.Events, after.Waits = of.Events+added, 0
		if q.Turn.Until = after.Events; of.Run == "" {
			if q.Turn.After, err = s.Store.Window(ctx, of.ID, after.Events); err != nil {
				return nil, err
			}
		}
		var begun *Taken
		if begun, err = s.put(ctx, &after, r, q); err == nil {
			begun.Interrupted = out.Interrupted
			out = begun
		}
	}
	if added > 0 {
		out.Events = []run.SessionEvent{{Kind: run.EventInterrupt, Seq: of.Events + added - 1, At: time.Now().UTC()}}
	}
	return out, err
}

// settled waits for the end of the turn whose calls are answered: a client may know of a call
// before the turn has come to its end.
func (s *Service) settled(ctx context.Context, of *session.Session, answers []Answer) (*session.Session, error) {
	for i := range answers {
		if _, own := session.EventSeq(of.ID, answers[i].Of); !own {
			continue // of a thread: the end of the turn says whether it waits
		}
		e, err := s.call(ctx, of, nil, &answers[i])
		if err != nil {
			return nil, err
		}
		if e.Run != of.Run {
			return nil, session.ErrAnswered
		}
	}
	if err := s.Follow(ctx, of.Tenant, of.Run, 0, func([]run.Event) error { return nil }); err != nil {
		return nil, err
	}
	now, err := s.Store.Get(ctx, of.Tenant, of.ID)
	if err == nil && now.Run != "" {
		err = session.ErrBusy
	}
	return now, err
}

// Wait returns the state of a started turn at its end.
func (s *Service) Wait(ctx context.Context, t *Taken) (*run.State, error) {
	select {
	case <-t.done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := s.Runs.Wait(ctx, t.run.Tenant, t.run.ID); err != nil {
		return nil, err
	}
	return s.Runs.State(ctx, t.run.ID)
}
