package session_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/model/modeltest"
	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/core/skill/skilltest"
	sessionapi "github.com/atoll-run/atoll/internal/edge/httpapi/session"
)

// step is an answer of a model: a call of a tool, or a text.
type step struct{ tool, text string }

// script answers with one step after the other, whatever it is asked, and keeps what it was asked.
func script(asked *[]model.Request, steps ...step) modeltest.Script {
	var n atomic.Int64
	return func(q model.Request) []model.Delta {
		*asked = append(*asked, q)
		i := int(n.Add(1)) - 1
		if i >= len(steps) {
			return []model.Delta{{Kind: model.Said, Text: "no more"}, {Kind: model.Stopped, Stop: model.StopEnd}}
		}
		used := model.Delta{Kind: model.Used, Usage: model.Usage{Input: 10, Output: 5}}
		s := steps[i]
		if s.tool == "" {
			return []model.Delta{{Kind: model.Said, Text: s.text}, used, {Kind: model.Stopped, Stop: model.StopEnd}}
		}
		c := model.Call{ID: fmt.Sprint("c", i), Name: s.tool, Arguments: s.text}
		return []model.Delta{{Kind: model.CallBegun, Call: c}, {Kind: model.CallArguments, Text: s.text}, {Kind: model.CallEnded, Call: c}, used, {Kind: model.Stopped, Stop: model.StopToolCalls}}
	}
}

func (k *talk) those(types string) (out []sessionapi.SessionEvent) {
	k.Helper()
	var page struct{ Data []sessionapi.SessionEvent }
	k.ask(http.StatusOK, "GET", k.path+"/events?types="+types, "", &page)
	return page.Data
}

func (k *talk) context() (out sessionapi.SessionContext) {
	k.Helper()
	k.ask(http.StatusOK, "GET", k.path+"/context", "", &out)
	return out
}

func builtIn(name, config string) agent.Skill {
	return agent.Skill{Name: name, Config: json.RawMessage(config)}
}

func said(q *model.Request) string {
	it := q.Items[len(q.Items)-1]
	if it.Message == nil {
		return ""
	}
	return it.Message.Parts[0].Text
}

// TestPlanning: the plan is seen, and a turn does not end with open steps.
func TestPlanning(t *testing.T) {
	var asked []model.Request
	k := openWith(t, "{}", script(&asked,
		step{"update_plan", `{"steps": [{"step": "look", "status": "in_progress"}, {"step": "write", "status": "pending"}]}`},
		step{"", "I am done."},
		step{"update_plan", `{"steps": [{"step": "look", "status": "completed"}, {"step": "write", "status": "completed"}]}`},
		step{"", "Now I am done."},
	), builtIn("structured-planning", ""))
	if got := k.say("go"); got.Content != "Now I am done." || got.Status != "completed" {
		t.Errorf("%+v", got)
	}
	if len(asked) != 4 || !strings.Contains(said(&asked[2]), "open steps: look; write") {
		t.Errorf("asked %d times, then %q", len(asked), said(&asked[2]))
	}
	events := k.those("plan,reminder")
	if len(events) != 3 || events[0].Plan.Steps[0].Status != "in_progress" || *events[0].ToolUseID == "" || !strings.Contains(*events[1].Content, "open steps") || events[2].Plan.Steps[1].Status != "completed" {
		t.Errorf("%+v", events)
	}
	k.say("again") // the conversation with the reminder is read again
	if q := asked[4]; len(q.Items) != 9 || !strings.Contains(q.Items[4].Message.Parts[0].Text, "open steps") {
		t.Errorf("the next turn begins with %d items: %+v", len(q.Items), q.Items)
	}
}

