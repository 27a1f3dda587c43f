package service

import (
	"fmt"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
	"github.com/atoll-run/atoll/test/scriptedmodel"
)

// careful is a model of skills: it plans, saves its state, leaves steps open at first, and answers
// well once a review has asked for more. Its question number hold of a turn gets no answer, the
// first time.
type careful struct {
	mu   sync.Mutex
	hold int
	held chan struct{} // gets a token with that question
	n    int           // questions of the turn so far
}

// carefulAnswers is how many answers a turn of careful takes, reviews among them.
const carefulAnswers = 8

func (d *careful) next(r scriptedmodel.Request) (scriptedmodel.Turn, bool) {
	said, results := asked(r.Body)
	var turn scriptedmodel.Turn
	plan := func(status string) string {
		return fmt.Sprintf(`{"steps":[{"step":"look","status":"completed"},{"step":"write","status":"%s"}]}`, status)
	}
	switch {
	case strings.Contains(said, "<answer>\ndraft"):
		turn = scriptedmodel.Say(`{"score": 0.4, "feedback": "Say more."}`)
	case strings.Contains(said, "<answer>"):
		turn = scriptedmodel.Say(`{"score": 0.9, "feedback": ""}`)
	case strings.Contains(said, "Say more."):
		turn = scriptedmodel.Say("better")
	case strings.Contains(said, "open steps") && results == 0:
		turn = scriptedmodel.Ask("call_done", "update_plan", plan("completed"))
	case said == "work" && results == 0:
		turn = scriptedmodel.Ask("call_plan", "update_plan", plan("pending"))
	case said == "work" && results == 1:
		turn = scriptedmodel.Ask("call_save", "save_state", `{"document":"noted"}`)
	default:
		turn = scriptedmodel.Say("draft")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.n++; d.n == d.hold {
		turn.Wait = time.Hour
		d.held <- struct{}{}
	}
	return turn, true
}

// begin has a turn's question number hold wait; 0 for none.
func (d *careful) begin(hold int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.n, d.hold = 0, hold
}

func (d *careful) questions() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.n
}

// asked is the last message of the user in a request, and how many results come after it.
func asked(body map[string]any) (said string, results int) {
	items, _ := body["input"].([]any)
	for _, it := range items {
		switch it := it.(map[string]any); {
		case it["type"] == "function_call_output":
			results++
		case it["role"] == "user":
			first, _ := it["content"].([]any)[0].(map[string]any)
			said, results = fmt.Sprint(first["text"]), 0
		}
	}
	return said, results
}

// passing is what two turns do not have in common: ids and times.
var passing = regexp.MustCompile(`(sess|sevt|turn|agt|key|msg)_[0-9a-f_]+|"\d{4}-\d\d-\d\dT[^"]*"`)

// TestKilledSkills kills the server at each step of a turn whose agent plans, saves its state and
// has its answers reviewed: each time the events are those of a turn without a kill.
func TestKilledSkills(t *testing.T) {
	d := &careful{held: make(chan struct{}, 1)}
	p := httptest.NewServer(&scriptedmodel.Provider{Next: d.next})
	t.Cleanup(p.Close)
	line := newSuccession(t, "ATOLL_MODEL_ALLOW=127.0.0.1")
	k := &talker{t, line, line.now().Tenant(t, "killed-skills", "pro"), ""}
	addModel(t, line.now(), "scripted", p.URL, "tools")
	agent := map[string]any{"skills": []string{"structured-planning", "reflection-loop", "long-running-state"}}
	// The end of a turn, as its readers see it.
	turn := func(hold int) (events []string) {
		k := k.begin(agent)
		d.begin(hold)
		if err := beginTurn(t, k, "work", new(struct{})); err != nil {
			t.Fatal(err)
		}
		if hold > 0 {
			select {
			case <-d.held:
			case <-time.After(time.Minute):
				t.Fatalf("question %d does not come\n%s", hold, line.now().Log())
			}
			line.next(syscall.SIGKILL)
		}
		k.until("idle")
		for _, e := range k.events("") {
			events = append(events, passing.ReplaceAllString(e.raw, "…"))
		}
		return events
	}
	want := turn(0)
	if n := d.questions(); n != carefulAnswers {
		t.Fatalf("without a kill the model is asked %d times: %q", n, want)
	}
	for _, kind := range []string{"plan", "state", "reminder", "review"} {
		if !slices.ContainsFunc(want, func(e string) bool { return strings.Contains(e, `"type":"`+kind+`"`) }) {
			t.Fatalf("there is no %s in %q", kind, want)
		}
	}
	first, step := 3, 4 // after the state is saved, and with the first review done
	if atolltest.Soak() {
		first, step = 1, 1
	}
	for hold := first; hold <= carefulAnswers; hold += step {
		if got := turn(hold); !slices.Equal(got, want) {
			t.Errorf("killed with question %d:\n%s\nwant\n%s", hold, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}
