package response_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/control/gateway/gatewaytest"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/test/atolltest"
	"github.com/atoll-run/atoll/test/httpapitest"
)

const inSandbox = `{"model": "code", "input": "lines", "tools": [{"type": "sandbox"}]`

// TestCost: a response says what it cost, and the ledger says the same, also of one that
// is not kept.
func TestCost(t *testing.T) {
	s := open(t)
	r := ask(t, s, 200, "POST", "/v1/responses", inSandbox+"}")
	u := r["usage"].(map[string]any)
	// 20 tokens of input at a dollar a million, 10 of output at 2, a call and a window.
	const cost = `{"cache_creation_cost":0,"cache_read_cost":0,"currency":"USD","input_cost":0.00002,"output_cost":0.00002,"tool_calls_cost":0.031,"total_cost":0.03104}`
	if show(u["cost"]) != cost || show(u["tool_calls_details"]) != `{"sandbox":{"invocation":1}}` || u["sandbox_windows"] != 1. {
		t.Errorf("got %s", show(u))
	}
	// What continues it uses the same sandbox, in the same window.
	r = ask(t, s, 200, "POST", "/v1/responses", fmt.Sprintf(inSandbox+`, "previous_response_id": %q, "store": false}`, r["id"]))
	u = r["usage"].(map[string]any)
	if c := u["cost"].(map[string]any); c["tool_calls_cost"] != 0.001 || u["sandbox_windows"] != nil {
		t.Errorf("got %s", show(u))
	}
	got := ask(t, s, 200, "GET", "/v1/usage", "")
	var days []string
	for _, d := range got["days"].([]any) {
		d := d.(map[string]any)
		days = append(days, fmt.Sprintf("%v %v: %v calls, %v+%v tokens, $%v", d["source"], d["name"], d["calls"], d["input_tokens"], d["output_tokens"], d["cost"]))
	}
	want := "response : 2 calls, 0+0 tokens, $0\nmodel code: 4 calls, 40+20 tokens, $0.00008\n" +
		"sandbox_window : 1 calls, 0+0 tokens, $0.03\ntool sandbox: 2 calls, 0+0 tokens, $0.002"
	if text := strings.ReplaceAll(strings.Join(days, "\n"), "8e-05", "0.00008"); text != want {
		t.Errorf("the ledger has\n%s\nwant\n%s", text, want)
	}
	totals, month := got["totals"].(map[string]any), got["month"].(map[string]any)
	if totals["cost"] != 0.03208 || totals["calls"] != 2. || month["cost"] != 0.03208 || month["cost_budget"] != nil {
		t.Errorf("got %s, %s", show(totals), show(month))
	}
}

// TestLimits: a response ends when it has cost what it may, or used the tokens it may.
func TestLimits(t *testing.T) {
	s := open(t)
	const body = `{"model": "again", "input": "x", "tools": [{"type": "sandbox"}], %s}`
	for field, reason := range map[string]string{`"max_cost": 0.0315`: "max_cost", `"max_total_tokens": 30`: "max_tokens", `"max_tool_calls": 2`: "max_tool_calls"} {
		r := ask(t, s, 200, "POST", "/v1/responses", fmt.Sprintf(body, field))
		d, _ := r["incomplete_details"].(map[string]any)
		if r["status"] != "incomplete" || d["reason"] != reason || d["message"] == "" {
			t.Errorf("%s: %s", field, show(r))
		}
		if calls := r["usage"].(map[string]any)["tool_calls_details"]; reason == "max_cost" && show(calls) != `{"sandbox":{"invocation":1}}` {
			t.Errorf("%s: %s", field, show(calls))
		}
	}
	// What the first call and its window cost is more.
	if r := ask(t, s, 200, "POST", "/v1/responses", fmt.Sprintf(body, `"max_cost": 0.031`)); r["usage"].(map[string]any)["tool_calls_details"] != nil || !strings.Contains(show(r["incomplete_details"]), "a call of run_code costs 0.031") {
		t.Errorf("a call was made that costs too much: %s", show(r))
	}
	for field, says := range map[string]string{
		`"max_cost": 0`: "max_cost must be between 0.000001 and 1000000", `"max_cost": -1`: "max_cost", `"max_cost": 1e300`: "max_cost", `"max_cost": "1"`: "max_cost",
		`"max_total_tokens": 0`: "max_total_tokens must be between 1 and", `"max_total_tokens": 1.5`: "max_total_tokens",
	} {
		if r := ask(t, s, 400, "POST", "/v1/responses", fmt.Sprintf(body, field)); !strings.Contains(r["message"].(string), says) {
			t.Errorf("%s: %v", field, r["message"])
		}
	}
}

func as(name string) []string { return []string{"Authorization", "Bearer " + gatewaytest.Token(name)} }

func refusal(t *testing.T, w *httptest.ResponseRecorder) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != 429 {
		t.Fatalf("got %d %s", w.Code, w.Body)
	}
	e := out["error"].(map[string]any)
	if e["type"] != "rate_limit_error" || e["code"] != "rate_limited" || w.Header().Get("Retry-After") == "" {
		t.Errorf("got %s, Retry-After %q", w.Body, w.Header().Get("Retry-After"))
	}
	return e
}