// TestPlanLeftOpen: a turn whose model does not continue ends as incomplete, and one whose model
// says why as it wants to.
func TestPlanLeftOpen(t *testing.T) {
	var asked []model.Request
	open := `{"steps": [{"step": "look", "status": "pending"}]`
	k := openWith(t, "{}", script(&asked, step{"update_plan", open + `}`}, step{"", "no"}, step{"", "no"}, step{"", "no"}, step{"", "no"},
		step{"update_plan", open + `, "why_open": "You have to tell me where."}`}, step{"", "Where?"}), builtIn("structured-planning", ""))
	if got := k.say("go"); got.Status != "incomplete" || got.Error == nil || got.Error.Code != "open_steps" || len(asked) != 5 {
		t.Errorf("%+v after %d", got, len(asked))
	}
	if got := k.say("continue"); got.Status != "completed" || got.Content != "Where?" {
		t.Errorf("%+v", got)
	}
	if events := k.those("plan"); len(events) != 2 || *events[1].Plan.WhyOpen != "You have to tell me where." {
		t.Errorf("%+v", events)
	}
}

func TestBadPlans(t *testing.T) {
	var asked []model.Request
	k := openWith(t, "{}", script(&asked, step{"update_plan", `{"steps": []}`}, step{"update_plan", `{"steps": [{"step": "a", "status": "soon"}]}`},
		step{"update_plan", `{"steps": [{"step": "a", "status": "completed"}, {"step": "b", "status": "completed"}]}`}, step{"", "ok"}), builtIn("structured-planning", `{"max_steps": 1}`))
	k.say("go")
	for i, e := range k.those("tool_result") {
		if !*e.IsError || !strings.Contains(*e.Content, []string{"1 to 1 steps", "status must be", "1 to 1 steps"}[i]) {
			t.Errorf("%d: %s", i, *e.Content)
		}
	}
	if events := k.those("plan"); len(events) != 0 {
		t.Errorf("%+v", events)
	}
}

// TestReflection: answers are reviewed until one is good enough, or the bound is reached. Reviews
// are charged as a part of the turn.
func TestReflection(t *testing.T) {
	var asked []model.Request
	k := openWith(t, "{}", script(&asked, step{"", "bad"}, step{"", `{"score": 0.4, "feedback": "Say more."}`}, step{"", "better"}, step{"", "Here: {\"score\": 0.9, \"feedback\": \"\"}"},
		step{"", "x"}, step{"", `{"score": 0, "feedback": "no"}`}, step{"", "y"}, step{"", `{"score": 0.1, "feedback": "no"}`}, step{"", "z"}, step{"", "I cannot say."}),
		builtIn("reflection-loop", `{"max_iterations": 2, "quality_threshold": 0.8, "rubric": "Is it kind?"}`))
	got := k.say("write")
	if got.Content != "better" || got.Usage.InputTokens != 40 || got.Usage.OutputTokens != 20 {
		t.Errorf("%+v", got)
	}
	if q := asked[1]; !strings.Contains(q.Instructions, "Is it kind?") || !strings.Contains(said(&q), "<answer>\nbad\n</answer>") || !strings.Contains(said(&q), "<question>\nwrite") || len(q.Tools) > 0 {
		t.Errorf("the reviewer is asked %+v", q)
	}
	if !strings.Contains(said(&asked[2]), "Say more.") {
		t.Errorf("the model is told %q", said(&asked[2]))
	}
	if got := k.say("again"); got.Content != "y" {
		t.Errorf("%+v", got)
	}
	if got := k.say("and again"); got.Content != "z" || got.Status != "completed" {
		t.Errorf("%+v", got)
	}
	reviews := k.those("review")
	if len(reviews) != 5 {
		t.Fatalf("%d reviews", len(reviews))
	}
	for i, want := range []string{"1 0.4 false Say more.", "2 0.9 true ", "1 0 false no", "2 0.1 false no"} {
		if r := reviews[i].Review; fmt.Sprint(r.Iteration, " ", r.Score, " ", r.Passed, " ", r.Feedback) != want {
			t.Errorf("review %d is %+v", i, r)
		}
	}
	if r := reviews[4].Review; r.Error == nil || r.Passed {
		t.Errorf("%+v", r)
	}
}

