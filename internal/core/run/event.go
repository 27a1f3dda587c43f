package run

import (
	"context"
	"errors"
	"time"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Publisher publishes the events of runs.
type Publisher interface {
	// Publish appends events. It may return before they are stored, and blocks while too many are
	// pending.
	Publish(ctx context.Context, r *Run, events []Event) error
	// Published returns a fold of the run's events so far. Later calls of Publish continue after
	// them. It returns ErrNoEvents if the first events were deleted.
	Published(ctx context.Context, r *Run) (*Published, error)
	// Close says that this process publishes no more events of a run.
	Close(id ID)
	// Delete removes the events of a run.
	Delete(ctx context.Context, id ID) error
}

// Reader reads the events of runs.
type Reader interface {
	// Follow passes the events of a tenant's run to yield, from the first one, and waits for new
	// ones until ctx ends or yield returns an error, which Follow returns. It returns ErrNoEvents
	// if the first events were deleted.
	Follow(ctx context.Context, t tenant.ID, id ID, yield func([]Event) error) error
	// Stored returns how many events a run has published, including events that this process has not
	// stored yet.
	Stored(ctx context.Context, id ID) (int64, error)
}

// News notifies waiters of changed records, including changes by other processes. It may miss a
// change while processes cannot reach each other, so waiters must also poll; see LookAgain.
type News interface {
	// Watch calls wake when the run ends or the session with that id changes, until the caller
	// calls stop. wake must not block.
	Watch(id string, wake func()) (stop func(), err error)
}

// LookAgain is how often waiters poll for a change without news.
const LookAgain = 15 * time.Second

// ErrNoEvents says that a run's events do not exist or were deleted.
var ErrNoEvents = errors.New("the run's events were deleted")

// Event is a progress event for readers of a run. Exactly one of its pointers is set, or none if
// the record changed in a way that only readers of a session need. Every API renders its own events
// from these.
type Event struct {
	Began *ItemEvent `json:",omitzero"` // an item started
	Delta *Delta     `json:",omitzero"` // the item grew
	// Called is an item whose call starts. Readers already saw it while the model wrote it.
	Called *ItemEvent `json:",omitzero"`
	Done   *ItemEvent `json:",omitzero"` // the item is final
	End    *End       `json:",omitzero"` // the run ended
}

// ItemEvent carries an item of State.Output.
type ItemEvent struct {
	Index int
	Item  Item
	// Recorded says that Item holds only ID and Status; State.Output holds the rest.
	Recorded bool `json:",omitzero"`
}

// MaxDelta limits a Delta's text, in bytes.
const MaxDelta = 8 << 10

// Delta is a piece of the item at Index in State.Output.
type Delta struct {
	Index int
	Kind  model.DeltaKind // Said, Refused, Summarized, SummaryEnded, Thinking, CallArguments, Cited
	Text  string          `json:",omitempty"`
	// Citation is set for Cited.
	Citation *model.Citation `json:",omitempty"`
}

// Published is a fold of the events of a run so far.
type Published struct {
	items []published
	ended bool
	heard bool
}

// Heard returns a Published that drops deltas. Missing returns the same result, but Shown omits the
// text of an unfinished answer.
func Heard() *Published { return &Published{heard: true} }

type published struct {
	item   Item
	writes bool // the model writes the call
	done   bool
	fold   model.Fold
}

// Apply adds the next event. It reports whether the event is valid after the previous ones.
func (p *Published) Apply(e *Event) bool {
	switch {
	case p.ended:
		return false
	case e.Began != nil:
		if e.Began.Index != len(p.items) {
			return false
		}
		it := &e.Began.Item
		p.items = append(p.items, published{item: *it, writes: it.Use != nil && it.Use.Input == nil && !e.Began.Recorded})
	case e.Delta != nil:
		if e.Delta.Index < 0 || e.Delta.Index >= len(p.items) || p.items[e.Delta.Index].done {
			return false
		}
		if p.heard {
			return true
		}
		p.items[e.Delta.Index].fold.Add(model.Delta{Kind: e.Delta.Kind, Text: e.Delta.Text, Citation: e.Delta.Citation})
	case e.Called != nil:
		at := e.Called.Index
		if at < 0 || at >= len(p.items) || !p.items[at].writes || p.items[at].done {
			return false
		}
		p.items[at] = published{item: e.Called.Item}
	case e.Done != nil:
		if e.Done.Index < 0 || e.Done.Index >= len(p.items) || p.items[e.Done.Index].done {
			return false
		}
		p.items[e.Done.Index] = published{item: e.Done.Item, done: true}
	case e.End != nil:
		p.ended = true
	}
	return true
}

// Shown returns the items that readers have seen of an unfinished answer after its process died.
// The record does not contain them yet.
func (p *Published) Shown(s *State) (items []model.Item) {
	for i := len(s.Output); i < len(p.items); i++ {
		it := p.items[i].item
		if it.Use != nil { // else the call would be on record
			it.Call = s.callOf(it.Use)
		}
		switch partial := p.items[i].fold.Answer().Items; {
		case p.items[i].done || len(partial) == 0:
			items = append(items, model.Item{Message: it.Message, Reasoning: it.Reasoning, Call: it.Call})
		case it.Call != nil:
			call := *it.Call
			call.Arguments = partial[0].Call.Arguments
			items = append(items, model.Item{Call: &call})
		default:
			items = append(items, partial[0])
		}
	}
	return items
}

// Missing returns the events that bring readers up to date with the record.
func (p *Published) Missing(s *State) (events []Event) {
	for i := range s.Output {
		it := s.Output[i]
		if i >= len(p.items) {
			begun := it
			begun.Status = ItemInProgress
			if begun.Use != nil && begun.Use.Input == nil {
				use := *begun.Use
				use.Writes, begun.Use = "", &use
			}
			events = append(events, Event{Began: &ItemEvent{Index: i, Item: begun}})
		}
		called := it.Use != nil && it.Use.Input != nil
		if called && i < len(p.items) && p.items[i].writes {
			begun := it
			begun.Status = ItemInProgress
			events = append(events, Event{Called: &ItemEvent{Index: i, Item: begun}})
		}
		if it.Status != ItemInProgress && (i >= len(p.items) || !p.items[i].done) {
			events = append(events, Event{Done: &ItemEvent{Index: i, Item: it}})
		}
	}
	if s.End != nil && !p.ended {
		events = append(events, Event{End: s.End})
	}
	return events
}

// Ended reports whether the run's end was published.
func (p *Published) Ended() bool { return p.ended }
