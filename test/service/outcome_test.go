package service

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
	"github.com/atoll-run/atoll/test/scriptedmodel"
)

// works answers for an agent that is told what its outcome lacks, and for who grades it. ok is
// false for other requests.
func works(body map[string]any, said, result string) (turn scriptedmodel.Turn, ok bool) {
	told, _ := body["instructions"].(string)
	switch {
	case strings.HasPrefix(told, "You grade") && strings.Contains(said, "<answer>\nbetter"):
		return scriptedmodel.Say(`{"result": "satisfied", "explanation": "It is better."}`), true
	case strings.HasPrefix(told, "You grade"):
		return scriptedmodel.Say(`{"result": "needs_revision", "explanation": "Make it better."}`), true
	case strings.Contains(said, "The check did not pass") && result == "":
		return scriptedmodel.Ask("call_1", "run_code", `{"language": "python", "code": "open('done', 'w').close()"}`), true
	case strings.HasPrefix(said, "[This is from the platform"):
		return scriptedmodel.Say("better"), true
	}
	return turn, false
}

// outcomes has an agent work until a check in its sandbox passes and a grader is content. The
// server is killed while the check runs, which is made once all the same.
func outcomes(t *testing.T, k *talker) {
	define := map[string]any{
		"type": "user.define_outcome", "description": "say draft", "rubric": "Is it better?", "max_iterations": 3,
		"check": map[string]any{"command": "echo x >> count; sleep 6; test -f done", "timeout_ms": 20000},
	}
	cut, checked := make(chan error, 1), make(chan struct{})
	checks := sync.OnceFunc(func() { close(checked) })
	go func() {
		cut <- k.follow(t.Context(), http.MethodPost, "/events", define, "", func(e sessionEvent) bool {
			if e.Type == "outcome_evaluation_start" {
				checks()
			}
			return true
		})
	}()
	atolltest.Heard(t, checked, "an evaluation begins")
	underWay(t, k)
	k.line.next(syscall.SIGKILL)
	if err := atolltest.Heard(t, cut, "the stream of the killed server ends"); err == nil {
		t.Error("the stream ended as if the turn had")
	}
	k.until("idle")
	var said []string
	for _, e := range k.events("&types=message,tool_use,outcome_evaluation_start,outcome_evaluation_ongoing,outcome_evaluation_end,status") {
		what := e.Type
		for _, result := range []string{"needs_revision", "satisfied"} {
			if strings.Contains(e.raw, `"result":"`+result+`"`) {
				what += " " + result
			}
		}
		said = append(said, what)
	}
	want := []string{
		"status", "message", "outcome_evaluation_start", "outcome_evaluation_end needs_revision", "tool_use", "message",
		"outcome_evaluation_start", "outcome_evaluation_ongoing", "outcome_evaluation_end satisfied", "status",
	}
	if !slices.Equal(said, want) {
		t.Errorf("%q, want %q", said, want)
	}
	k.send(message("run print(open('count').read().count('x'), 'checks')"), "completed", "2 checks")
	k.post(map[string]any{"type": "user.define_outcome", "description": "say x", "check": map[string]any{"command": "exit 3", "timeout_ms": 20000}, "max_iterations": 1}).Into(t, http.StatusOK, &struct{}{})
	if all := k.events("&types=outcome_evaluation_end"); !strings.Contains(all[len(all)-1].raw, "Exit code 3") || !strings.Contains(all[len(all)-1].raw, "max_iterations_reached") {
		t.Errorf("%s", all[len(all)-1].raw)
	}
	define["check"] = map[string]any{"command": "sleep 60", "timeout_ms": 60000}
	before, ended := k.newest(), make(chan struct{})
	go func() {
		defer close(ended)
		k.post(define)
	}()
	k.reach(before, func(e sessionEvent) bool { return e.Type == "outcome_evaluation_start" })
	underWay(t, k)
	k.line.now().Must(k, k.key, http.MethodPost, k.path+"/interrupt", nil).Into(t, http.StatusOK, nil)
	began := time.Now()
	atolltest.Heard(t, ended, "the interrupted turn ends")
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("a check ended %s after its turn was interrupted", took)
	} else {
		t.Logf("a check ended %s after its turn was interrupted", took)
	}
	if all := k.events("&types=outcome_evaluation_end"); !strings.Contains(all[len(all)-1].raw, "interrupted") {
		t.Errorf("%s", all[len(all)-1].raw)
	}
	k.send(message("run print(open('count').read().count('x'), 'checks')"), "completed", "2 checks")
}
