package service

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
	"github.com/atoll-run/atoll/test/scriptedmodel"
)

// killedHandoffs kills the server while agents work side by side for another one. Each turn
// ends true in the next server: both have answered, no program ran twice, and what all of them
// used is the turn's.
func killedHandoffs(t *testing.T) {
	p := httptest.NewServer(&scriptedmodel.Provider{Next: func(r scriptedmodel.Request) (scriptedmodel.Turn, bool) {
		said, result := conversation(r.Body)
		told := fmt.Sprint(r.Body["instructions"])
		switch round, lead := strings.CutPrefix(said, "both "); {
		case strings.Contains(told, "Write a summary"):
			turn := scriptedmodel.Say("The user wants both.")
			turn.Wait = 200 * time.Millisecond
			return turn, true
		case lead && result == "":
			var tasks [][2]string
			for _, who := range []string{"a", "b"} {
				seconds := 1.5
				if round == "0" {
					seconds = 100
				}
				code := fmt.Sprintf("open('ran', 'a').write('%s%s ')\nimport time\ntime.sleep(%g)\nprint('%s%s is done')", who, round, seconds, who, round)
				tasks = append(tasks, [2]string{who, "run " + code})
			}
			return handOut(tasks...)
		}
		return obey(said, result)
	}})
	t.Cleanup(p.Close)
	line := newSuccession(t, "ATOLL_MODEL_ALLOW=127.0.0.1")
	k := &talker{t, line, line.now().Tenant(t, "handoffs", "pro"), ""}
	addModel(t, line.now(), "scripted", p.URL)
	sandbox := []any{map[string]string{"type": "sandbox"}}
	k.begin(map[string]any{"slug": "a", "tools": sandbox})
	k.begin(map[string]any{"slug": "b", "tools": sandbox})
	k = k.begin(map[string]any{
		"slug": "lead", "tools": sandbox, "multiagent": map[string]any{"parallel": true},
		"handoffs": []any{map[string]string{"agent_id": "a", "name": "A"}, map[string]string{"agent_id": "b", "name": "B"}},
	})
	type thread struct {
		ID, Status, Name string
		Turn             string `json:"turn_id"`
	}
	threads := func() []thread {
		var page struct{ Data []thread }
		line.now().Must(t, k.key, http.MethodGet, k.path+"/threads?limit=2", nil).Into(t, http.StatusOK, &page)
		return page.Data
	}
	count := func(of, kind string) int {
		var page struct{ Data []sessionEvent }
		line.now().Must(t, k.key, http.MethodGet, k.path+of+"/events?order=desc&types="+kind, nil).Into(t, http.StatusOK, &page)
		return len(page.Data)
	}
	points := []struct {
		name    string
		reached func(round int) bool
	}{
		{"both have begun", func(round int) bool { return count("", "thread_created") == 2*round }},
		{"one calls a tool", func(int) bool {
			for _, one := range threads() {
				if count("/threads/"+one.ID, "tool_use") > 0 {
					underWay(t, k)
					return true
				}
			}
			return false
		}},
		{"one is done", func(round int) bool { return count("", "thread_idle") >= 2*round-1 }},
		{"both are done", func(round int) bool { return count("", "thread_idle") == 2*round }},
	}
	var ran []string
	for i, point := range points[:atolltest.Count(3, len(points))] {
		round := i + 1
		var begun struct{ ID string }
		if err := beginTurn(t, k, fmt.Sprint("both ", round), &begun); err != nil {
			t.Fatal(err)
		}
		atolltest.Until(t, time.Minute, point.name, func() bool { return point.reached(round) })
		open := threads()[0]
		cut := make(chan []sessionEvent, 1)
		go func() { cut <- k.threadFrom(open.ID, "") }()
		line.next(syscall.SIGKILL)
		seen, last := atolltest.Heard(t, cut, "the stream of the killed server ends"), ""
		if len(seen) > 0 {
			last = seen[len(seen)-1].ID
		}
		seen = append(seen, k.threadFrom(open.ID, last)...)
		k.until("idle")
		var page struct{ Data []json.RawMessage }
		line.now().Must(t, k.key, http.MethodGet, k.path+"/threads/"+open.ID+"/events", nil).Into(t, http.StatusOK, &page)
		listed := make([]string, len(page.Data))
		for i, raw := range page.Data {
			listed[i] = string(raw)
		}
		if got := raws(seen); !slices.Equal(got, listed) || len(listed) == 0 {
			t.Errorf("%s: a thread was streamed from one server to the next as\n%s\nand is\n%s", point.name, strings.Join(got, "\n"), strings.Join(listed, "\n"))
		}
		all := k.events("&order=desc")
		if all[0].StopReason.Type != "end_turn" {
			t.Errorf("%s: %s", point.name, all[0].raw)
		}
		for _, who := range []string{"a", "b"} {
			ran = append(ran, fmt.Sprint(who, round))
			if done := fmt.Sprint(who, round, " is done"); !strings.Contains(all[2].Content, done) {
				t.Errorf("%s: %q lacks %q", point.name, all[2].Content, done)
			}
		}
		for _, one := range threads() {
			if one.Status != "idle" || one.Turn != begun.ID || count("/threads/"+one.ID, "tool_result") != 1 {
				t.Errorf("%s: %+v", point.name, one)
			}
		}
	}
	t.Run("interrupt", func(t *testing.T) { stopped(t, k.on(t)) })
	// In any order of those side by side, each program has run once.
	turn := k.send(message("run print(open('ran').read())"), "completed", "")
	for _, one := range ran {
		if strings.Count(turn.Content, one+" ") != 1 {
			t.Errorf("%s ran %d times: %s", one, strings.Count(turn.Content, one+" "), turn.Content)
		}
	}
}

