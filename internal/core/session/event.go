package session

import (
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/approval"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
)

// Event is an event of a session. Events are immutable and keep their order.
type Event struct {
	Run run.ID // the turn
	run.SessionEvent
}

// TreeEvent is an event of a session or one of its threads.
type TreeEvent struct {
	Event
	Thread string // "" for the session's own
}

// EventFilter selects events.
type EventFilter struct {
	agent.Page
	// Kinds and Sorts select events; all if both are empty.
	Kinds []run.EventKind
	Sorts []run.Sort
	Run   run.ID // "" for all
	Span
	Last bool // newest first
}

// Span is the time range [From, Until); zero for no bound.
type Span struct{ From, Until time.Time }

// Limits of the conversation that a turn begins with. The events keep earlier messages, but the
// model does not see them.
const (
	MaxTurnItems = 2000
	MaxTurnBytes = 8 << 20 // of events as stored
)

// Call is a call of the last turn that waits for the client.
type Call struct {
	run.Wait
	// Approved says that the client approved the call and still has to answer others. For a call in
	// a thread it says that the client has answered.
	Approved bool
}

// Expire returns the answers to calls that the client did not answer before until.
func Expire(calls []Call, until time.Time) (answers []run.Answer) {
	no := approval.NoAnswer(until)
	why := "This call has expired: " + no + ", so it was not made."
	for _, c := range calls {
		if c.Thread != "" && c.Approved {
			continue
		}
		a := run.Answer{
			Of: c.Of, Call: c.Call, Tool: c.Tool, Expired: true, Thread: c.Thread, Member: c.Member, In: c.In,
			Result: &model.Result{CallID: c.Call, Failed: true, Parts: []model.Part{{Kind: model.PartText, Text: why}}},
		}
		if c.Approve {
			a.Decision = &run.Decision{Reason: no}
		}
		answers = append(answers, a)
	}
	return append(answers, GoneWith(calls, why)...)
}

// GoneWith returns the results of handoffs whose threads are abandoned together with their calls.
func GoneWith(calls []Call, why string) (answers []run.Answer) {
	for _, c := range calls {
		if c.Thread == "" || slices.ContainsFunc(answers, func(a run.Answer) bool { return a.Of == c.Hand }) {
			continue
		}
		answers = append(answers, run.Answer{Of: c.Hand, Call: c.Call, Gone: true, Result: &model.Result{CallID: c.Call, Failed: true, Parts: []model.Part{{Kind: model.PartText, Text: why}}}})
	}
	return answers
}

// MaxQueued limits the queued turns of a session.
const MaxQueued = 16

// Queued is a turn that waits for earlier turns.
type Queued struct {
	Run     run.Run
	Request run.Request
	Speaker Speaker // the agent that Request is for
	Now     Speaker `json:"-"` // the current speaker
}

// ErrFull rejects a turn if MaxQueued turns are queued.
var ErrFull = fault.Limit("queued_turns", time.Time{}, "the session has reached its limit of %d queued turns; wait until one starts", MaxQueued)

var (
	// ErrWaits rejects messages to a session whose calls wait for the client.
	ErrWaits = fault.New(fault.Conflict, "calls of the session wait for an answer: confirm them, send their results, or interrupt the session")
	// ErrExpired rejects answers that arrive too late.
	ErrExpired = fault.New(fault.Conflict, "the call has expired: it was not answered in time")
	// ErrAnswered rejects answers to calls that do not wait for one.
	ErrAnswered = fault.New(fault.Conflict, "the call does not wait for this answer: it was already answered, or did not need one")
	// ErrChanged says that the session changed since the caller read it.
	ErrChanged = fault.New(fault.Conflict, "the session has just changed: read it, and try again")
)

// NewSpan returns the time after gt or from gte, and before lt or until lte; a zero bound is none.
func NewSpan(gt, gte, lt, lte time.Time) (s Span) {
	after := func(t time.Time) time.Time {
		if t.IsZero() {
			return t
		}
		return t.Add(1)
	}
	if s.From = gte; s.From.Before(after(gt)) {
		s.From = after(gt)
	}
	s.Until = lt
	if t := after(lte); s.Until.IsZero() || !t.IsZero() && t.Before(s.Until) {
		s.Until = t
	}
	return s
}
