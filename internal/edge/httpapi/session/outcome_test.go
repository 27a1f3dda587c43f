package session_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/edge/compat/anthropic"
	"github.com/atoll-run/atoll/test/httpapitest"
)

const kind = `{"type": "user.define_outcome", "description": "Write a letter.", "rubric": "Is it kind?"`

func verdict(result, why string) step {
	return step{"", fmt.Sprintf(`{"result": %q, "explanation": %q}`, result, why)}
}

// evaluations are the evaluations of a session, each its event, iteration and result.
func (k *talk) evaluations() (out string) {
	k.Helper()
	for _, e := range k.those("outcome_evaluation_start,outcome_evaluation_ongoing,outcome_evaluation_end") {
		result := ""
		if r := e.Evaluation.Result; r != nil {
			result = ":" + *r
		}
		out += fmt.Sprintf("%s%d%s ", strings.TrimPrefix(string(e.Type), "outcome_evaluation_"), e.Evaluation.Iteration, result)
	}
	return strings.TrimSpace(out)
}

// TestOutcome: the agent works until the grader is content, whose tokens are the turn's.
func TestOutcome(t *testing.T) {
	var asked []model.Request
	k := openWith(t, "{}", script(&asked, step{"", "bad"}, verdict("needs_revision", "Say more."), step{"", "better"}, verdict("satisfied", "It is kind.")))
	got := k.post(200, kind+`}`)
	if got.Content != "better" || got.Status != "completed" || got.Usage.InputTokens != 40 || *got.Evaluation.Result != "satisfied" || *got.Evaluation.Explanation != "It is kind." || got.Evaluation.Iteration != 1 {
		t.Errorf("%+v %+v", got, got.Evaluation)
	}
	if text := said(&asked[0]); !strings.Contains(text, "Write a letter.") || !strings.Contains(text, "Is it kind?") {
		t.Errorf("the model is told %q", text)
	}
	if q := asked[1]; !strings.Contains(q.Instructions, "Is it kind?") || !strings.Contains(said(&q), "<answer>\nbad\n</answer>") || len(q.Tools) > 0 {
		t.Errorf("the grader is asked %+v", q)
	}
	if !strings.Contains(said(&asked[2]), "Say more.") {
		t.Errorf("the model is told %q", said(&asked[2]))
	}
	if got := k.evaluations(); got != "start0 end0:needs_revision start1 end1:satisfied" {
		t.Error(got)
	}
	if types := strings.Join(k.types(), " "); types != "user.define_outcome status message outcome_evaluation_start outcome_evaluation_end message outcome_evaluation_start outcome_evaluation_end usage status" {
		t.Error(types)
	}
	ends := k.those("outcome_evaluation_end")
	if starts := k.those("outcome_evaluation_start"); *ends[0].Evaluation.StartID != starts[0].ID || ends[0].Usage.InputTokens != 10 || ends[0].Content != nil {
		t.Errorf("%+v", ends[0])
	}
	defined := k.those("user.define_outcome")[0]
	if o := defined.Outcome; o.Description != "Write a letter." || *o.Rubric != "Is it kind?" || o.MaxIterations != 3 || o.Check != nil || o.ID != got.Evaluation.OutcomeID {
		t.Errorf("%+v", defined.Outcome)
	}
	k.say("again") // the next turn has the conversation, and no outcome
	if q := asked[4]; len(q.Items) != 5 || len(asked) != 5 {
		t.Errorf("the next turn begins with %+v, and asked %d times", q.Items, len(asked))
	}
}

