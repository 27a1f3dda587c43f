package service

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/atoll-run/atoll/test/atolltest"
)

// usedRecord is what GET /v1/usage says.
type usedRecord struct {
	Days []struct {
		Source, Name string
		Calls        int
		Cost         float64
	}
	Totals struct{ Cost float64 }
	Month  struct {
		Cost       float64
		CostBudget *float64 `json:"cost_budget"`
	}
}

// callsOf are the calls of an interface.
func callsOf(u usedRecord, source string) (n int) {
	for _, d := range u.Days {
		if d.Source == source {
			n += d.Calls
		}
	}
	return n
}

// TestWhatResponsesCost: every tool is in the usage of a response and in the ledger with its
// price, calls that code made among them; a budget in money ends all of it.
func TestWhatResponsesCost(t *testing.T) {
	s := atolltest.Start(t, atolltest.Options{Env: append([]string{
		noPool, "ATOLL_MODEL_ALLOW=127.0.0.1", "ATOLL_MCP_ALLOW=127.0.0.1", "ATOLL_PRICE_SANDBOX_WINDOW=0.03",
		`ATOLL_PRICE_TOOLS={"sandbox": "0.001", "code_interpreter": "0.002", "web_search": "0.003", "people_search": "0.004", "fetch_url": "0.005", "mcp": "0.006"}`,
	}, searchSettings...)})
	addModel(t, s, "scripted", toolCaller(t).URL)
	shop := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1"}, nil)
	mcp.AddTool(shop, &mcp.Tool{Name: "order"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "it is on its way"}}}, nil, nil
	})
	srv := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return shop }, nil))
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	tools := []any{
		map[string]any{"type": "sandbox"}, map[string]any{"type": "code_interpreter", "container": map[string]string{"type": "auto"}},
		map[string]any{"type": "web_search"}, map[string]any{"type": "people_search"}, map[string]any{"type": "fetch_url"},
		map[string]any{"type": "mcp", "server_label": "shop", "server_url": srv.URL, "require_approval": "never"},
	}
	key := s.Tenant(t, "charged", "pro")
	run := func(code string) string {
		arguments, err := json.Marshal(map[string]string{"language": "python", "code": code})
		if err != nil {
			t.Fatal(err)
		}
		return "run_code " + string(arguments)
	}
	var r struct {
		Status string
		Error  struct{ Code, Message string }
		Output []struct {
			Type, Status string
			Results      json.RawMessage
		}
		Usage struct {
			Details map[string]struct{ Invocation int } `json:"tool_calls_details"`
			Windows int                                 `json:"sandbox_windows"`
			Cost    struct {
				Tools float64 `json:"tool_calls_cost"`
				Total float64 `json:"total_cost"`
			}
		}
	}
	input := strings.Join([]string{
		run(`import atoll_web
print(len(atoll_web.search("a")), len(atoll_web.search("b")), atoll_web.fetch("` + searches.URL + `/page")["text"])`),
		`code_interpreter {"code": "6*7"}`, `web_search {"queries": ["a"]}`, `people_search {"queries": ["b"]}`,
		`fetch_url {"urls": ["` + searches.URL + `/page"]}`, `shop__order {}`,
	}, "\n")
	s.Must(t, key, http.MethodPost, "/v1/responses", map[string]any{"model": "scripted", "input": input, "tools": tools}).Into(t, http.StatusOK, &r)
	calls := map[string]int{}
	for tool, d := range r.Usage.Details {
		calls[tool] = d.Invocation
	}
	want := map[string]int{"sandbox": 1, "code_interpreter": 1, "web_search": 3, "people_search": 1, "fetch_url": 2, "mcp": 1}
	if !maps.Equal(calls, want) || r.Usage.Windows != 1 || r.Usage.Cost.Tools != 0.062 || r.Status != "completed" {
		t.Errorf("the response says %v of %+v", calls, r)
	}
	for _, it := range r.Output {
		if it.Status != "completed" && it.Type != "mcp_list_tools" {
			t.Errorf("%s is %s", it.Type, it.Status)
		}
	}
	used := func() (u usedRecord) {
		s.Must(t, key, http.MethodGet, "/v1/usage", nil).Into(t, http.StatusOK, &u)
		return u
	}
	u, kept, cost := used(), map[string]int{}, map[string]float64{}
	for _, d := range u.Days {
		if d.Source == "tool" {
			kept[d.Name] = d.Calls
		}
		cost[d.Source] += d.Cost
	}
	if !maps.Equal(kept, want) || cost["sandbox_window"] != 0.03 || u.Totals.Cost != r.Usage.Cost.Total || u.Month.Cost != r.Usage.Cost.Total {
		t.Errorf("the ledger has %+v, the response %+v", u, r.Usage)
	}

	// Of code that is cancelled.
	searched := func() int { return callsOf(used(), "web_search") }
	before := searched()
	input = run("import atoll_web, time\natoll_web.search('x')\ntime.sleep(60)")
	var begun struct{ ID string }
	s.Must(t, key, http.MethodPost, "/v1/responses", map[string]any{"model": "scripted", "input": input, "tools": tools[:1], "background": true}).Into(t, http.StatusOK, &begun)
	atolltest.Until(t, 30*time.Second, "the code has searched", func() bool { return searched() == before+1 })
	r.Usage.Details = nil
	s.Must(t, key, http.MethodPost, "/v1/responses/"+begun.ID+"/cancel", nil).Into(t, http.StatusOK, &r)
	if d := r.Usage.Details; r.Status != "cancelled" || d["web_search"].Invocation != 1 || d["sandbox"].Invocation != 1 || r.Usage.Cost.Tools != 0.034 {
		t.Errorf("cancelled: %+v", r)
	}
	if u = used(); u.Month.Cost != u.Totals.Cost || u.Month.Cost < cost["sandbox_window"]+0.034 {
		t.Errorf("the ledger has %+v", u)
	}

	// Searches that a program makes at once stay within what the response may cost, and within
	// the budget of its tenant.
	atOnce := func(more map[string]any, searches int, says string) {
		t.Helper()
		body := map[string]any{"model": "scripted", "tools": tools[:1], "input": run(`import atoll_web
from concurrent.futures import ThreadPoolExecutor
def search(n):
    try: atoll_web.search("x"); return "found"
    except atoll_web.Error as e: return f"{e.status} {e}"
print(*ThreadPoolExecutor(8).map(search, range(8)), sep="\n")`)}
		maps.Copy(body, more)
		r.Output, r.Usage.Details = nil, nil
		s.Must(t, key, http.MethodPost, "/v1/responses", body).Into(t, http.StatusOK, &r)
		if len(r.Output) == 0 || r.Usage.Details["web_search"].Invocation != searches || strings.Count(string(r.Output[0].Results), says) != 8-searches {
			t.Errorf("%v: %+v", more, r)
		}
	}
	atOnce(map[string]any{"max_cost": 0.0375}, 2, "429 a call of web_search costs 0.003 US dollars, and max_cost leaves ")
	admin, month := s.AdminKey(t), used().Month.Cost
	bound := func(budget float64) {
		t.Helper()
		s.Must(t, admin, http.MethodPatch, "/v1/admin/tenants/charged", map[string]any{"monthly_cost": budget}).Into(t, http.StatusOK, nil)
	}
	bound(month + 0.042) // for a window, a call, and 3 searches
	// What ends meanwhile may count twice for a moment, and the budget be used up rather than too small.
	atOnce(nil, 3, "429 monthly budget ")
	// What is left is too little for another window.
	r.Error.Code = ""
	s.Must(t, key, http.MethodPost, "/v1/responses", map[string]any{"model": "scripted", "input": input, "tools": tools[:1]}).Into(t, http.StatusOK, &r)
	if r.Status != "failed" || r.Error.Code != "budget" || len(r.Output) != 0 {
		t.Errorf("beyond its budget: %+v", r)
	}
	budget := used().Month.Cost
	bound(budget)
	a := s.Must(t, key, http.MethodPost, "/v1/responses", map[string]any{"model": "scripted", "input": input, "tools": tools[:1]})
	if after, err := strconv.Atoi(a.Header.Get("Retry-After")); err != nil || after < 1 || a.Status != http.StatusTooManyRequests || !strings.Contains(string(a.Body), "monthly budget used up") {
		t.Errorf("a response beyond the budget: %d %s, Retry-After %q", a.Status, a.Body, a.Header.Get("Retry-After"))
	}
	if u := used(); u.Month.CostBudget == nil || *u.Month.CostBudget != budget || u.Month.Cost < budget {
		t.Errorf("the month is %+v", u.Month)
	}
}

