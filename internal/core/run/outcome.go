package run

import (
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/core/id"
	"github.com/atoll-run/atoll/internal/core/model"
)

// Outcome is a goal for a run. Whenever the model stops, Atoll evaluates the work. The model
// continues until the result is good enough or a limit ends the run.
type Outcome struct {
	ID          string // "outc_" and 32 hexadecimal digits
	Description string
	Rubric      string `json:",omitzero"` // grading criteria for a model; "" for none
	// Check is a call that must succeed before a model grades; nil for none.
	Check      *OutcomeCheck `json:",omitzero"`
	Iterations int           // most evaluations
	Model      string        `json:",omitzero"` // grades the work; "" for the run's own model
	// Of is the SessionEvent.Seq of the outcome's event if an earlier turn began with it. Evaluated
	// is how many evaluations had happened by the end of that turn.
	Of        int64 `json:",omitzero"`
	Evaluated int   `json:",omitzero"`
}

// OutcomeCheck is a tool call that only the platform makes.
type OutcomeCheck struct {
	Tool      Tool
	Arguments string
}

// NewOutcomeID returns a unique id.
func NewOutcomeID() string { return id.New("outc") }

// Verdict is the result of an evaluation.
type Verdict string

// Verdicts, by the names of the field's most complete client.
const (
	Satisfied     Verdict = "satisfied"
	NeedsRevision Verdict = "needs_revision"
	Unmet         Verdict = "max_iterations_reached"
	CannotBeMet   Verdict = "failed"
	CutShort      Verdict = "interrupted"
)

// Open reports whether another evaluation follows v.
func (v Verdict) Open() bool { return v == "" || v == NeedsRevision }

// Evaluation is an evaluation of an outcome, as readers see it.
type Evaluation struct {
	Outcome     string
	Iteration   int     // from 0
	Result      Verdict `json:",omitzero"` // "" while the evaluation runs
	Explanation string  `json:",omitzero"`
	Begun       int64   `json:",omitzero"` // SessionEvent.Seq of its start; 0 if it never started
}

// Evaluating says that an evaluation starts.
type Evaluating struct{ Iteration int }

// Carried is an outcome that a turn passes to the next one, which begins with the answers to its
// calls.
type Carried struct {
	Of        int64
	Evaluated int
}

// Progress is the progress of an outcome's evaluations.
type Progress struct {
	Last  Evaluation // the current or last evaluation
	Open  bool       // Last is running
	Check *Called    // of Last; nil until the check ends, or if the outcome has no check
	Tries int        // grader answers without a verdict
	again time.Time  // when to ask the grader
	spent Spent      // by Last
	next  int        // next iteration
}

// Failed reports whether the check of Last ran and failed.
func (p *Progress) Failed() bool { return p.Check != nil && p.Check.Result.Failed }

// cost returns the cost of the running evaluation.
func (p *Progress) cost() Spent {
	if !p.Open {
		return Spent{}
	}
	return p.spent
}

// evaluates reports whether to evaluate the outcome when the model stops.
func (s *State) evaluates() bool {
	return s.Request.Outcome != nil && !s.Progress.Open && s.Progress.Last.Result.Open()
}

func (s *State) evaluate(e *Evaluating) bool {
	p := &s.Progress
	if !s.evaluates() || s.stop == "" || s.asked != nil || len(s.pending) > 0 || e.Iteration != p.next {
		return false
	}
	o := s.Request.Outcome
	s.settled = true
	*p = Progress{Last: Evaluation{Outcome: o.ID, Iteration: e.Iteration}, Open: true, next: e.Iteration + 1}
	if c := o.Check; c != nil {
		// It has a number that no call of a model has.
		s.pending = []Pending{{
			Call: &model.Call{ID: fmt.Sprintf("check_%d", e.Iteration), Name: c.Tool.Name, Arguments: c.Arguments}, Number: -1 - e.Iteration, Tool: &c.Tool, index: -1, approved: true,
		}}
	}
	return true
}

// evaluated applies a grader's answer. Without a verdict the run asks the grader again.
func (s *State) evaluated(c *Checked) bool {
	p := &s.Progress
	if s.asked != nil || len(s.pending) > 0 {
		return false
	}
	s.Usage, s.Cost = s.Usage.Plus(c.Usage), s.Cost.Plus(c.Cost)
	p.spent = Spent{p.spent.Usage.Plus(c.Usage), p.spent.Cost.Plus(c.Cost.Total)}
	if c.Evaluation == nil {
		p.Tries++
		p.again = c.Again
		return true
	}
	p.Open, p.Last.Result, p.Last.Explanation, s.ends = false, c.Evaluation.Result, c.Evaluation.Explanation, c.End
	if c.Say == nil {
		return true
	}
	s.Conversation = append(s.Conversation, *c.Say)
	s.stop, s.settled = "", !p.Last.Result.Open()
	return true
}

// grade returns the next step of the running evaluation.
func (s *State) grade(now time.Time) Next {
	if now.Before(s.Progress.again) {
		return Next{Wait: s.Progress.again}
	}
	if s.Request.Outcome.Rubric != "" && !s.Progress.Failed() {
		if over := s.over(); over.End != nil {
			return over
		}
	}
	n := end(Completed, Done, "")
	n.Check = true
	return n
}

// unmet returns the end of a run that missed its outcome; empty for other runs.
func (s *State) unmet() Next {
	if s.Progress.Last.Result != Unmet {
		return Next{}
	}
	return incomplete(MaxIterations, "the outcome was not reached in %d evaluations", s.Request.Outcome.Iterations)
}

// cut returns the final evaluation of an outcome whose run ends early, or nil.
func (s *State) cut(e *End) *Evaluation {
	p := &s.Progress
	if s.Request.Outcome == nil || e.Status == RequiresAction || !p.Last.Result.Open() {
		return nil
	}
	last := Evaluation{Outcome: s.Request.Outcome.ID, Iteration: p.next, Result: CannotBeMet, Explanation: e.Message}
	if p.Open {
		last.Iteration, last.Begun = p.Last.Iteration, p.Last.Begun
	}
	if e.Status == Cancelled {
		last.Result, last.Explanation = CutShort, "The turn was interrupted."
	}
	return &last
}

// Evaluation returns the last evaluation of the run's outcome, or nil without an outcome.
func (s *State) Evaluation() *Evaluation {
	switch {
	case s.Request.Outcome == nil:
		return nil
	case s.End != nil && s.cut(s.End) != nil:
		return s.cut(s.End)
	case s.Progress.Last.Outcome == "":
		return &Evaluation{Outcome: s.Request.Outcome.ID, Iteration: s.Progress.next}
	}
	return &s.Progress.Last
}

// carried returns the outcome that the next turn continues, or nil.
func (s *State) carried(e *End) *Carried {
	if s.Request.Outcome == nil || e.Status != RequiresAction || !s.Progress.Last.Result.Open() {
		return nil
	}
	return &Carried{s.defined, s.Progress.next}
}

// place records the Seq of an outcome's events.
func (s *State) placeOutcome(events []SessionEvent) {
	for i := range events {
		switch t := &events[i]; t.Kind {
		case EventOutcome:
			s.defined = t.Seq
		case EventEvaluating:
			s.Progress.Last.Begun = t.Seq
		}
	}
}
