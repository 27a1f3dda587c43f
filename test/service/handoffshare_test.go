package service

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
	"github.com/atoll-run/atoll/test/scriptedmodel"
)

// handing is a provider whose model hands work to three agents, one of which runs a program.
func handing(t *testing.T) *httptest.Server {
	p := httptest.NewServer(&scriptedmodel.Provider{Next: func(r scriptedmodel.Request) (scriptedmodel.Turn, bool) {
		said, result := conversation(r.Body)
		switch {
		case strings.Contains(fmt.Sprint(r.Body["instructions"]), "Write a summary"):
			return scriptedmodel.Say("The user wants all three."), true
		case said == "all three" && result == "":
			return handOut([2]string{"w0", "say facts"}, [2]string{"w1", "slow words"}, [2]string{"w2", "run import time; time.sleep(10); print(6 * 7)"})
		case said == "slow words":
			turn := scriptedmodel.Say("words")
			turn.Wait = 10 * time.Second // until long after the kill
			return turn, true
		}
		return obey(said, result)
	}})
	t.Cleanup(p.Close)
	return p
}

// handedOn begins a turn in one server whose work three agents do side by side, and returns once all of
// them have begun. What it returns reads the events in another server, up to the end of the turn.
func handedOn(t *testing.T, victim, survivor *atolltest.Server) (read func()) {
	t.Helper()
	addModel(t, survivor, "handing", handing(t).URL)
	first := &talker{t, &succession{TB: t, server: victim}, atolltest.Key, ""}
	var handoffs []any
	for i := range 3 {
		slug := fmt.Sprint("w", i)
		first.begin(map[string]any{"slug": slug, "model": map[string]string{"name": "handing"}, "tools": []any{map[string]string{"type": "sandbox"}}})
		handoffs = append(handoffs, map[string]string{"agent_id": slug, "name": slug})
	}
	// A call of a machine that is lost ends after a minute, which is all that a hand-off has by default.
	begun := first.begin(map[string]any{"model": map[string]string{"name": "handing"}, "multiagent": map[string]any{"parallel": true, "timeout_per_handoff_ms": 180_000}, "handoffs": handoffs})
	if err := beginTurn(t, begun, "all three", &struct{}{}); err != nil {
		t.Fatal(err)
	}
	k := &talker{t, &succession{TB: t, server: survivor}, begun.key, begun.path}
	opened := make(chan struct{})
	failed := make(chan error, 1)
	var told []sessionEvent
	go func() {
		threads := 0
		failed <- k.follow(t.Context(), http.MethodGet, "/events/stream", nil, "", func(e sessionEvent) bool {
			told = append(told, e)
			if e.Type == "thread_created" {
				if threads++; threads == 3 {
					close(opened)
				}
			}
			return e.Status != "idle"
		})
	}()
	select {
	case <-opened:
	case err := <-failed:
		t.Fatalf("the turn ended early: %v", err)
	case <-time.After(time.Minute):
		t.Fatalf("no three threads\n%s", victim.Log())
	}
	return func() {
		if err := atolltest.Heard(t, failed, "the turn ends"); err != nil {
			t.Fatal(err)
		}
		k.readAgain(told)
		kinds := map[string]int{}
		for _, e := range told {
			kinds[e.Type]++
		}
		if last := told[len(told)-1]; last.StopReason.Type != "end_turn" || kinds["thread_created"] != 3 || kinds["thread_idle"] != 3 {
			t.Errorf("the turn ended with %s after\n%s", last.raw, strings.Join(raws(told), "\n"))
		}
		var page struct {
			Data []struct {
				Status, Name string
				Usage        struct {
					Output int64 `json:"output_tokens"`
				}
			}
		}
		survivor.Must(t, k.key, http.MethodGet, k.path+"/threads", nil).Into(t, http.StatusOK, &page)
		if len(page.Data) != 3 {
			t.Errorf("it has %d threads", len(page.Data))
		}
		for _, one := range page.Data {
			if one.Status != "idle" || one.Usage.Output == 0 {
				t.Errorf("%+v", one)
			}
		}
	}
}
