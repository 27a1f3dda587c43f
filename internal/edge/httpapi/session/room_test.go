package session_test

import (
	"net/http"
	"testing"

	"github.com/atoll-run/atoll/internal/edge/httpapi/httpapitest"
	sessionapi "github.com/atoll-run/atoll/internal/edge/httpapi/session"
)

// TestBudget: a session whose budget is used up asks no model, until it is raised.
func TestBudget(t *testing.T) {
	k := open(t, `{}`)
	begin := func(budget string) {
		var made struct{ ID string }
		k.ask(http.StatusCreated, "POST", "/v1/sessions", `{"agent_id":"helper","budget":`+budget+`}`, &made)
		k.path = "/v1/sessions/" + made.ID
	}
	for _, bad := range []string{`{"tokens":0}`, `{"cost_usd":0}`, `{"cost_usd":-1}`, `{"tokens":"x"}`, `{"dollars":1}`} {
		k.ask(http.StatusBadRequest, "POST", "/v1/sessions", `{"agent_id":"helper","budget":`+bad+`}`, nil)
	}
	begin(`{"tokens":15,"cost_usd":2}`) // an answer has 15
	turn := k.say("call run_code")
	if turn.Status != "incomplete" || turn.Error == nil || turn.Error.Code != "session_budget" {
		t.Fatalf("%+v %+v", turn, turn.Error)
	}
	httpapitest.Refused(t, httpapitest.Ask(k.Server, "POST", k.path+"/events", `{"type":"message","content":"more"}`), http.StatusTooManyRequests, "rate_limited", "raise budget.tokens")
	for _, bad := range []string{`{"tokens":14}`, `{"cost_usd":1.5}`} {
		k.ask(http.StatusBadRequest, "PATCH", k.path, `{"budget":`+bad+`}`, nil)
	}
	var s sessionapi.Session
	k.ask(200, "PATCH", k.path, `{"budget":{"tokens":30}}`, &s)
	if *s.Budget.Tokens != 30 || *s.Budget.CostUSD != 2 || s.Usage.InputTokens != 10 || s.Usage.OutputTokens != 5 {
		t.Errorf("%+v %+v", s.Budget, s.Usage)
	}
	if turn = k.say("more"); turn.Status != "completed" {
		t.Errorf("%+v", turn)
	}
	k.post(429, `{"type":"message","content":"more"}`)
}
