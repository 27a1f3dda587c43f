package service

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/agent/model/scriptedmodel"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/test/atolltest"
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
		turn := scriptedmodel.Turn{Usage: &model.Usage{Input: 10, Output: 5}}
		for _, who := range []string{"a", "b"} {
			task, err := json.Marshal(map[string]string{"task": "run " + code})
			if err != nil {
				return turn, false
			}
			turn.Blocks = append(turn.Blocks, scriptedmodel.Block{Call: &scriptedmodel.Call{ID: "call_" + who, Name: "handoff_to_" + who, Arguments: []string{string(task)}}})
		}
		return turn, true
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
