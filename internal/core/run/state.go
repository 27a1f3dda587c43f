package run

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/usage"
)

// State is the fold of a run's log.
type State struct {
	ID      ID
	Seq     int64 // of the last entry; 0 for an empty log
	Request *Request
	// Earlier is the session's conversation before a turn. Set it before you apply the first entry.
	Earlier []model.Item
	// Apart is for callers that read only what the turn itself did. Set it before you apply the
	// first entry. A turn that begins with approved calls still needs Earlier.
	Apart bool
	Began time.Time
	Ended time.Time // zero while the run is active

	Conversation []model.Item // Request.Input, answers and results
	Output       []Item
	Steps        int         // models asked, without retries
	Calls        int         // tool calls that the server started
	Windows      int         // billed windows of the sandbox
	Usage        model.Usage // of all answers
	Cost         model.Cost
	Invoked      map[string]int // charged tool calls, by counted name
	ToolCost     model.Money    // of tool calls and windows
	Below        Spent          // usage of the runs that it delegated to
	Moves        int            // moves of the conversation to another agent
	Model        string         // the last model asked
	End          *End           // nil while the run is active

	Progress       Progress  // of Request.Outcome
	Checks         []Checked // verdicts of skills
	settled        bool      // skills have no further checks
	try            int       // of Model, in this step
	asked          *Asked    // nil once it has an outcome
	askedAt        time.Time
	again          time.Time    // when Model is asked again
	failure        *ModelFailed // of the last try; nil after an answer
	summary        *Compacted   // in place of the beginning of the conversation; nil for none
	compactedAt    int          // the step before which a summary was asked for last
	answered       int          // items of Conversation before the last answer of the run; 0 before the first
	answeredEvents int64        // SessionEvent.Seq of the last event before that answer
	shortened      bool         // by a summary since a model was asked last
	beside         int64        // tokens of Usage.Output that belong to no answer; see said
	troubled       time.Time    // when Model failed first, in this step; zero if it did not
	failedAt       time.Time    // when it failed last
	view           View
	stop           model.StopReason // of the last answer; "" before it
	pending        []Pending        // calls of the last answer
	ends           *End             // because of a call
	moves          *Move            // because of a call of the last answer
	asks           int              // tool calls that models asked for
	failing        [sha256.Size]byte
	failures       int   // calls in a row that failed, each like the one before
	resumed        int   // where in Conversation the results of Approved go; 0 for its end
	events         int64 // SessionEvent.Seq of the last event
	defined        int64 // SessionEvent.Seq of the event of Request.Outcome
}

// Pending is a tool call of the last answer.
type Pending struct {
	Call *model.Call
	// Number counts the calls of the run, from 1. It distinguishes calls in different steps to
	// which a provider gave the same id. Checks of an outcome count down from -1.
	Number int
	Tool   *Tool // nil for a tool that the model does not have
	// Begun says that a process has recorded the start of the call.
	Begun bool
	// Unclaimed says that the call has begun but has not taken effect.
	Unclaimed bool
	// Cost is the minimum cost of the call. Next sets it.
	Cost  model.Money
	Event int64 // SessionEvent.Seq of the call; 0 if the run is not a turn
	// Opens is the thread that the call opens with its claim; nil for none.
	Opens *Opens

	// Resumes resumes a delegating call; nil for a new call.
	Resumes *Resumed

	index    int // in State.Output of its item; -1 without one
	held     []Held
	heldAt   int64 // SessionEvent.Seq of the first of held
	result   *model.Result
	approved bool
}

// NewState returns the state of a run with an empty log.
func NewState(id ID) *State { return &State{ID: id} }

// errLog says that an entry does not follow from the previous ones.
var errLog = errors.New("the run's log is damaged")

// Apply adds the next entry. An error means that the log is damaged; do not use s after it.
func (s *State) Apply(e *Entry) error {
	_, err := s.advance(e)
	return err
}

func (s *State) advance(e *Entry) ([]SessionEvent, error) {
	shown := len(s.Output)
	ok := e.Seq == s.Seq+1 && s.End == nil && (e.Begun != nil) == (s.Seq == 0)
	if ok {
		ok = s.apply(e)
	}
	if !ok {
		return nil, fmt.Errorf("%w at entry %d", errLog, e.Seq)
	}
	s.Seq = e.Seq
	for i := range e.Lost {
		s.Usage, s.Cost = s.Usage.Plus(e.Lost[i].Usage), s.Cost.Plus(e.Lost[i].Cost)
		s.beside += e.Lost[i].Usage.Output
	}
	return s.sessionEvents(e, shown), nil
}

