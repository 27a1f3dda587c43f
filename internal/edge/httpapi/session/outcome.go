package session

import (
	"strings"

	"github.com/atoll-run/atoll/internal/agent/conversation"
	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Bounds of the check of an outcome.
const (
	maxCommand     = 64 << 10 // bytes
	maxCheckMillis = 24 * 3600 * 1000
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
