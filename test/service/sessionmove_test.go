package service

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"

	"github.com/atoll-run/atoll/test/scriptedmodel"
)

// TestSessionMoves stops servers in good order and starts the next: while nothing happens, while
// a call waits for the client, and while a turn runs code. Each session goes on, and so does what
// is in its sandbox, files and processes.
func TestSessionMoves(t *testing.T) {
	p := httptest.NewServer(&scriptedmodel.Provider{Next: func(r scriptedmodel.Request) (scriptedmodel.Turn, bool) {
		said, result := conversation(r.Body)
		if !strings.Contains(lastItem(r.Body), "function_call_output") {
			result = ""
		}
		return obey(said, result)
	}})
	t.Cleanup(p.Close)
	line := newSuccession(t, "ATOLL_MODEL_ALLOW=127.0.0.1")
	k := &talker{t, line, line.now().Tenant(t, "mover", "pro"), ""}
	addModel(t, line.now(), "scripted", p.URL)
	sandbox := []any{map[string]string{"type": "sandbox"}}
	idle := k.begin(map[string]any{"tools": sandbox})
	asking := k.begin(map[string]any{"tools": sandbox, "tool_policy": map[string]any{"require_confirmation": []string{"sandbox"}}})
	busy := k.begin(map[string]any{"tools": sandbox})

	idle.send(message("run "+peerProgram), "completed", "Exit code 0")
	idle.send(message("run "+peerStill), "completed", "words-of-another-session\nanswered")
	asked := asking.send(message("run print(6 * 7)"), "requires_action", "").RequiresAction[0].ToolUseID
	last := busy.newest()
	begun, err := line.now().Call(t.Context(), k.key, http.MethodPost, busy.path+"/events", message("run import time; time.sleep(2); print(17 * 3)"), http.Header{"Prefer": {"respond-async"}})
	if err != nil || begun.Status != http.StatusAccepted {
		t.Fatalf("%v %+v", err, begun)
	}
	busy.reach(last, func(e sessionEvent) bool { return e.Type == "tool_use" })
	line.next(syscall.SIGTERM)

	busy.reach(last, func(e sessionEvent) bool { return e.Status == "idle" })
	results := busy.events("&types=tool_result")
	if len(results) != 1 || !strings.Contains(results[0].Content, "51") {
		t.Errorf("the turn that was in progress has %+v", results)
	}
	asking.send(confirm(asked, true), "completed", "42")
	for range 2 {
		idle.send(message("run "+peerStill), "completed", "words-of-another-session\nanswered")
		line.next(syscall.SIGTERM)
	}
	asking.send(message("say on"), "completed", "on")
	said := idle.events("&types=message")
	if len(said) != 8 || said[0].Content != "run "+peerProgram {
		t.Errorf("%d messages: %+v", len(said), said)
	}
}
