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
	// Publish adds events after those that were published before. It may return before
	// they are stored, and blocks while too many are not.
	Publish(ctx context.Context, r *Run, events []Event) error
	// Published returns what the run's events have said so far, and has Publish go on
	// after them. It returns ErrNoEvents when the first of them are gone.
	Published(ctx context.Context, r *Run) (*Published, error)
	// Close says that this process publishes no more events of a run.
	Close(id ID)
	// Delete removes the events of a run.
	Delete(ctx context.Context, id ID) error
}

// Reader reads the events of runs.
type Reader interface {
	// Follow passes on the events of a run of a tenant from its first one on, those to come
	// too, until ctx ends or yield returns an error, which Follow returns. It returns ErrNoEvents when
	// the first of them are gone.
	Follow(ctx context.Context, t tenant.ID, id ID, yield func([]Event) error) error
	// Stored returns how many events of a run there have been, those included that this process has
	// published so far.
	Stored(ctx context.Context, id ID) (int64, error)
}

// News tells what changed in the records, also by other processes. It may miss a change while the
// processes cannot reach each other, so those who wait look again from time to time, see LookAgain.
type News interface {
	// Watch has wake called when a run has ended, or the session of that id has changed, until
	// stop is called. wake must not block.
	Watch(id string, wake func()) (stop func(), err error)
}

// LookAgain is after how long without news those who wait for a change look for it themselves.
const LookAgain = 15 * time.Second

// ErrNoEvents says that a run has no events, or no more.
var ErrNoEvents = errors.New("the run's events were deleted")

// Event is something that readers of a run are told while it goes on. Exactly one of its pointers
// is set, or none where something was recorded that readers of a session look for. Every dialect
// renders its own events from these.
type Event struct {
	Began *ItemEvent `json:",omitzero"` // an item is under way
	Delta *Delta     `json:",omitzero"` // it grew
	// Called is an item whose call is made: it was shown while the model wrote it.
	Called *ItemEvent `json:",omitzero"`
	Done   *ItemEvent `json:",omitzero"` // it does not change any more
	End    *End       `json:",omitzero"` // the run has ended
}

// ItemEvent has an item of State.Output.
type ItemEvent struct {
	Index int
	Item  Item
	// Recorded says that of Item only ID and Status are here: State.Output has it.
	Recorded bool `json:",omitzero"`
}

// MaxDelta bounds the bytes of a Delta's text.
const MaxDelta = 8 << 10

// Delta is a piece of the item at an index of State.Output.
type Delta struct {
	Index int
	Kind  model.DeltaKind // Said, Refused, Summarized, SummaryEnded, Thinking, CallArguments, Cited
	Text  string          `json:",omitempty"`
	// Citation is of Cited.
	Citation *model.Citation `json:",omitempty"`
}

// Published is what the events of a run have said so far: a fold of them.
type Published struct {
	items []published
	ended bool
	heard bool
}

// Heard is a Published that keeps no deltas: Missing is the same without them, and Shown
// lacks what an answer that is under way has.
func Heard() *Published { return &Published{heard: true} }

type published struct {
	item   Item
	writes bool // the model writes the call
	done   bool
	fold   model.Fold
}

// Apply adds the next event. It reports whether the event can follow those before it.
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

// Shown returns what readers have seen of the answer that a model was giving when its
// process ended: the items that are not in the record yet.
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

// Missing returns the events that bring readers to what the record says.
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

// Ended reports whether the run's end was among them.
func (p *Published) Ended() bool { return p.ended }
