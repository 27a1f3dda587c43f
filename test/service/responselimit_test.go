package service

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/test/atolltest"
	"github.com/atoll-run/atoll/test/scriptedmodel"
)

// tireless is a provider whose model never comes to an end: the first word of the user says
// how. asked has a token whenever it begins to speak, and left when the client leaves it before
// the end of that answer.
func tireless(t *testing.T, asked chan<- struct{}, left chan<- time.Time) *httptest.Server {
	p := httptest.NewServer(&scriptedmodel.Provider{Next: func(r scriptedmodel.Request) (scriptedmodel.Turn, bool) {
		word, results := plodded(r.Body)
		code := func(text string) scriptedmodel.Turn {
			arguments, _ := json.Marshal(map[string]string{"language": "python", "code": text})
			return scriptedmodel.Ask(fmt.Sprint("call_", len(results)), "run_code", string(arguments))
		}
		switch word {
		case "steps":
			return code(fmt.Sprint("print(", len(results), ")")), true
		case "calls":
			two := code("print(1)")
			two.Blocks = append(two.Blocks, two.Blocks[0])
			second := *two.Blocks[1].Call
			second.ID += "b"
			two.Blocks[1].Call = &second
			return two, true
		case "tokens":
			long := code("print(1)")
			long.Usage = &model.Usage{Input: 10, Output: 50}
			return long, true
		case "fails":
			return code("raise SystemExit(3)"), true
		case "sleeps":
			return code("print('begun', flush=True)\nimport time\ntime.sleep(60)"), true
		case "speaks":
			turn := scriptedmodel.Say("")
			turn.Blocks[0].Text, turn.Pace = strings.SplitAfter(strings.Repeat("word ", 2000), " "), 20*time.Millisecond
			turn.Left = func() { left <- time.Now() }
			asked <- struct{}{}
			return turn, true
		}
		t.Errorf("the model was asked %q", word)
		return scriptedmodel.Turn{}, false
	}})
	t.Cleanup(p.Close)
	return p
}

// TestLimitsOfResponses: each limit ends a response with its reason and a message, and
// cancelling ends the provider's request and the program in the sandbox within a second.
func TestLimitsOfResponses(t *testing.T) {
	s := shared(t)
	asked, left := make(chan struct{}, 8), make(chan time.Time, 8)
	key := s.Tenant(t, "limited", "pro")
	lendModel(t, s, "tireless", tireless(t, asked, left).URL)
	create := func(t *testing.T, input string, more map[string]any) (r responseRecord) {
		t.Helper()
		body := map[string]any{"model": "tireless", "input": input, "tools": []any{map[string]string{"type": "sandbox"}}}
		for name, v := range more {
			body[name] = v
		}
		s.Must(t, key, http.MethodPost, "/v1/responses", body).Into(t, http.StatusOK, &r)
		return r
	}
	for _, test := range []struct {
		input, limit string
		value, calls int
		reason       string
	}{
		{"steps", "max_steps", 2, 2, "max_steps"},
		{"calls", "max_tool_calls", 1, 1, "max_tool_calls"},
		{"tokens", "max_output_tokens", 40, 1, "max_output_tokens"},
		{"fails", "max_steps", 50, 4, "repeated_failure"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			r := create(t, test.input, map[string]any{test.limit: test.value})
			if r.Status != "incomplete" || r.Incomplete.Reason != test.reason || r.Incomplete.Message == "" || len(r.Output) != test.calls {
				t.Errorf("it ends %s, %+v, with %d items", r.Status, r.Incomplete, len(r.Output))
			}
		})
	}
	// A busy machine may be slow once.
	within := func(t *testing.T, what string, cancel func() time.Duration) {
		t.Helper()
		var took []time.Duration
		for range 3 {
			d := cancel()
			if took = append(took, d.Round(time.Millisecond)); d <= time.Second {
				t.Logf("%s ended after %s", what, took)
				return
			}
		}
		t.Errorf("%s ended after %s", what, took)
	}
	cancel := func(t *testing.T, id string) {
		t.Helper()
		var r responseRecord
		if s.Must(t, key, http.MethodPost, "/v1/responses/"+id+"/cancel", nil).Into(t, http.StatusOK, &r); r.Status != "cancelled" {
			t.Errorf("it is %s", r.Status)
		}
	}
	t.Run("cancelled while the model speaks", func(t *testing.T) {
		within(t, "the provider's request", func() time.Duration {
			r := create(t, "speaks", map[string]any{"background": true})
			atolltest.Heard(t, asked, "the model speaks")
			at := time.Now()
			cancel(t, r.ID)
			return atolltest.Heard(t, left, "the provider's request ends").Sub(at)
		})
	})
	t.Run("cancelled while a program runs", func(t *testing.T) {
		within(t, "the program", func() time.Duration {
			r := create(t, "sleeps", map[string]any{"background": true})
			running := func(status string) (ids []string) {
				var page struct{ Data []record }
				s.Must(t, key, http.MethodGet, "/v1/executions?status="+status, nil).Into(t, http.StatusOK, &page)
				for _, e := range page.Data {
					ids = append(ids, e.TraceID)
				}
				return ids
			}
			atolltest.Until(t, 30*time.Second, "the program runs", func() bool { return len(running("running")) == 1 })
			before := len(running("cancelled"))
			at := time.Now()
			cancel(t, r.ID)
			took := time.Since(at) // the answer comes when the program has ended
			if n := len(running("running")); n > 0 || len(running("cancelled")) != before+1 {
				t.Errorf("%d programs run after their response was cancelled", n)
			}
			return took
		})
	})
}