// threadFrom follows a thread after an event until it has ended, or its server.
func (k *talker) threadFrom(thread, last string) (seen []sessionEvent) {
	_ = k.follow(k.Context(), http.MethodGet, "/threads/"+thread+"/events/stream", nil, last, func(e sessionEvent) bool { // the caller compares
		seen = append(seen, e)
		return true
	})
	return seen
}

// stopped interrupts a turn whose agents run programs: those end with it.
func stopped(t *testing.T, k *talker) {
	var begun struct{ ID string }
	if err := beginTurn(t, k, "both 0", &begun); err != nil {
		t.Fatal(err)
	}
	underWay(t, k)
	began := time.Now()
	k.line.now().Must(t, k.key, http.MethodPost, k.path+"/interrupt", nil).Into(t, http.StatusOK, nil)
	k.until("idle")
	if took := time.Since(began); took > 5*time.Second { // a second and what a busy machine adds
		t.Errorf("the turn ended %s after it was interrupted", took)
	}
	var page struct{ Data []record }
	k.line.now().Must(t, k.key, http.MethodGet, "/v1/executions?status=running", nil).Into(t, http.StatusOK, &page)
	if len(page.Data) != 0 {
		t.Errorf("programs continue: %+v", page.Data)
	}
}

// underWay returns once a program runs.
func underWay(t *testing.T, k *talker) {
	t.Helper()
	atolltest.Until(t, time.Minute, "a program runs", func() bool {
		var page struct{ Data []record }
		k.line.now().Must(t, k.key, http.MethodGet, "/v1/executions?status=running", nil).Into(t, http.StatusOK, &page)
		return len(page.Data) > 0
	})
}

// beginTurn begins a turn and does not wait for its end.
func beginTurn(t *testing.T, k *talker, text string, into any) error {
	t.Helper()
	a, err := k.line.now().Call(t.Context(), k.key, http.MethodPost, k.path+"/events", message(text), http.Header{"Prefer": {"respond-async"}})
	if err == nil && a.Status != http.StatusAccepted {
		err = fmt.Errorf("HTTP %d: %s", a.Status, a.Body)
	}
	if err == nil {
		err = json.Unmarshal(a.Body, into)
	}
	return err
}
