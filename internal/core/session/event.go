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

// Event is an event of a session. Events do not change, and neither does their order.
type Event struct {
	Run run.ID // the turn
	run.Told
}

// TreeEvent is an event of a session, or of one of its threads.
type TreeEvent struct {
	Event
	Thread string // "" for the session's own
}

// EventFilter chooses events.
type EventFilter struct {
	agent.Page
	// Kinds and Sorts are what is chosen; all if there are none.
	Kinds []run.ToldKind
	Sorts []run.Sort
	Run   run.ID // "" for all
	Span
	Last bool // the last one first
}

// Span is a time: from From on, until before Until; zero for no bound.
type Span struct{ From, Until time.Time }

// Bounds of the conversation that a turn begins with. What was said before is in the events,
// and the model is not given it.
const (
	MaxTurnItems = 2000
	MaxTurnBytes = 8 << 20 // as the events are stored
)

// Call is a call of the last turn that waits for the client.
type Call struct {
	run.Wait
	// Approved says that the client has allowed it, and has to answer others yet; of a call of a
	// thread, that the client has answered it.
	Approved bool
}

// Expire are the answers to calls that the client did not answer until a time.
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

// GoneWith are the results of hand-offs whose threads are given up, as their calls are.
func GoneWith(calls []Call, why string) (answers []run.Answer) {
	for _, c := range calls {
		if c.Thread == "" || slices.ContainsFunc(answers, func(a run.Answer) bool { return a.Of == c.Hand }) {
			continue
		}
		answers = append(answers, run.Answer{Of: c.Hand, Call: c.Call, Gone: true, Result: &model.Result{CallID: c.Call, Failed: true, Parts: []model.Part{{Kind: model.PartText, Text: why}}}})
	}
	return answers
}

// MaxQueued bounds the turns of a session that wait for those before them.
const MaxQueued = 16

// Queued is a turn that waits for those before it.
type Queued struct {
	Run     run.Run
	Request run.Request
	Speaker Speaker // the agent that Request is asked of
	Now     Speaker `json:"-"` // who speaks by now
}

// ErrFull refuses a turn where MaxQueued wait.
var ErrFull = fault.Limit("queued_turns", time.Time{}, "the session has reached its limit of %d queued turns; wait until one starts", MaxQueued)

var (
	// ErrWaits refuses messages to a session whose calls wait for the client.
	ErrWaits = fault.New(fault.Conflict, "calls of the session wait for an answer: confirm them, send their results, or interrupt the session")
	// ErrExpired refuses answers that come too late.
	ErrExpired = fault.New(fault.Conflict, "the call has expired: it was not answered in time")
	// ErrAnswered refuses answers to calls that do not wait, or no more.
	ErrAnswered = fault.New(fault.Conflict, "the call does not wait for this answer: it was already answered, or did not need one")
	// ErrChanged says that a session has changed since it was read.
	ErrChanged = fault.New(fault.Conflict, "the session has just changed: read it, and try again")
)
