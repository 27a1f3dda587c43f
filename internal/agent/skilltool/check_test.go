package skilltool

import (
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
)

// state is of a run with a skill in which calls were made, each a tool and whether it failed.
func state(of, config string, calls ...any) *run.State {
	s := run.NewState(run.NewID())
	s.Request = &run.Request{Skills: []run.Skill{{Name: of, Config: []byte(config)}}, Input: []model.Item{model.Text(model.User, "go")}, Before: 0}
	s.Began = time.Unix(1000, 0)
	s.Conversation = append(s.Conversation, s.Request.Input...)
	for i := 0; i < len(calls); i += 2 {
		id := string(rune('a' + i))
		s.Conversation = append(s.Conversation, model.Item{Call: &model.Call{ID: id, Name: calls[i].(string), Arguments: "{}"}},
			model.Item{Result: &model.Result{CallID: id, Failed: calls[i+1].(bool)}})
	}
	return s
}

func check(t *testing.T, s *run.State, after time.Duration) *run.Checked {
	t.Helper()
	c, err := new(Skills).Check(t.Context(), &loop.Check{Run: &run.Run{}, State: s, Now: s.Began.Add(after)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCheckState(t *testing.T) {
	const config = `{"checkpoint_interval_ms": 30000}`
	for what, c := range map[string]struct {
		calls []any
		after time.Duration
		says  bool
	}{
		"nothing was done":         {nil, time.Hour, false},
		"before the interval":      {[]any{"run_code", false}, 29 * time.Second, false},
		"work that is not saved":   {[]any{"run_code", false}, 30 * time.Second, true},
		"work after it was saved":  {[]any{"save_state", false, "run_code", true}, time.Minute, true},
		"a save that failed":       {[]any{"run_code", false, "save_state", true}, time.Minute, true},
		"work before it was saved": {[]any{"run_code", false, "save_state", false, "read_state", false}, time.Minute, false},
	} {
		s := state(State, config, c.calls...)
		said := check(t, s, c.after)
		if (said != nil) != c.says || said != nil && (said.Say == nil || said.Kind != run.EventReminder) {
			t.Errorf("%s: %+v", what, said)
		}
		if said != nil {
			s.Checks = append(s.Checks, *said)
			if again := check(t, s, c.after); again != nil {
				t.Errorf("%s: again %+v", what, again)
			}
		}
	}
}

func TestCheckCode(t *testing.T) {
	const config = `{"max_attempts": 2}`
	for what, c := range map[string]struct {
		calls    []any
		reminded int
		says     bool
	}{
		"no program":                     {[]any{"write_file", true}, 0, false},
		"one that failed":                {[]any{"run_code", true}, 0, true},
		"one that was mended":            {[]any{"run_code", true, "run_code", false}, 0, false},
		"one that the model leaves":      {[]any{"run_code", true}, 1, false},
		"another that failed":            {[]any{"run_code", true, "run_code", true}, 1, true},
		"as many as the bound":           {[]any{"run_code", true, "run_code", true, "run_code", true}, 2, false},
		"a tool of files after it fails": {[]any{"run_code", true, "read_file", false}, 0, true},
	} {
		s := state(Code, config, c.calls...)
		for range c.reminded {
			s.Checks = append(s.Checks, run.Checked{Kind: run.EventReminder, Note: run.Note{Skill: Code}})
		}
		if said := check(t, s, 0); (said != nil) != c.says {
			t.Errorf("%s: %+v", what, said)
		}
	}
}

// TestPlanOf: a plan that was refused, and a call without a result, are none.
func TestPlanOf(t *testing.T) {
	call := func(id, arguments string) model.Item {
		return model.Item{Call: &model.Call{ID: id, Name: PlanTool, Arguments: arguments}}
	}
	result := func(id string, failed bool) model.Item {
		return model.Item{Result: &model.Result{CallID: id, Failed: failed}}
	}
	const first, second = `{"steps": [{"step": "a", "status": "pending"}]}`, `{"steps": [{"step": "b", "status": "completed"}]}`
	for want, items := range map[string][]model.Item{
		"a": {call("1", first), result("1", false), call("2", second), result("2", true), call("3", second)},
		"b": {call("1", first), result("1", false), call("2", second), result("2", false)},
		"":  {call("1", `{"steps": 7}`), result("1", false)},
	} {
		got := ""
		if p := planOf(items); p != nil {
			got = p.Steps[0].Step
		}
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
