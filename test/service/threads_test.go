package service

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/agent/model/scriptedmodel"
	"github.com/atoll-run/atoll/internal/core/model"
)

// coordinating is a provider whose model hands work to two agents after "both".
func coordinating(t *testing.T) *httptest.Server {
	p := httptest.NewServer(&scriptedmodel.Provider{Next: func(r scriptedmodel.Request) (scriptedmodel.Turn, bool) {
		said, result := conversation(r.Body)
		switch {
		case strings.Contains(fmt.Sprint(r.Body["instructions"]), "Write a summary"):
			return scriptedmodel.Say("The user wants both."), true
		case said == "both" && result == "":
			turn := scriptedmodel.Turn{Usage: &model.Usage{Input: 10, Output: 5}}
			for _, one := range [][2]string{{"research", "say facts"}, {"writer", "words"}} {
				task, err := json.Marshal(map[string]string{"task": one[1]})
				if err != nil {
					return turn, false
				}
				turn.Blocks = append(turn.Blocks, scriptedmodel.Block{Call: &scriptedmodel.Call{ID: "call_" + one[0], Name: "handoff_to_" + one[0], Arguments: []string{string(task)}}})
			}
			return turn, true
		case said == "words":
			turn := scriptedmodel.Say("")
			turn.Blocks[0].Text, turn.Pace = strings.SplitAfter(strings.Repeat("a word ", 20), "word "), 100*time.Millisecond
			return turn, true
		}
		return obey(said, result)
	}})
	t.Cleanup(p.Close)
	return p
}

// TestPublishedClientOnThreads drives Anthropic's client as it is published through a coordinator and
// the threads of its session.
func TestPublishedClientOnThreads(t *testing.T) {
	s := shared(t)
	key := s.Tenant(t, "threads", "enterprise")
	lendModel(t, s, "threads", coordinating(t).URL, model.Capabilities...)
	out := python(t, filepath.Join("clients", "threads_client.py"), "ATOLL_URL="+s.URL, "ATOLL_KEY="+key, "ATOLL_MODEL=threads")
	if said := strings.Join(strings.Fields(out), " "); said != "coordinator session threads events refused" {
		t.Errorf("it said %q", said)
	}
}