// TestRatesOfResponses: each answer says what is left of a plan's rates of a model, and what
// is above them is refused until there is some again.
func TestRatesOfResponses(t *testing.T) {
	s := shared(t)
	lendModel(t, s, "rated", obedient(t).URL)
	s.Must(t, s.AdminKey(t), http.MethodPut, "/v1/admin/plans/rated", map[string]any{"max_response_rate": 2, "max_key_token_rate": 600}).Into(t, http.StatusOK, nil)
	key := s.Tenant(t, "rated", "rated")
	for i, want := range []string{"200 2 1 600 585", "200 2 0 600 570", "429 2 0 600 570"} {
		a := s.Must(t, key, http.MethodPost, "/v1/responses", map[string]any{"model": "rated", "input": "say it"})
		h := a.Header
		left, err := strconv.Atoi(h.Get("x-ratelimit-remaining-tokens"))
		wanted := strings.Fields(want)
		least, _ := strconv.Atoi(wanted[4])
		got := fmt.Sprint(a.Status, " ", h.Get("x-ratelimit-limit-requests"), " ", h.Get("x-ratelimit-remaining-requests"), " ", h.Get("x-ratelimit-limit-tokens"))
		if got != strings.Join(wanted[:4], " ") || err != nil || left < least || left > 600 { // tokens come back as time passes
			t.Errorf("answer %d: %s, %v; want %s: %s", i, got, h, want, a.Body)
		}
		if a.Status == http.StatusTooManyRequests && (h.Get("Retry-After") == "" || !strings.Contains(string(a.Body), "2 responses per minute of the model rated")) {
			t.Errorf("refused with %s, %v", a.Body, h)
		}
	}
}