// TestOutcomeUnmet: a limit of evaluations ends the turn after one more answer, and so does a
// grader that says that the rubric does not apply, or that never gives a verdict.
func TestOutcomeUnmet(t *testing.T) {
	var asked []model.Request
	k := openWith(t, "{}", script(&asked, step{"", "a"}, verdict("needs_revision", "No."), step{"", "b"}, verdict("needs_revision", "No again."), step{"", "It is not done."},
		step{"", "c"}, verdict("failed", "It is no letter."),
		step{"", "d"}, step{"", "I cannot say."}, step{"", "{}"}, step{"", "Well."}))
	got := k.post(200, kind+`, "max_iterations": 2}`)
	if got.Content != "It is not done." || got.Status != "incomplete" || got.Error.Code != "max_iterations" || *got.Evaluation.Result != "max_iterations_reached" || !strings.Contains(said(&asked[4]), "No again.") {
		t.Errorf("%+v %+v %+v", got, got.Error, got.Evaluation)
	}
	if stops := k.those("status"); stops[len(stops)-1].StopReason.Type != "limit" {
		t.Errorf("%+v", stops[len(stops)-1])
	}
	if got := k.post(200, kind+`}`); got.Status != "failed" || got.Error.Code != "outcome_failed" || got.Error.Message != "It is no letter." {
		t.Errorf("%+v %+v", got, got.Error)
	}
	if got := k.post(200, kind+`}`); got.Status != "failed" || got.Error.Code != "outcome_failed" || got.Usage.InputTokens != 40 || len(asked) != 11 {
		t.Errorf("%+v %+v, asked %d times", got, got.Error, len(asked))
	}
	if got := k.evaluations(); got != "start0 end0:needs_revision start1 end1:max_iterations_reached start0 end0:failed start0 ongoing0 ongoing0 end0:failed" {
		t.Error(got)
	}
}

// TestOutcomeCheck: a check that fails is told to the model, and no model grades what fails it.
func TestOutcomeCheck(t *testing.T) {
	var asked []model.Request
	k := openWith(t, "{}", script(&asked, step{"", "done"}, step{"run_code", `{"language": "bash", "code": "make"}`}, step{"", "mended"}, verdict("satisfied", "ok")))
	got := k.post(200, `{"type": "user.define_outcome", "description": "Mend it.", "rubric": "Is it tidy?", "check": {"command": "fail once", "timeout_ms": 5000}}`)
	if got.Content != "mended" || got.Status != "completed" || *got.Evaluation.Result != "satisfied" || len(asked) != 4 {
		t.Errorf("%+v %+v, asked %d times", got, got.Error, len(asked))
	}
	if text := said(&asked[1]); !strings.Contains(text, "did outcome_check") {
		t.Errorf("the model is told %q", text)
	}
	if q := asked[3]; !strings.Contains(said(&q), "<check>\ndid outcome_check\n</check>") || !strings.Contains(said(&q), "call of run_code") {
		t.Errorf("the grader is asked %q", said(&q))
	}
	if got := k.evaluations(); got != "start0 end0:needs_revision start1 ongoing1 end1:satisfied" {
		t.Error(got)
	}
	if e := k.those("outcome_evaluation_end")[0]; !strings.Contains(*e.Evaluation.Explanation, "did outcome_check") {
		t.Errorf("%+v", e.Evaluation)
	}
	if o := k.those("user.define_outcome")[0].Outcome; *o.Check.Command != "fail once" || *o.Check.TimeoutMS != 5000 {
		t.Errorf("%+v", o.Check)
	}
	if n := len(k.those("tool_use,tool_result")); n != 2 {
		t.Errorf("%d events of calls, of which the check is none", n)
	}
	if got := k.post(200, `{"type": "user.define_outcome", "description": "Look.", "check": {"command": "true"}}`); got.Status != "completed" || len(asked) != 5 {
		t.Errorf("%+v, asked %d times", got, len(asked))
	}
}

