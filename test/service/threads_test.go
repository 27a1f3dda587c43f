package service

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/test/scriptedmodel"
)

// handOut is what a model says that hands work to agents side by side: their names, and what they are
// to do.
func handOut(tasks ...[2]string) (turn scriptedmodel.Turn, ok bool) {
	turn.Usage = &model.Usage{Input: 10, Output: 5}
	for _, one := range tasks {
		task, err := json.Marshal(map[string]string{"task": one[1]})
		if err != nil {
			return turn, false
		}
		turn.Blocks = append(turn.Blocks, scriptedmodel.Block{Call: &scriptedmodel.Call{ID: "call_" + one[0], Name: "handoff_to_" + one[0], Arguments: []string{string(task)}}})
	}
	return turn, true
}

// coordinating is a provider whose model hands work to two agents after "both".
func coordinating(t *testing.T) *httptest.Server {
	p := httptest.NewServer(&scriptedmodel.Provider{Next: func(r scriptedmodel.Request) (scriptedmodel.Turn, bool) {
		said, result := conversation(r.Body)
		switch {
		case strings.Contains(fmt.Sprint(r.Body["instructions"]), "Write a summary"):
			return scriptedmodel.Say("The user wants both."), true
		case said == "both" && result == "":
			return handOut([2]string{"research", "say facts"}, [2]string{"writer", "words"})
		case said == "ask" && result == "":
			return handOut([2]string{"asker", "weather"})
		case said == "words":
			turn := scriptedmodel.Say("")
			turn.Blocks[0].Text, turn.Pace = strings.SplitAfter(strings.Repeat("a word ", 20), "word "), 200*time.Millisecond
			return turn, true
		}
		return obey(said, result)
	}})
	t.Cleanup(p.Close)
	return p
}

// TestPublishedClientOnThreads drives Anthropic's clients as they are published through a coordinator
// and the threads of its session, and that for TypeScript through all that sessions are made from.
func TestPublishedClientOnThreads(t *testing.T) {
	s := shared(t)
	key := s.Tenant(t, "threads", "enterprise")
	lendModel(t, s, "threads", coordinating(t).URL, model.Capabilities...)
	env := []string{"ATOLL_URL=" + s.URL, "ATOLL_KEY=" + key, "ATOLL_MODEL=threads", "ATOLL_ASK=both"}
	admin, tenant := s.AdminKey(t), "/v1/admin/tenants/threads"
	s.Must(t, admin, http.MethodPatch, tenant, map[string]any{"network_enabled": true}).Into(t, http.StatusOK, nil)
	var owner struct{ Key string }
	s.Must(t, admin, http.MethodPost, tenant+"/keys", map[string]any{"name": "owner", "environment": "main", "scopes": []string{"execute", "read", "environments"}}).Into(t, http.StatusCreated, &owner)
	if said := program(t, filepath.Join("clients", "managed_resources.mjs"), append(env, "ATOLL_OWNER="+owner.Key)...); said != "agents\nenvironments\nskills\nfiles\nvaults\nthreads\nend\n" {
		t.Errorf("the client for TypeScript said %q", said)
	}
	out := python(t, filepath.Join("clients", "threads_client.py"), env...)
	if said := strings.Join(strings.Fields(out), " "); said != "coordinator session threads events refused waits" {
		t.Errorf("it said %q", said)
	}
}

// killedWait kills the server while a call of an agent that work was handed to waits, and after it
// was answered: the agent goes on in the next server, in the same thread, and its program runs once.
func killedWait(t *testing.T) {
	p := httptest.NewServer(&scriptedmodel.Provider{Next: func(r scriptedmodel.Request) (scriptedmodel.Turn, bool) {
		said, result := conversation(r.Body)
		if strings.HasPrefix(said, "hand on ") && result == "" {
			return handOut([2]string{"worker", strings.TrimPrefix(said, "hand on ")})
		}
		return obey(said, result)
	}})
	t.Cleanup(p.Close)
	line := newSuccession(t, "ATOLL_MODEL_ALLOW=127.0.0.1")
	k := &talker{t, line, line.now().Tenant(t, "waits", "pro"), ""}
	addModel(t, line.now(), "scripted", p.URL)
	k.begin(map[string]any{"slug": "worker", "tools": []any{map[string]string{"type": "sandbox"}}, "tool_policy": map[string]any{"require_confirmation": []string{"sandbox"}}})
	k = k.begin(map[string]any{"slug": "lead", "multiagent": map[string]any{"context_sharing": "full"}, "handoffs": []any{map[string]string{"agent_id": "worker", "name": "Worker"}}})
	const code = "open('ran', 'a').write('x')\nimport time\ntime.sleep(6)\nprint('ran', open('ran').read())"
	waits := k.send(message("hand on run "+code), "requires_action", "").RequiresAction
	if len(waits) != 1 || waits[0].Name != "run_code" || waits[0].Needs != "tool_confirmation" {
		t.Fatalf("%+v", waits)
	}
	line.next(syscall.SIGKILL)
	answer := map[string]any{"type": "tool_confirmation", "tool_use_id": waits[0].ToolUseID, "approve": true}
	a, err := line.now().Call(t.Context(), k.key, http.MethodPost, k.path+"/events", answer, http.Header{"Prefer": {"respond-async"}})
	if err != nil || a.Status != http.StatusAccepted {
		t.Fatalf("%v, %+v", err, a)
	}
	underWay(t, k)
	line.next(syscall.SIGKILL)
	k.until("idle")
	all := k.events("&order=desc")
	if all[0].StopReason.Type != "end_turn" || !strings.Contains(all[2].Content, "ran x") || strings.Contains(all[2].Content, "ran xx") {
		t.Errorf("%s, %s", all[0].raw, all[2].raw)
	}
	var page struct{ Data []struct{ Status string } }
	line.now().Must(t, k.key, http.MethodGet, k.path+"/threads", nil).Into(t, http.StatusOK, &page)
	if len(page.Data) != 1 || page.Data[0].Status != "idle" {
		t.Errorf("%+v", page)
	}
}