func (s *State) apply(e *Entry) bool {
	switch {
	case e.Begun != nil:
		s.Request, s.Began = e.Begun, e.At
		if t := e.Begun.Turn; t != nil {
			if len(s.Earlier) != t.Items && !s.Apart || e.Begun.Before != 0 {
				return false
			}
			q := *e.Begun
			q.Input = slices.Clone(s.Earlier)
			for _, a := range t.Answers {
				if a.Result != nil && a.Thread == "" {
					q.Input = append(q.Input, model.Item{Result: a.Result})
				}
			}
			q.Before = len(q.Input)
			q.Input = append(q.Input, e.Begun.Input...)
			s.Request = &q
		}
		if o := e.Begun.Outcome; o != nil {
			s.defined, s.Progress.next = o.Of, o.Evaluated
		}
		if t := e.Begun.Thread; t != nil && t.Summary != nil {
			s.Usage, s.Cost = t.Summary.Usage, t.Summary.Cost
		}
		s.Conversation = slices.Clone(s.Request.Input)
		for _, it := range e.Begun.Output {
			s.show(&it)
		}
		return len(e.Begun.Models) > 0 && s.resume(e.Begun.Approved)
	case e.Asked != nil:
		s.askedAt = e.At
		return s.ask(e.Asked)
	case e.Answered != nil:
		return s.answer(e.Answered)
	case e.Failed != nil:
		if s.failedAt = e.At; s.troubled.IsZero() && e.Failed.Failure != "" {
			s.troubled = e.At
		}
		return s.fail(e.Failed)
	case e.Calling != nil:
		return s.calling(e.Calling)
	case e.Claimed != nil:
		return s.claimed(e.Claimed)
	case e.Called != nil:
		return s.called(e.Called)
	case e.Checked != nil:
		return s.checked(e.Checked)
	case e.Compacted != nil:
		return s.compact(e.Compacted)
	case e.Evaluating != nil:
		return s.evaluate(e.Evaluating)
	case e.Ended != nil:
		s.end(e.Ended)
		s.Ended = e.At
		return e.Ended.Status.Final()
	}
	return false
}

func (s *State) ask(a *Asked) bool {
	if s.asked != nil || s.open() > 0 || !slices.Contains(s.Request.Models, a.Model) || a.Step < s.Steps || a.Step > s.Steps+1 {
		return false
	}
	if a.Try == 1 {
		s.troubled = time.Time{}
	}
	s.Steps, s.try, s.Model, s.view = a.Step, a.Try, a.Model, a.View
	s.asked, s.again, s.pending, s.stop, s.shortened = a, time.Time{}, nil, "", false
	return true
}

func (s *State) answer(a *Answered) bool {
	if s.asked == nil {
		return false
	}
	s.asked, s.failure, s.stop = nil, nil, a.Answer.Stop
	s.answered, s.answeredEvents = len(s.Conversation), s.events
	s.Usage, s.Cost = s.Usage.Plus(a.Answer.Usage), s.Cost.Plus(a.Cost)
	for i := range a.Answer.Items {
		it := &a.Answer.Items[i]
		s.Conversation = append(s.Conversation, *it)
		shown := itemOf(it, s.Request.Tools, ItemCompleted)
		if shown != nil && shown.Use != nil {
			shown.Status = ItemInProgress
		}
		index := s.show(shown)
		if it.Call != nil {
			s.asks++
			s.pending = append(s.pending, Pending{Call: it.Call, Number: s.asks, Tool: toolNamed(s.Request.Tools, it.Call.Name), index: index})
		}
	}
	return true
}

func (s *State) fail(f *ModelFailed) bool {
	if s.asked == nil {
		return false
	}
	s.asked, s.failure, s.again = nil, f, f.Again
	s.Usage, s.Cost = s.Usage.Plus(f.Usage), s.Cost.Plus(f.Cost)
	s.beside += f.Usage.Output
	for i := range f.Shown {
		s.show(itemOf(&f.Shown[i], s.Request.Tools, ItemIncomplete))
	}
	return true
}

// show appends an item to the output and returns its index; -1 for nil.
func (s *State) show(it *Item) int {
	if it == nil {
		return -1
	}
	nameItem(s.ID, len(s.Output), it)
	s.Output = append(s.Output, *it)
	return len(s.Output) - 1
}

func (s *State) find(call string) *Pending {
	i := slices.IndexFunc(s.pending, func(p Pending) bool { return p.Call.ID == call })
	if i < 0 || s.pending[i].result != nil {
		return nil
	}
	return &s.pending[i]
}

func (s *State) calling(c *Calling) bool {
	p := s.find(c.Call)
	if p == nil || p.Begun {
		return false
	}
	p.Begun, p.Unclaimed, p.Opens = true, c.Claims, c.Opens
	if c.Item != nil {
		it := *c.Item
		if p.index < 0 {
			p.index = s.show(&it)
		} else { // it was shown while the model wrote it
			it.ID = s.Output[p.index].ID
			s.Output[p.index] = it
		}
	}
	s.Calls++
	return true
}

func (s *State) claimed(c *Claimed) bool {
	p := s.find(c.Call)
	if p == nil || !p.Unclaimed {
		return false
	}
	p.Unclaimed = false
	return true
}

