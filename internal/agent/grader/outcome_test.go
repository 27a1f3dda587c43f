package grader

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
)

// evaluate has the first evaluation of an outcome made. The check, if there is one, came to a
// result; the grader answers with a text or an error.
func evaluate(t *testing.T, o run.Outcome, check *run.Called, tries int, text string, answers error) *run.Checked {
	t.Helper()
	s := run.NewState(run.NewID())
	s.Request = &run.Request{Outcome: &o, Input: []model.Item{model.Text(model.User, "go")}}
	s.Conversation = []model.Item{s.Request.Input[0], model.Text(model.Assistant, "done")}
	s.Progress = run.Progress{Open: true, Check: check, Tries: tries}
	c, err := Outcome(t.Context(), &loop.Check{State: s, Now: time.Unix(1000, 0), Ask: func(_ context.Context, name string, q model.Request) (*loop.Reply, error) {
		if name != o.Model || o.Rubric == "" || !strings.Contains(q.Instructions, o.Rubric) {
			t.Errorf("%s is asked %+v", name, q)
		}
		return &loop.Reply{Model: "g", Text: text}, answers
	}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func called(text string, failed, refused bool) *run.Called {
	c := &run.Called{Result: model.Result{Failed: failed, Parts: []model.Part{{Kind: model.PartText, Text: text}}}}
	if !refused {
		c.Used = []run.Use{{Calls: 1}}
	}
	return c
}

func TestVerdicts(t *testing.T) {
	graded := run.Outcome{ID: "outc_1", Description: "do", Rubric: "well", Iterations: 2, Model: "g"}
	last := graded
	last.Iterations = 1
	checked := run.Outcome{ID: "outc_1", Description: "do", Check: &run.OutcomeCheck{}, Iterations: 2}
	busy := &model.Error{Failure: model.RateLimited, Msg: "busy", RetryAfter: 7 * time.Second}
	for what, c := range map[string]struct {
		outcome run.Outcome
		check   *run.Called
		tries   int
		text    string
		err     error
		want    string // result, explanation, how it goes on
	}{
		"satisfied":                {outcome: graded, text: `Here: {"result": "satisfied", "explanation": "It is well."}`, want: "satisfied It is well. ends"},
		"more is wanted":           {outcome: graded, text: `{"result": "needs_revision", "explanation": "Worse."}`, want: "needs_revision Worse. continues"},
		"more is wanted, too late": {outcome: last, text: `{"result": "needs_revision", "explanation": "Worse."}`, want: "max_iterations_reached Worse. continues"},
		"does not apply":           {outcome: graded, text: `{"result": "failed", "explanation": "No."}`, want: "failed No. outcome_failed"},
		"no verdict":               {outcome: graded, text: `well`, want: "again 0s"},
		"another verdict":          {outcome: graded, text: `{"result": "interrupted"}`, want: "again 0s"},
		"no verdict at last":       {outcome: graded, tries: 2, text: `well`, want: "failed the grading model gave no verdict outcome_failed"},
		"a grader that is busy":    {outcome: graded, err: busy, want: "again 7s"},
		"one that stays busy":      {outcome: graded, tries: 2, err: busy, want: "failed the grading model did not answer: busy model_error"},
		"one that is gone":         {outcome: graded, err: model.Errorf(model.Unauthorized, "gone"), want: "failed the grading model did not answer: gone model_error"},
		"a check that passes":      {outcome: checked, check: called("Exit code 0", false, false), want: "satisfied The check has passed. ends"},
		"a check that fails":       {outcome: checked, check: called("Exit code 1", true, false), want: "needs_revision The check did not pass. Exit code 1 continues"},
		"a check that is refused":  {outcome: checked, check: called("too long", true, true), want: "failed The check was not run: too long outcome_failed"},
	} {
		got := evaluate(t, c.outcome, c.check, c.tries, c.text, c.err)
		var said string
		switch {
		case got.Evaluation == nil:
			said = fmt.Sprint("again ", got.Again.Sub(time.Unix(1000, 0)))
		case got.Say != nil:
			said = fmt.Sprintf("%s %s continues", got.Evaluation.Result, got.Evaluation.Explanation)
			if !strings.Contains(model.Joined(got.Say.Message.Parts), got.Evaluation.Explanation) {
				t.Errorf("%s: the model is told %+v", what, got.Say)
			}
		case got.End != nil:
			said = fmt.Sprintf("%s %s %s", got.Evaluation.Result, got.Evaluation.Explanation, got.End.Reason)
		default:
			said = fmt.Sprintf("%s %s ends", got.Evaluation.Result, got.Evaluation.Explanation)
		}
		if said != c.want {
			t.Errorf("%s: %s, want %s", what, said, c.want)
		}
		if asked := c.err == nil && c.outcome.Rubric != ""; (got.Asked != "") != asked {
			t.Errorf("%s: %q is charged for", what, got.Asked)
		}
	}
}

// TestServerFails: an error that is no model's is the server's, and the run is tried again.
func TestServerFails(t *testing.T) {
	s := run.NewState(run.NewID())
	s.Request = &run.Request{Outcome: &run.Outcome{Rubric: "x"}}
	s.Progress.Open = true
	lost := errors.New("lost")
	if _, err := Outcome(t.Context(), &loop.Check{State: s, Ask: func(context.Context, string, model.Request) (*loop.Reply, error) { return nil, lost }}); !errors.Is(err, lost) {
		t.Error(err)
	}
}

// TestWork: a grader is shown the end of long work, within its bounds.
func TestWork(t *testing.T) {
	s := run.NewState(run.NewID())
	s.Request = &run.Request{Outcome: &run.Outcome{}, Input: []model.Item{model.Text(model.User, "before")}}
	s.Conversation = append(s.Conversation, s.Request.Input...)
	for i := range 200 {
		s.Conversation = append(s.Conversation, model.Item{Call: &model.Call{ID: "c", Name: "run_code", Arguments: fmt.Sprint("no. ", i, strings.Repeat("x", 5000))}})
	}
	text := work(s)
	if len(text) > MaxReviewed+1000 || strings.Contains(text, "no. 0x") || !strings.Contains(text, "no. 199x") || strings.Contains(text, "before") {
		t.Errorf("%d bytes: %.200s", len(text), text)
	}
	if strings.Index(text, "no. 198x") > strings.Index(text, "no. 199x") {
		t.Error("what was done is not in its order")
	}
}