// TestState: the document is there in later turns, within its bound.
func TestState(t *testing.T) {
	var asked []model.Request
	k := openWith(t, "{}", script(&asked, step{"save_state", `{"document": "found: 3"}`}, step{"", "ok"}, step{"read_state", `{}`}, step{"save_state", fmt.Sprintf(`{"document": %q}`, strings.Repeat("x", 1025))}, step{"", "ok"}),
		builtIn("long-running-state", `{"max_state_size_kb": 1}`))
	if strings.Contains(k.context().Instructions, "<state>") {
		t.Error("there is a state before one was saved")
	}
	k.say("go")
	k.say("continue")
	if !strings.Contains(asked[2].Instructions, "<state>\nfound: 3\n</state>") {
		t.Errorf("the later turn is told %q", asked[2].Instructions)
	}
	results := k.those("tool_result")
	if len(results) != 3 || *results[1].Content != "found: 3" || !*results[2].IsError || !strings.Contains(*results[2].Content, "may have 1024") {
		t.Errorf("%+v", results)
	}
	if saved := k.those("state"); len(saved) != 1 || *saved[0].Content != "found: 3" {
		t.Errorf("%+v", saved)
	}
}

// TestFolders: a tenant's skill is described in the prompt and read when needed, and a turn of an
// agent whose skill is gone is refused.
func TestFolders(t *testing.T) {
	var asked []model.Request
	b := skilltest.Bundle(t, "report", "Writes reports.")
	k2 := &skill.Skill{ID: skill.NewID(), Latest: skill.Version{ID: skill.NewVersionID()}}
	k := openWith(t, `{"Deny": ["update_plan"], "Allow": ["sandbox"]}`, script(&asked, step{"read_skill", `{"skill": "report"}`}, step{"read_skill", `{"skill": "report", "path": "references/form.txt"}`},
		step{"read_skill", `{"skill": "report", "path": "../x"}`}, step{"read_skill", `{"skill": "other"}`}, step{"", "ok"}),
		agent.Skill{Name: "report", ID: k2.ID, Version: k2.Latest.ID}, builtIn("structured-planning", ""))
	k2.Tenant = k.Caller.Tenant.ID
	k.ask(http.StatusConflict, "GET", k.path+"/context", "", nil)
	k.post(http.StatusConflict, `{"type": "message", "content": "go"}`)
	if err := k.skills.Create(t.Context(), k2, b, skill.Limits{}); err != nil {
		t.Fatal(err)
	}
	shown := k.context()
	if !strings.Contains(shown.Instructions, "- report: Writes reports.") || !strings.Contains(shown.Instructions, "/skills/NAME") || *shown.Skills[0].Folder != "/skills/report" {
		t.Errorf("%+v", shown)
	}
	for _, tool := range shown.Tools {
		if tool.Name == "update_plan" {
			t.Error("a tool that is denied is there")
		}
	}
	k.say("go")
	if asked[0].Instructions != shown.Instructions || len(asked[0].Tools) != len(shown.Tools) {
		t.Errorf("the model is told %q with %d tools, shown was %q with %d", asked[0].Instructions, len(asked[0].Tools), shown.Instructions, len(shown.Tools))
	}
	for i, want := range []string{"Read references/form.txt.", "Dear customer", "has no file", "You have no skill"} {
		if e := k.those("tool_result")[i]; !strings.Contains(*e.Content, want) || *e.IsError != (i > 1) {
			t.Errorf("%d: %s", i, *e.Content)
		}
	}
}

// TestCodeExecution: an agent with the skill has the sandbox.
func TestCodeExecution(t *testing.T) {
	var asked []model.Request
	k := openWith(t, "{}", script(&asked, step{"", "ok"}), builtIn("code-execution", `{"max_attempts": 2}`))
	if shown := k.context(); !strings.Contains(shown.Instructions, "up to 2 times") || len(shown.Tools) < 5 {
		t.Errorf("%+v", shown)
	}
}