// TestBudget: a tenant that has used up its budget in money begins no response, and one
// that is in progress ends at its next step.
func TestBudget(t *testing.T) {
	s := open(t)
	s.Principal(t, "poor", "pro", func(p *tenant.Principal) { p.Tenant.MonthlyCost = 0.03204 })
	w := httpapitest.Ask(s, "POST", "/v1/responses", `{"model": "again", "input": "x", "tools": [{"type": "sandbox"}]}`, as("poor")...)
	var r map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil || w.Code != 200 {
		t.Fatalf("got %d %s", w.Code, w.Body)
	}
	e, _ := r["error"].(map[string]any)
	if r["status"] != "failed" || e["code"] != "budget" || e["type"] != "rate_limit_error" || !strings.Contains(show(e), "it resets at 20") {
		t.Errorf("got %s", show(r))
	}
	if calls := r["usage"].(map[string]any)["tool_calls_details"]; show(calls) != `{"sandbox":{"invocation":2}}` {
		t.Errorf("got %s", show(calls))
	}
	w = httpapitest.Ask(s, "POST", "/v1/responses", `{"model": "echo", "input": "x"}`, as("poor")...)
	if e := refusal(t, w); !strings.Contains(e["message"].(string), "monthly budget used up (0.03204 of 0.03204 US dollars)") {
		t.Errorf("got %s", show(e))
	}
}

// TestRefusedCallsAreFree: what a budget does not let a model run is not charged.
func TestRefusedCallsAreFree(t *testing.T) {
	s := open(t)
	s.Principal(t, "spent", "pro", func(p *tenant.Principal) { p.Tenant.MonthlyCredits = 1e-12 })
	begin := func() map[string]any {
		w := httpapitest.Ask(s, "POST", "/v1/responses", inSandbox+"}", as("spent")...)
		var r map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil || w.Code != 200 {
			t.Fatalf("got %d %s", w.Code, w.Body)
		}
		return r
	}
	if r := begin(); r["usage"].(map[string]any)["sandbox_windows"] != 1. {
		t.Errorf("got %s", show(r))
	}
	r := begin()
	if u := r["usage"].(map[string]any); r["status"] != "failed" || u["tool_calls_details"] != nil || u["sandbox_windows"] != nil || u["cost"].(map[string]any)["tool_calls_cost"] != 0. {
		t.Errorf("got %s", show(r))
	}
}

// TestCancelledCallsAreCharged: a call that ends with its response was made.
func TestCancelledCallsAreCharged(t *testing.T) {
	s := open(t)
	r := ask(t, s, 200, "POST", "/v1/responses", strings.Replace(inSandbox, "lines", "early", 1)+`, "background": true}`)
	atolltest.Until(t, 30*time.Second, "the program runs", func() bool {
		var n int
		err := s.DB.SQL().QueryRow(`SELECT count(*) FROM executions WHERE status = 'running'`).Scan(&n)
		return err == nil && n == 1
	})
	r = ask(t, s, 200, "POST", "/v1/responses/"+r["id"].(string)+"/cancel", "")
	u := r["usage"].(map[string]any)
	if r["status"] != "cancelled" || show(u["tool_calls_details"]) != `{"sandbox":{"invocation":1}}` || u["sandbox_windows"] != 1. || u["cost"].(map[string]any)["tool_calls_cost"] != 0.031 {
		t.Errorf("got %s", show(r))
	}
}

// TestRates: answers say what is left of the plan's rates, and what is above them is
// refused.
func TestRates(t *testing.T) {
	s := open(t)
	slow := tenant.Plan{Name: "slow", MaxOutput: 1 << 20, MaxResponseRate: 3, MaxKeyTokenRate: 120}
	if err := s.DB.Tenants().PutPlan(t.Context(), slow); err != nil {
		t.Fatal(err)
	}
	s.Principal(t, "slow", "slow")
	headers := func(w *httptest.ResponseRecorder) (all string) {
		for _, name := range []string{"limit-requests", "remaining-requests", "limit-tokens", "remaining-tokens"} {
			all += w.Header().Get("x-ratelimit-"+name) + " "
		}
		for _, name := range []string{"x-ratelimit-reset-requests", "x-ratelimit-reset-tokens"} {
			d, err := time.ParseDuration(w.Header().Get(name))
			if err != nil || d < 0 || d > time.Minute {
				t.Errorf("%s is %q", name, w.Header().Get(name))
			}
		}
		return all
	}
	begin := func(body string) *httptest.ResponseRecorder {
		return httpapitest.Ask(s, "POST", "/v1/responses", body, as("slow")...)
	}
	if w := begin(`{"model": "echo", "input": "x"}`); w.Code != 200 || headers(w) != "3 2 120 105 " {
		t.Errorf("got %d, %q", w.Code, headers(w))
	}
	if w := begin(`{"model": "echo", "input": "x", "stream": true}`); w.Code != 200 || headers(w) != "3 1 120 105 " { // before its tokens are known
		t.Errorf("got %d, %q", w.Code, headers(w))
	}
	if w := begin(`{"model": "echo", "input": "x"}`); w.Code != 200 || headers(w) != "3 0 120 75 " {
		t.Errorf("got %d, %q", w.Code, headers(w))
	}
	w := begin(`{"model": "echo", "input": "x"}`)
	if e := refusal(t, w); headers(w) != "3 0 120 75 " || !strings.Contains(e["message"].(string), "the plan slow allows this tenant 3 responses per minute of the model echo") {
		t.Errorf("got %s, %q", show(e), headers(w))
	}
	if w := begin(`{"model": "code", "input": "x"}`); headers(w) != "3 2 120 90 " { // each model has its own
		t.Errorf("got %q", headers(w))
	}
	s.Principal(t, "free", "enterprise")
	w = httpapitest.Ask(s, "POST", "/v1/responses", `{"model": "echo", "input": "x"}`, as("free")...)
	if w.Code != 200 || w.Header().Get("x-ratelimit-limit-requests") != "" {
		t.Errorf("a plan without bounds: %d, %v", w.Code, w.Header())
	}
}
