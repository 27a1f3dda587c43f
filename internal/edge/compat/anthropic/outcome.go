package anthropic

import (
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/conversation"
	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Types of the events of evaluations.
const (
	evaluating = "span.outcome_evaluation_start"
	grading    = "span.outcome_evaluation_ongoing"
	evaluated  = "span.outcome_evaluation_end"
)

// RubricFields is what an outcome is graded by.
type RubricFields struct {
	Type    *string `json:"type" required:"true"`
	Content *string `json:"content,omitzero"`
	FileID  *string `json:"file_id,omitzero"`
}

// Rubric is what an outcome is graded by.
type Rubric struct {
	Type    string `json:"type"`
	Content string `json:"content"`
}

// OutcomeEvaluation is how far a session is with an outcome.
type OutcomeEvaluation struct {
	Type        string     `json:"type"`
	OutcomeID   string     `json:"outcome_id"`
	Description string     `json:"description"`
	Iteration   int        `json:"iteration"`
	Result      string     `json:"result"`
	Explanation *string    `json:"explanation"`
	CompletedAt *time.Time `json:"completed_at"`
}

// outcome reads the outcome that an event defines.
func (of contents) outcome(in *EventFields, path string) (*conversation.Outcome, error) {
	rubric, err := of.rubric(in.Rubric, path+".rubric")
	if err != nil {
		return nil, err
	}
	return conversation.NewOutcome(path+".", *in.Description, rubric, in.MaxIterations)
}

// rubric reads what an outcome is graded by.
func (of contents) rubric(raw jsontext.Value, path string) (string, error) {
	r := &RubricFields{}
	if err := decode(path, raw, r); err != nil {
		return "", err
	}
	switch {
	case *r.Type == "file" && r.FileID != nil && r.Content == nil:
		return of.files.Rubric(of.ctx, path, *r.FileID)
	case *r.Type == "text" && r.FileID == nil && r.Content != nil && strings.TrimSpace(*r.Content) != "":
		return *r.Content, nil
	case *r.Type != "text" && *r.Type != "file":
		return "", httpapi.Invalid("%s.type must be text or file", path)
	}
	return "", httpapi.Invalid("%s must have content that says something with the type text, a file_id with the type file, and no more", path)
}

// outcome renders what a client has defined. What this form cannot say of a check and a grader is
// in fields of ours.
func (out *Event) outcome(o *run.Outcome) {
	out.Type, out.OutcomeID, out.Description, out.Rubric, out.MaxIterations = userOutcome, o.ID, o.Description, &Rubric{"text", o.Rubric}, &o.Iterations
	out.Check, out.Model = sandboxtool.CheckOf(o), o.Model
}

func (out *Event) evaluation(of session.ID, e *session.Event) {
	v := e.Evaluation
	out.OutcomeID, out.Iteration = v.Outcome, &v.Iteration
	switch e.Kind {
	case run.EventEvaluating:
		out.Type = evaluating
	case run.EventGrading:
		out.Type = grading
	default:
		out.Type, out.Result, out.Explanation, out.StartID = evaluated, string(v.Result), &v.Explanation, new("")
		if v.Begun > 0 {
			*out.StartID = session.EventID(of, v.Begun)
		}
		out.Usage = modelUsageOf(&e.Spent.Usage)
	}
}

func modelUsageOf(u *model.Usage) *ModelUsage {
	return &ModelUsage{fresh(u), u.Output, u.CacheRead, u.CacheWrite}
}

// outcomes returns the outcomes of a session, oldest first.
func (r *renderer) outcomes(s *session.Session) ([]OutcomeEvaluation, error) {
	all, err := r.d.Conversations.Outcomes(r.c.Context(), s)
	return httpapi.Each(all, func(o conversation.Progress) OutcomeEvaluation {
		return OutcomeEvaluation{"outcome_evaluation", o.Outcome.ID, o.Outcome.Description, o.Iteration, o.Result, o.Explanation, o.CompletedAt}
	}), err
}
