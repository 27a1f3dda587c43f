package conversation

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/agent/grader"
	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
)

// Bounds of outcomes.
const (
	maxRubric     = 256 << 10 // characters
	maxIterations = 20
	fewIterations = 3 // if the client does not say

	maxCommand     = 64 << 10 // bytes of a check
	maxCheckMillis = 24 * 3600 * 1000
)

// Outcome is the result that a client wants from a turn.
type Outcome struct {
	run.Outcome
	Command *sandboxtool.Check // nil for none
}

// NewOutcome returns an outcome as a client defines it, at a path of its request.
func NewOutcome(path, description, rubric string, iterations *int) (*Outcome, error) {
	o := &Outcome{Outcome: run.Outcome{ID: run.NewOutcomeID(), Description: description, Rubric: rubric, Iterations: fewIterations}}
	if iterations != nil {
		o.Iterations = *iterations
	}
	switch {
	case strings.TrimSpace(description) == "" || len(description) > session.MaxMessage:
		return nil, invalid("%sdescription must be a text of 1 to %d bytes", path, session.MaxMessage)
	case utf8.RuneCountInString(rubric) > maxRubric:
		return nil, invalid("%srubric must be a text of at most %d characters", path, maxRubric)
	case o.Iterations < 1 || o.Iterations > maxIterations:
		return nil, invalid("%smax_iterations must be between 1 and %d", path, maxIterations)
	}
	return o, nil
}

// Judged adds how the outcome is judged: a model and a check; nil for what the client omits. rubric says
// whether the client gave one.
func (o *Outcome) Judged(rubric bool, model *string, check *sandboxtool.Check) (*Outcome, error) {
	if o.Command = check; model != nil {
		o.Model = *model
	}
	switch {
	case strings.TrimSpace(o.Rubric) == "" && rubric:
		return nil, invalid("rubric must say something: leave it out where check says all")
	case !rubric && check == nil:
		return nil, invalid("rubric or check is required in an event of the type %s", run.EventOutcome)
	case model != nil && (!rubric || *model == ""):
		return nil, invalid("model must be the name of a model, and has a meaning with rubric only")
	case check != nil && (strings.TrimSpace(*check.Command) == "" || len(*check.Command) > maxCommand):
		return nil, invalid("check.command must be a text of 1 to %d bytes", maxCommand)
	case check != nil && check.TimeoutMS != nil && (*check.TimeoutMS < 1 || *check.TimeoutMS > maxCheckMillis):
		return nil, invalid("check.timeout_ms must be between 1 and %d", maxCheckMillis)
	}
	return o, nil
}

// Task returns what the model reads about o.
func (o *Outcome) Task() string {
	if o.Command == nil {
		return grader.Task(&o.Outcome, "")
	}
	return grader.Task(&o.Outcome, *o.Command.Command)
}

// underWay returns the outcome for which the turn goes on after the answers to a session's calls; nil
// for none.
func (s *Service) underWay(ctx context.Context, of *session.Session) (*run.Outcome, error) {
	last, _, err := s.Store.Events(ctx, of.Tenant, of.ID, session.EventFilter{Page: agent.Page{Limit: 1}, Sorts: []run.Sort{run.Sort(run.EventStatus)}, Last: true})
	if err != nil || len(last) == 0 || last[0].Status == nil || last[0].Status.Outcome == nil {
		return nil, err
	}
	progress := last[0].Status.Outcome
	at, err := s.Store.After(ctx, of.Tenant, of.ID, progress.Of-1, 1)
	if err != nil || len(at) == 0 || at[0].Outcome == nil {
		return nil, err
	}
	o := *at[0].Outcome
	o.Of, o.Evaluated = progress.Of, progress.Evaluated
	return &o, nil
}