// TestOutcomeInterrupted: an interrupt ends a check and a grader, which do not end by themselves.
func TestOutcomeInterrupted(t *testing.T) {
	for what, body := range map[string]string{"check": `{"type": "user.define_outcome", "description": "x", "check": {"command": "hang"}}`, "grader": kind + `}`} {
		t.Run(what, func(t *testing.T) {
			k := openWith(t, "{}", func(q model.Request) []model.Delta {
				if strings.HasPrefix(q.Instructions, "You grade") {
					return []model.Delta{{Kind: model.Said, Text: "{"}, {}}
				}
				return []model.Delta{{Kind: model.Said, Text: "ok"}, {Kind: model.Stopped, Stop: model.StopEnd}}
			})
			if w := httpapitest.Ask(k.Server, "POST", k.path+"/events", body, "Prefer", "respond-async", "Content-Type", "application/json"); w.Code != http.StatusAccepted {
				t.Fatal(w.Body)
			}
			<-k.hung
			k.ask(200, "POST", k.path+"/interrupt", "", nil)
			<-k.ended
			if got := k.evaluations(); got != "start0 end0:interrupted" {
				t.Error(got)
			}
			stops := k.those("status")
			if stops[len(stops)-1].StopReason.Type != "interrupted" {
				t.Errorf("%+v", stops[len(stops)-1].StopReason)
			}
			var s anthropic.Session
			k.ask(200, "GET", "/anthropic"+k.path, "", &s)
			if o := s.OutcomeEvaluations; len(o) != 1 || o[0].Result != "interrupted" || o[0].CompletedAt == nil {
				t.Errorf("%+v", o)
			}
		})
	}
}

// TestOutcomeBudget: what graders use is the session's, whose end ends an outcome.
func TestOutcomeBudget(t *testing.T) {
	var asked []model.Request
	k := openWith(t, "{}", script(&asked, step{"", "a"}, verdict("needs_revision", "No."), step{"", "b"}, verdict("needs_revision", "No.")))
	k.path = "/v1/sessions/" + k.made(`{"agent_id": "helper", "budget": {"tokens": 40}}`)
	got := k.post(200, kind+`}`)
	if got.Status != "incomplete" || got.Error.Code != "session_budget" || got.Usage.InputTokens+got.Usage.OutputTokens != 45 || *got.Evaluation.Result != "failed" || len(asked) != 3 {
		t.Errorf("%+v %+v, asked %d times", got, got.Error, len(asked))
	}
	if got := k.evaluations(); got != "start0 end0:needs_revision start1 end1:failed" {
		t.Error(got)
	}
	k.ask(429, "POST", k.path+"/events", kind+`}`, nil)
}

// TestOutcomeQueued: an outcome waits for the turn before it.
func TestOutcomeQueued(t *testing.T) {
	k := openWith(t, "{}", func(q model.Request) []model.Delta {
		text := "ok"
		switch {
		case strings.HasPrefix(q.Instructions, "You grade"):
			text = `{"result": "satisfied", "explanation": "Yes."}`
		case said(&q) == "hang":
			return []model.Delta{{Kind: model.Said, Text: "well"}, {}}
		}
		return []model.Delta{{Kind: model.Said, Text: text}, {Kind: model.Stopped, Stop: model.StopEnd}}
	})
	if w := httpapitest.Ask(k.Server, "POST", k.path+"/events", `{"type": "message", "content": "hang"}`, "Prefer", "respond-async", "Content-Type", "application/json"); w.Code != http.StatusAccepted {
		t.Fatal(w.Body)
	}
	k.post(409, kind+`}`)
	k.ask(202, "POST", k.path+"/events", kind+`, "check": {"command": "true"}, "queue": true}`, nil)
	k.ask(200, "POST", k.path+"/interrupt", "", nil)
	<-k.ended
	<-k.ended
	if got := k.evaluations(); got != "start0 ongoing0 end0:satisfied" {
		t.Error(got)
	}
}

func (k *talk) made(body string) string {
	k.Helper()
	var made struct{ ID string }
	k.ask(http.StatusCreated, "POST", "/v1/sessions", body, &made)
	return made.ID
}

