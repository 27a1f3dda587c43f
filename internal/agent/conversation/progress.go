package conversation

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
)

// Progress is how far a session is with an outcome.
type Progress struct {
	Outcome     *run.Outcome
	Iteration   int
	Result      string // running, evaluating, or that of the last evaluation
	Explanation *string
	CompletedAt *time.Time // nil until it has ended
}

// progressSorts are the events that say how far a session is with its outcomes.
var progressSorts = []run.Sort{run.Sort(run.EventOutcome), run.Sort(run.EventEvaluating), run.Sort(run.EventEvaluated)}

// Outcomes returns the outcomes of a session, oldest first: those in the last events of their kinds.
func (s *Service) Outcomes(ctx context.Context, of *session.Session) (out []Progress, err error) {
	events, _, err := s.Store.Events(ctx, of.Tenant, of.ID, session.EventFilter{Page: agent.Page{Limit: readPage}, Sorts: progressSorts, Last: true})
	for i := len(events) - 1; i >= 0; i-- {
		e := &events[i]
		if e.Outcome != nil {
			out = append(out, Progress{Outcome: e.Outcome, Result: "running"})
			continue
		}
		last := len(out) - 1
		if last < 0 || out[last].Outcome.ID != e.Evaluation.Outcome {
			continue
		}
		o := &out[last]
		o.Iteration, o.Result = e.Evaluation.Iteration, "evaluating"
		if e.Kind != run.EventEvaluated {
			continue
		}
		o.Explanation = &e.Evaluation.Explanation
		if o.Result = string(e.Evaluation.Result); e.Evaluation.Result.Open() {
			o.Iteration, o.Result = o.Iteration+1, "running"
		} else {
			o.CompletedAt = &e.At
		}
	}
	for i := range out {
		// The wait for answers, in which it was, has ended without them.
		if over := i < len(out)-1 || of.Run == "" && of.Waits == 0; over && out[i].CompletedAt == nil {
			out[i].Result = string(run.CutShort)
		}
	}
	return out, err
}
