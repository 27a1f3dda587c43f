package webhook

import (
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
)

// TestTell: what a receiver gets of a session is signed as what it gets of executions.
func TestTell(t *testing.T) {
	url, got, roots := receiver(t, ok)
	c := client(t, Config{RootCAs: roots, Allow: []string{"example.com"}})
	n := &session.Notice{
		Tenant: "ten_1", Session: "sess_0123456789abcdef0123456789abcdef", Agent: "agt_1", Webhook: session.Webhook{URL: url, Secret: "a plain secret"},
		Kind: session.TellsAction, Seq: 7, At: time.Date(2026, 3, 16, 12, 0, 0, 0, time.UTC), End: run.RequiresAction, Waits: []run.Wait{{Of: 5, Call: "c1", Tool: "run_code", Approve: true}},
	}
	const begins = `"session_id":"sess_0123456789abcdef0123456789abcdef","agent_id":"agt_1","event_id":"sevt_0123456789abcdef0123456789abcdef_7","timestamp":"2026-03-16T12:00:00Z",`
	for _, test := range []struct {
		change   func()
		id, want string
	}{
		{func() {}, "evt_0123456789abcdef0123456789abcdef_7", `{"event":"session.requires_action",` + begins +
			`"stop_reason":{"type":"requires_action","requires_action":[{"tool_use_id":"sevt_0123456789abcdef0123456789abcdef_5","name":"run_code","needs":"tool_confirmation"}]},"error":null}`},
		{func() {
			n.Kind, n.End, n.Waits, n.Failure = session.TellsError, run.Failed, nil, &run.TurnFailure{Reason: run.ModelError, Message: "away"}
		}, "evt_0123456789abcdef0123456789abcdef_7", `{"event":"session.error",` + begins + `"stop_reason":{"type":"error","requires_action":[]},"error":{"code":"model_error","message":"away"}}`},
		{func() { n.Kind, n.End, n.Failure = session.TellsEnd, "", nil }, "evt_0123456789abcdef0123456789abcdef_7_terminated", `{"event":"session.terminated",` + begins + `"stop_reason":null,"error":null}`},
	} {
		test.change()
		if tried, err := c.Tell(t.Context(), n); err != nil || !tried {
			t.Fatal(tried, err)
		}
		r := <-got
		if string(r.body) != test.want || r.header.Get("webhook-id") != test.id {
			t.Errorf("%s %s", r.header.Get("webhook-id"), r.body)
		}
		verifier, err := standardwebhooks.NewWebhookRaw([]byte("a plain secret"))
		if err != nil {
			t.Fatal(err)
		}
		if err := verifier.Verify(r.body, r.header); err != nil {
			t.Error(err)
		}
	}
}