// TestOutcomeWaits: a turn that waits for the client continues with its outcome, where it was.
func TestOutcomeWaits(t *testing.T) {
	var asked []model.Request
	k := openWith(t, "{}", script(&asked, step{"", "a"}, verdict("needs_revision", "No."), step{"theirs", "{}"}, step{"", "b"}, verdict("satisfied", "Yes."),
		step{"theirs", "{}"}, step{"", "c"}))
	turn := k.post(200, kind+`, "max_iterations": 2}`)
	if turn.Status != "requires_action" || *turn.Evaluation.Result != "needs_revision" {
		t.Fatalf("%+v", turn)
	}
	turn = k.post(200, fmt.Sprintf(`{"type": "tool_result", "tool_use_id": %q, "content": "mine"}`, turn.RequiresAction[0].ToolUseID))
	if turn.Content != "b" || turn.Evaluation == nil || turn.Evaluation.Iteration != 1 || *turn.Evaluation.Result != "satisfied" {
		t.Errorf("%+v %+v", turn, turn.Evaluation)
	}
	if got := k.evaluations(); got != "start0 end0:needs_revision start1 end1:satisfied" {
		t.Error(got)
	}
	// One that is given up while it waits is over.
	k.post(200, kind+`}`)
	k.ask(200, "POST", k.path+"/interrupt", "", nil)
	if turn := k.say("hello"); turn.Content != "c" || turn.Evaluation != nil {
		t.Errorf("%+v", turn)
	}
	var s anthropic.Session
	k.ask(200, "GET", "/anthropic"+k.path, "", &s)
	if o := s.OutcomeEvaluations; len(o) != 2 || o[0].Result != "satisfied" || o[0].Iteration != 1 || o[1].Result != "interrupted" {
		t.Errorf("%+v", o)
	}
}

func TestBadOutcomes(t *testing.T) {
	var asked []model.Request
	k := openWith(t, `{"Deny": ["run_code"]}`, script(&asked))
	for body, want := range map[string]string{
		`"rubric": "x"`:                                                   "description is required",
		`"description": " ", "rubric": "x"`:                               "description must be a text",
		`"description": "x"`:                                              "rubric or check is required",
		`"description": "x", "rubric": " "`:                               "rubric must say something",
		`"description": "x", "rubric": "x", "content": "x"`:               "content has no meaning",
		`"description": "x", "rubric": "x", "max_iterations": 21`:         "max_iterations must be",
		`"description": "x", "rubric": "x", "max_iterations": 0`:          "max_iterations must be",
		`"description": "x", "check": {}`:                                 "check.command is required",
		`"description": "x", "check": {"command": " "}`:                   "check.command must be",
		`"description": "x", "check": {"command": "x", "timeout_ms": -1}`: "check.timeout_ms must be",
		`"description": "x", "check": {"command": "x"}, "model": "m"`:     "has a meaning with rubric only",
		`"description": "x", "check": {"command": "x"}`:                   "run_code",
	} {
		httpapitest.Refused(t, httpapitest.Ask(k.Server, "POST", k.path+"/events", `{"type": "user.define_outcome", `+body+`}`), 400, "validation_error", want)
	}
	httpapitest.Refused(t, httpapitest.Ask(k.Server, "POST", k.path+"/events", kind+`, "model": "none"}`), 404, "not_found", `no model`)
	httpapitest.Refused(t, httpapitest.Ask(k.Server, "POST", k.path+"/events", `{"type": "message", "content": "x", "rubric": "x"}`), 400, "validation_error", "rubric has no meaning")
	if len(asked) > 0 {
		t.Error("a model was asked")
	}
}

// TestCheckObeysConfirmation: an agent whose commands are confirmed runs none for a check.
func TestCheckObeysConfirmation(t *testing.T) {
	var asked []model.Request
	k := openWith(t, `{"Confirm": ["run_code"]}`, script(&asked))
	httpapitest.Refused(t, httpapitest.Ask(k.Server, "POST", k.path+"/events", `{"type": "user.define_outcome", "description": "x", "check": {"command": "x"}}`), 400, "validation_error", "require_confirmation")
	if len(asked) > 0 {
		t.Error("a model was asked")
	}
}

