package session

import (
	"github.com/atoll-run/atoll/internal/agent/conversation"
	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// outcome is the one that an event defines.
func (in *NewSessionEvent) outcome() (*conversation.Outcome, error) {
	rubric := ""
	if in.Rubric != nil {
		rubric = *in.Rubric
	}
	o, err := conversation.NewOutcome("", *in.Description, rubric, in.MaxIterations)
	if err != nil {
		return nil, err
	}
	var check *sandboxtool.Check
	if c := in.Check; c != nil {
		check = &sandboxtool.Check{Command: c.Command, TimeoutMS: c.TimeoutMS}
	}
	return o.Judged(in.Rubric != nil, in.Model, check)
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
		out.StartID = new(session.EventID(of, e.Begun))
	}
	return out
}
