package session

import (
	"strings"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/agent/grader"
	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Bounds of outcomes.
const (
	maxRubric      = 256 << 10 // characters
	maxCommand     = 64 << 10  // bytes
	maxIterations  = 20
	fewIterations  = 3 // where a client does not say
	maxCheckMillis = 24 * 3600 * 1000
)

// Outcome is what a client wants a turn to come to.
type Outcome struct {
	run.Outcome
	Command *sandboxtool.Check // nil for none
}

// NewOutcome is an outcome as a client defines it, at a path of its request.
func NewOutcome(path, description, rubric string, iterations *int) (*Outcome, error) {
	o := &Outcome{Outcome: run.Outcome{ID: run.NewOutcomeID(), Description: description, Rubric: rubric, Iterations: fewIterations}}
	if iterations != nil {
		o.Iterations = *iterations
	}
	switch {
	case strings.TrimSpace(description) == "" || len(description) > session.MaxMessage:
		return nil, httpapi.Invalid("%sdescription must be a text of 1 to %d bytes", path, session.MaxMessage)
	case utf8.RuneCountInString(rubric) > maxRubric:
		return nil, httpapi.Invalid("%srubric must be a text of at most %d characters", path, maxRubric)
	case o.Iterations < 1 || o.Iterations > maxIterations:
		return nil, httpapi.Invalid("%smax_iterations must be between 1 and %d", path, maxIterations)
	}
	return o, nil
}

// Task is what the model is told of o.
func (o *Outcome) Task() string {
	if o.Command == nil {
		return grader.Task(&o.Outcome, "")
	}
	return grader.Task(&o.Outcome, *o.Command.Command)
}

// outcome is the one that an event defines.
func (in *NewSessionEvent) outcome() (*Outcome, error) {
	rubric := ""
	if in.Rubric != nil {
		rubric = *in.Rubric
	}
	o, err := NewOutcome("", *in.Description, rubric, in.MaxIterations)
	if err != nil {
		return nil, err
	}
	if in.Model != nil {
		o.Model = *in.Model
	}
	if c := in.Check; c != nil {
		o.Command = &sandboxtool.Check{Command: c.Command, TimeoutMS: c.TimeoutMS}
	}
	switch {
	case strings.TrimSpace(rubric) == "" && in.Rubric != nil:
		return nil, httpapi.Invalid("rubric must say something: leave it out where check says all")
	case in.Rubric == nil && in.Check == nil:
		return nil, httpapi.Invalid("rubric or check is required in an event of the type %s", run.ToldOutcome)
	case in.Model != nil && (in.Rubric == nil || *in.Model == ""):
		return nil, httpapi.Invalid("model must be the name of a model, and has a meaning with rubric only")
	case in.Check != nil && (strings.TrimSpace(*in.Check.Command) == "" || len(*in.Check.Command) > maxCommand):
		return nil, httpapi.Invalid("check.command must be a text of 1 to %d bytes", maxCommand)
	case in.Check != nil && in.Check.TimeoutMS != nil && (*in.Check.TimeoutMS < 1 || *in.Check.TimeoutMS > maxCheckMillis):
		return nil, httpapi.Invalid("check.timeout_ms must be between 1 and %d", maxCheckMillis)
	}
	return o, nil
}

// underWay is the outcome that the answers to a session's calls go on with; nil for none.
func (h *Handlers) underWay(c *httpapi.Call, s *session.Session) (*run.Outcome, error) {
	last, _, err := h.Store.Events(c.Context(), s.Tenant, s.ID, session.EventFilter{Page: agent.Page{Limit: 1}, Sorts: []run.Sort{run.Sort(run.ToldStatus)}, Last: true})
	if err != nil || len(last) == 0 || last[0].Status == nil || last[0].Status.Outcome == nil {
		return nil, err
	}
	of := last[0].Status.Outcome
	at, err := h.Store.After(c.Context(), s.Tenant, s.ID, of.Of-1, 1)
	if err != nil || len(at) == 0 || at[0].Outcome == nil {
		return nil, err
	}
	o := *at[0].Outcome
	o.Of, o.Evaluated = of.Of, of.Evaluated
	return &o, nil
}

// OutcomeOf renders an outcome.
func OutcomeOf(o *run.Outcome) *SessionOutcome {
	out := &SessionOutcome{ID: o.ID, Description: o.Description, Rubric: httpapi.OrNull(o.Rubric), MaxIterations: o.Iterations, Model: httpapi.OrNull(o.Model)}
	if c := sandboxtool.CheckOf(o); c != nil {
		out.Check = &OutcomeCheck{c.Command, c.TimeoutMS}
	}
	return out
}

func evaluationOf(of session.ID, e *run.Evaluation) *OutcomeEvaluation {
	out := &OutcomeEvaluation{OutcomeID: e.Outcome, Iteration: e.Iteration, Result: httpapi.OrNull(string(e.Result)), Explanation: httpapi.OrNull(e.Explanation)}
	if e.Begun > 0 {
		out.StartID = new(EventID(of, e.Begun))
	}
	return out
}
