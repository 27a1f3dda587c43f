package service

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
	"github.com/atoll-run/atoll/test/scriptedmodel"
)

// TestOwnSandboxes has two agents work in sandboxes of their own, side by side and with the same file:
// neither sees the other's, nor does the agent that handed on, and both sandboxes end with the work.
func TestOwnSandboxes(t *testing.T) {
	const code = "import os, time\nopen('mine', 'a').write('x')\ntime.sleep(0.5)\nprint(sorted(os.listdir()), open('mine').read())"
	p := httptest.NewServer(&scriptedmodel.Provider{Next: func(r scriptedmodel.Request) (scriptedmodel.Turn, bool) {
		said, result := conversation(r.Body)
		if said != "both" || result != "" {
			return obey(said, result)
		}
		return handOut([2]string{"a", "run " + code}, [2]string{"b", "run " + code})
	}})
	t.Cleanup(p.Close)
	s := atolltest.Start(t, atolltest.Options{Env: []string{noPool, "ATOLL_MODEL_ALLOW=127.0.0.1"}})
	addModel(t, s, "scripted", p.URL)
	k := &talker{t, &succession{TB: t, server: s}, s.Tenant(t, "own", "pro"), ""}
	sandbox := []any{map[string]string{"type": "sandbox"}}
	var handoffs []any
	for _, slug := range []string{"a", "b"} {
		k.begin(map[string]any{"slug": slug, "tools": sandbox})
		handoffs = append(handoffs, map[string]string{"agent_id": slug, "name": slug})
	}
	k = k.begin(map[string]any{"slug": "lead", "tools": sandbox, "handoffs": handoffs, "multiagent": map[string]any{"parallel": true, "context_sharing": "full", "sandbox": "own"}})
	turn := k.send(message("both"), "completed", "")
	if n := strings.Count(turn.Content, "'mine'] x\n"); n != 2 {
		t.Errorf("%d of two have worked alone: %s", n, turn.Content)
	}
	atolltest.Until(t, 30*time.Second, "their sandboxes end", func() bool {
		return s.Metrics(t).Sum("atoll_turns") == 0
	})
	if turn = k.send(message("run import os; print('here', os.listdir())"), "completed", ""); !strings.Contains(turn.Content, "here ['main.py']") {
		t.Errorf("the agent that handed on has %s", turn.Content)
	}
	if n := s.Metrics(t).Sum("atoll_turns"); n != 1 {
		t.Errorf("%v sandboxes are left, one was wanted", n)
	}
}

// TestOwnSandboxWaits has an agent with a sandbox of its own wait for the client between two programs:
// the second one has the first one's file, and the sandbox ends after it.
func TestOwnSandboxWaits(t *testing.T) {
	s := atolltest.Start(t, atolltest.Options{Env: []string{noPool, "ATOLL_MODEL_ALLOW=127.0.0.1"}})
	addModel(t, s, "scripted", planner(t).URL)
	k := &talker{t, &succession{TB: t, server: s}, s.Tenant(t, "own", "pro"), ""}
	k.begin(map[string]any{"slug": "worker", "tools": []any{map[string]string{"type": "sandbox"}}, "tool_policy": map[string]any{"require_confirmation": []string{"write_file"}}})
	k = k.begin(map[string]any{"slug": "lead", "multiagent": map[string]any{"context_sharing": "full", "sandbox": "own"}, "handoffs": []any{map[string]string{"agent_id": "worker", "name": "Worker"}}})
	python := func(code string) toolStep {
		return toolStep{"run_code", map[string]any{"language": "python", "code": code}}
	}
	steps := func(all ...toolStep) string {
		text, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	task := steps(python("open('before', 'w').write('first')"), toolStep{"write_file", map[string]any{"file_path": "between", "content": "second"}}, python("print(open('before').read(), open('between').read())"))
	waits := k.send(message(steps(toolStep{"handoff_to_worker", map[string]any{"task": task}})), "requires_action", "").RequiresAction
	if n := s.Metrics(t).Sum("atoll_turns"); len(waits) != 1 || waits[0].Name != "write_file" || n != 1 {
		t.Fatalf("%+v with %v sandboxes", waits, n)
	}
	turn := k.send(map[string]any{"type": "tool_confirmation", "tool_use_id": waits[0].ToolUseID, "approve": true}, "completed", "")
	if !strings.Contains(turn.Content, "first second") {
		t.Errorf("after the wait it has %s", turn.Content)
	}
	atolltest.Until(t, 30*time.Second, "its sandbox ends", func() bool { return s.Metrics(t).Sum("atoll_turns") == 0 })
}
