package sandboxtool

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/agent/loop/looptest"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
)

// TestCheck: the check of an outcome is code of the shell, as run_code runs it, and is told
// without its middle.
func TestCheck(t *testing.T) {
	o := &run.Outcome{}
	if CheckOf(o) != nil {
		t.Error("an outcome without a check has one")
	}
	var err error
	if o.Check, err = NewCheck(Tools(), &Check{Command: new("make test"), TimeoutMS: new(int64(1500))}); err != nil {
		t.Fatal(err)
	}
	if c := CheckOf(o); *c.Command != "make test" || *c.TimeoutMS != 1500 || o.Check.Tool.Approve || o.Check.Tool.Uncounted || !o.Check.Tool.Window {
		t.Errorf("%+v of %+v", c, o.Check)
	}
	w := &world{end: looptest.Ended(execution.Failed, strings.Repeat("é", 20_000)+"the end")}
	w.end.ExitCode = 2
	out, err := w.do(t, o.Check.Tool.Name, o.Check.Arguments)
	if err != nil {
		t.Fatal(err)
	}
	if w.asked.Code != "make test" || w.asked.Language != execution.Bash || w.asked.Timeout != 1500*time.Millisecond || w.call.Web {
		t.Errorf("asked for %+v", w.asked)
	}
	if text := looptest.Text(out); !out.Result.Failed || !strings.HasPrefix(text, "Exit code 2") || !strings.HasSuffix(strings.TrimSpace(text), "the end") || len(text) > checkHead+checkTail+10 || !utf8.ValidString(text) {
		t.Errorf("%d bytes: %.100s", len(text), text)
	}
	if r := out.Item.Code.Results[0]; r.ExitCode != 2 || out.Item.Code.Language != "bash" {
		t.Errorf("%+v", out.Item.Code)
	}
	w.end = looptest.Ended(execution.Success, "ok")
	if out, _ := w.do(t, o.Check.Tool.Name, `{"command": "true"}`); out.Result.Failed || w.asked.Timeout != 10*time.Second {
		t.Errorf("%+v, asked for %+v", out, w.asked)
	}
	shell := []run.Tool{{Tool: model.Tool{Name: "shell", Description: "runs"}, Handler: "sandboxes", Serial: true}}
	if o.Check, err = NewCheck(shell, &Check{Command: new("make test")}); err != nil || o.Check.Tool.Handler != "sandboxes" || o.Check.Tool.Name != "shell" || o.Check.Tool.Approve || o.Check.Arguments != `{"command":"make test"}` {
		t.Errorf("with named sandboxes: %+v, %v", o.Check, err)
	}
	asks := Tools()
	for i := range asks {
		asks[i].Approve = true
	}
	if _, err := NewCheck(asks, &Check{Command: new("true")}); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "require_confirmation") {
		t.Errorf("with a sandbox whose calls are confirmed: %v", err)
	}
	if c, err := NewCheck(append(asks, shell...), &Check{Command: new("true")}); err != nil || c.Tool.Handler != "sandboxes" {
		t.Errorf("with a shell that needs no confirmation beside it: %+v, %v", c, err)
	}
	if _, err := NewCheck(nil, &Check{Command: new("true")}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("without a sandbox: %v", err)
	}
	for _, tool := range Tools() {
		if tool.Name == checkName {
			t.Error("models are given the check")
		}
	}
}