// TestManagedOutcome: the same in Anthropic's form.
func TestManagedOutcome(t *testing.T) {
	var asked []model.Request
	k := openWith(t, "{}", script(&asked, step{"", "bad"}, verdict("needs_revision", "Say more."), step{"", "better"}, verdict("satisfied", "It is kind."), step{"", "x"}, verdict("satisfied", "")))
	post := func(status int, body string, into any) {
		t.Helper()
		k.ask(status, "POST", "/anthropic"+k.path+"/events", `{"events": [`+body+`]}`, into)
	}
	const define = `{"type": "user.define_outcome", "description": "Write a letter.", "rubric": {"type": "text", "content": "Is it kind?"}, "max_iterations": null}`
	var sent anthropic.Sent
	post(200, `{"type": "user.message", "content": [{"type": "text", "text": "For my aunt."}]},`+define, &sent)
	<-k.ended
	if e := sent.Data[1]; len(sent.Data) != 2 || e.Type != "user.define_outcome" || e.Description != "Write a letter." || e.Rubric.Content != "Is it kind?" || *e.MaxIterations != 3 || !strings.HasPrefix(e.OutcomeID, "outc_") || e.ProcessedAt == nil {
		t.Errorf("%+v", sent.Data)
	}
	var page struct{ Data []anthropic.Event }
	k.ask(200, "GET", "/anthropic"+k.path+"/events?types[]=user.define_outcome&types[]=span.outcome_evaluation_start&types[]=span.outcome_evaluation_end&types[]=span.outcome_evaluation_ongoing", "", &page)
	if len(page.Data) != 5 {
		t.Fatalf("%+v", page.Data)
	}
	defined, start, end := page.Data[0], page.Data[3], page.Data[4]
	if defined.ID != sent.Data[1].ID || defined.OutcomeID != sent.Data[1].OutcomeID || defined.Check != nil || len(defined.Content) > 0 {
		t.Errorf("%+v, sent was %+v", defined, sent.Data[1])
	}
	if *start.Iteration != 1 || start.OutcomeID != defined.OutcomeID || *end.StartID != start.ID || end.Result != "satisfied" || *end.Explanation != "It is kind." || fmt.Sprint(end.Usage) != "map[cache_creation_input_tokens:0 cache_read_input_tokens:0 input_tokens:10 output_tokens:5]" {
		t.Errorf("%+v, then %+v", start, end)
	}
	var s anthropic.Session
	k.ask(200, "GET", "/anthropic"+k.path, "", &s)
	if o := s.OutcomeEvaluations; len(o) != 1 || o[0].Result != "satisfied" || o[0].Iteration != 1 || *o[0].Explanation != "It is kind." || o[0].OutcomeID != defined.OutcomeID || o[0].Type != "outcome_evaluation" {
		t.Errorf("%+v", o)
	}
	k.ask(200, "POST", "/anthropic/v1/sessions", `{"agent": "`+s.Agent.ID+`", "environment_id": "`+s.EnvironmentID+`", "initial_events": [`+define+`]}`, &s)
	<-k.ended
	k.ask(200, "GET", "/anthropic/v1/sessions/"+s.ID, "", &s)
	if o := s.OutcomeEvaluations; len(o) != 1 || o[0].Result != "satisfied" {
		t.Errorf("%+v", o)
	}
	for body, says := range map[string]string{
		strings.Replace(define, `"type": "text", "content": "Is it kind?"`, `"type": "file", "file_id": "file_1"`, 1): "events[0].rubric.type must not be file: this server has no files",
		strings.Replace(define, `"type": "text"`, `"type": "grader"`, 1):                                              "events[0].rubric.type must be text or file",
		strings.Replace(define, `"content": "Is it kind?"`, `"content": ""`, 1):                                       "events[0].rubric must have content",
		strings.Replace(define, `{"type": "text", "content": "Is it kind?"}`, `null`, 1):                              "events[0].rubric",
		strings.Replace(define, `, "max_iterations": null`, `, "max_iterations": 50`, 1):                              "events[0].max_iterations must be between 1 and 20",
		strings.Replace(define, `"description": "Write a letter.", `, ``, 1):                                          "events[0].description is required",
		define + `,` + define: "events[1] has no place there",
		`{"type": "user.message", "content": [{"type": "text", "text": "x"}], "rubric": {}}`: "events[0].rubric has no meaning",
	} {
		w := httpapitest.Ask(k.Server.Server, "POST", "/anthropic"+k.path+"/events", `{"events": [`+body+`]}`, "Content-Type", "application/json")
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), says) {
			t.Errorf("%s: %d %s, want %q", body, w.Code, w.Body, says)
		}
	}
}