func (s *State) called(c *Called) bool {
	p := s.find(c.Call)
	if p == nil || c.Result.CallID != c.Call {
		return false
	}
	if p.held = c.Held; len(p.held) > 0 {
		s.Below = s.Below.Plus(c.Below)
		return true
	}
	p.result = &c.Result
	s.Windows += c.Windows
	if s.ends == nil {
		s.ends = c.Ends
	}
	if c.Item != nil {
		it := *c.Item
		if p.index < 0 {
			p.index = s.show(&it)
		} else {
			it.ID = s.Output[p.index].ID
			s.Output[p.index] = it
		}
	} else if p.index >= 0 && s.Output[p.index].Status == ItemInProgress {
		s.Output[p.index].Status = ItemFailed // it was shown, and could not be made
	}
	for _, it := range c.More {
		s.show(&it)
	}
	s.use(c.Used)
	s.Below = s.Below.Plus(c.Below)
	if s.Progress.Open {
		s.Progress.Check, s.pending = c, nil
		return true
	}
	s.countFailure(p.Call, c.Result.Failed)
	if s.moves == nil {
		s.moves = c.Moves
	}
	if s.open() == 0 {
		s.converse()
		s.move()
	}
	return true
}

// converse appends the available results to the conversation in the order of the calls. A call that
// the server will not make gets a result that says so, because providers reject calls without
// results. The client's results follow later.
func (s *State) converse() {
	for i := range s.pending {
		p := &s.pending[i]
		r := p.result
		if r == nil && !s.waits(p) {
			r = lost(p.Call.ID)
		}
		switch {
		case r != nil && s.resumed > 0:
			s.Conversation = slices.Insert(s.Conversation, s.resumed, model.Item{Result: r})
			s.resumed++
		case r != nil:
			s.Conversation = append(s.Conversation, model.Item{Result: r})
		}
	}
	s.resumed = 0
}

// notMade is the result of a call that was running or pending when the run ended.
const notMade = "The run ended before this call did, so its result is not known."

func lost(call string) *model.Result {
	return &model.Result{CallID: call, Failed: true, Parts: []model.Part{{Kind: model.PartText, Text: notMade}}}
}

// countFailure counts consecutive failures of the same call.
func (s *State) countFailure(c *model.Call, failed bool) {
	sum := sha256.Sum256([]byte(c.Name + "\x00" + c.Arguments))
	switch {
	case !failed:
		s.failures = 0
	case s.failures > 0 && sum == s.failing:
		s.failures++
	default:
		s.failing, s.failures = sum, 1
	}
}

// open returns how many calls of the last answer have no result.
func (s *State) open() (n int) {
	for i := range s.pending {
		if s.pending[i].result == nil {
			n++
		}
	}
	return n
}

// use adds charges.
func (s *State) use(used []Use) {
	for _, u := range used {
		s.ToolCost = s.ToolCost.Plus(u.Cost)
		if u.Kind != usage.Tool {
			continue
		}
		if s.Invoked == nil {
			s.Invoked = map[string]int{}
		}
		s.Invoked[u.Name] += u.Calls
	}
}

// Spent returns the cost of the run so far, including the runs that it delegated to.
func (s *State) Spent() model.Money { return s.Cost.Total.Plus(s.ToolCost).Plus(s.Below.Cost) }

// AllUsage returns the token usage of the run and of the runs that it delegated to.
func (s *State) AllUsage() model.Usage { return s.Usage.Plus(s.Below.Usage) }

// Cut returns the calls that have begun and have no result.
func (s *State) Cut() (calls []Pending) {
	for _, p := range s.pending {
		if p.Begun && p.result == nil && len(p.held) == 0 && p.Tool != nil && p.Tool.Handler != "" {
			calls = append(calls, p)
		}
	}
	return calls
}

// Paused returns the delegating calls whose delegates wait for the client, or waited and have not
// resumed yet.
func (s *State) Paused() (calls []Pending) {
	for _, p := range s.pending {
		if p.result == nil && (len(p.held) > 0 || p.Resumes != nil && (!p.Begun || p.Unclaimed)) {
			calls = append(calls, p)
		}
	}
	return calls
}

// Waiting returns the calls of an ended run that wait for the client.
func (s *State) Waiting() (calls []Pending) {
	for _, p := range s.pending {
		if s.waits(&p) {
			calls = append(calls, p)
		}
	}
	return calls
}

// waits reports whether a call waits for the client. A turn that ended other than with
// RequiresAction leaves no waiting calls, so its session accepts messages again.
func (s *State) waits(p *Pending) bool {
	return p.result == nil && p.client() && (s.Request.Turn == nil && s.Request.Thread == nil || s.End == nil || s.End.Status == RequiresAction)
}

func (s *State) end(e *End) {
	s.End = e
	s.use(e.Used)
	s.Below = s.Below.Plus(e.Below)
	for _, u := range e.Used {
		if u.Kind == usage.Window {
			s.Windows += u.Calls
		}
	}
	if s.open() > 0 && !s.Progress.Open {
		s.converse() // the client has the rest
	}
	for i := range s.Output {
		if s.Output[i].Status == ItemInProgress {
			s.Output[i].Status = ItemIncomplete
		}
	}
}
