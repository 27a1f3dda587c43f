package web_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/web"
	webapi "github.com/atoll-run/atoll/internal/edge/httpapi/web"
	"github.com/atoll-run/atoll/test/httpapitest"
)

// engine finds one page, and keeps what it was asked.
type engine struct {
	mu    sync.Mutex // texts of one search are looked for side by side
	asked web.Request
}

func (*engine) Name() string { return "fake" }
func (*engine) Filters() web.Filters {
	return web.Filters{Languages: 2, Country: true, Recencies: web.Recencies, Published: true, Updated: true}
}

func (e *engine) Search(_ context.Context, r web.Request) ([]web.Result, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = r
	return []web.Result{{Title: "One", URL: "https://example.org/1", Snippet: strings.Repeat("x", 20_000)}}, nil
}

// pages are all the same, but for one that is not there.
type pages struct{}

func (pages) Fetch(_ context.Context, where string, _ func(*url.URL) error) (web.Page, error) {
	if strings.Contains(where, "none") {
		return web.Page{}, fault.New(fault.Invalid, "the page answers 404")
	}
	return web.Page{URL: where + "/", Title: "T", Text: "12345678", Media: "text/html"}, nil
}

func TestFetch(t *testing.T) {
	var rows []sandbox.Call
	var mu sync.Mutex
	s := httpapitest.New(t, func(c *httpapitest.Setup) {
		c.Web = &webapi.Handlers{Web: web.New(web.Config{Pages: pages{}, Record: func(_ context.Context, _ *tenant.Principal, row sandbox.Call) error {
			mu.Lock()
			defer mu.Unlock()
			rows = append(rows, row)
			return nil
		}})}
	})
	httpapitest.Answers(t, s, 200, `"contents":[{"url":"https://a.org","final_url":"https://a.org/","title":"T","text":"1234","media_type":"text/html","date":null,"last_updated":null,"truncated":true,"error":null},{"url":"https://none","final_url":null,"title":"","text":"","media_type":"","date":null,"last_updated":null,"truncated":false,"error":"the page answers 404"}]`,
		"POST", "/v1/fetch", `{"url":["https://a.org","https://none"],"max_tokens_per_page":1}`)
	if len(rows) != 2 || rows[0].Source != "fetch_url" || rows[0].Refused || rows[1].Refused {
		t.Errorf("rows are %+v", rows)
	}
	for body, says := range map[string]string{`{}`: "url is required", `{"url":[]}`: "a list of 1 to 10", `{"url":""}`: "1 to 4096 bytes", `{"url":"a","max_tokens_per_page":0}`: "max_tokens_per_page must be"} {
		httpapitest.Refused(t, httpapitest.Ask(s, "POST", "/v1/fetch", body), http.StatusBadRequest, "validation_error", says)
	}
	httpapitest.Refused(t, httpapitest.Ask(s, "POST", "/v1/search", `{"query":"a"}`), http.StatusNotFound, "not_found", "the setting search_provider")
}

func TestSearch(t *testing.T) {
	e, rows := &engine{}, []sandbox.Call{}
	s := httpapitest.New(t, func(c *httpapitest.Setup) {
		c.Web = &webapi.Handlers{Web: web.New(web.Config{Web: e, Record: func(_ context.Context, _ *tenant.Principal, row sandbox.Call) error {
			rows = append(rows, row)
			return nil
		}})}
	})
	got := httpapitest.Answers(t, s, 200, `"results":[{"title":"One","url":"https://example.org/1","snippet":"xx`, "POST", "/search", `{"query":["a","b"],"max_results":5,
		"search_domain_filter":["-b.org"],"search_language_filter":["en"],"country":"US","search_after_date_filter":"3/1/2026","search_before_date_filter":"03/02/2026","search_type":"fast","display_server_time":true,"search_mode":null}`)
	if !strings.Contains(got, `"date":null,"last_updated":null`) || !strings.Contains(got, `"server_time":"2`) || strings.Count(got, "x") < 16384 || strings.Count(got, "x") > 16400 {
		t.Errorf("got %.300s… of %d", got, len(got))
	}
	if f := e.asked.Filter; e.asked.Max != 5 || f.NotDomains[0] != "b.org" || f.Country != "US" || f.After.Day() != 1 || f.Before.Day() != 2 || e.asked.Kind != web.Web {
		t.Errorf("asked %+v", e.asked)
	}
	if got := httpapitest.Answers(t, s, 200, `"id":"trc_`, "POST", "/v1/search", `{"query":"a","search_context_size":"low"}`); strings.Count(got, "x") > 1030 || strings.Contains(got, "server_time") {
		t.Errorf("got %d bytes", len(got))
	}
	if len(rows) != 2 || rows[0].Source != "web_search" || string(rows[0].Command) != "a\nb" {
		t.Errorf("rows are %+v", rows)
	}
	for body, says := range map[string]string{
		`{}`:                                       "query is required: a string, or an array of strings",
		`{"query":7}`:                              "query must be a string, or an array of strings",
		`{"query":[1]}`:                            "query must be a string, or an array of strings",
		`{"query":[]}`:                             "a list of 1 to 5",
		`{"query":null}`:                           "query is required",
		`{"query":"a","q":1}`:                      "unknown field",
		`{"query":"a","max_results":1.5}`:          "max_results must be a whole number",
		`{"query":"a","max_results":0}`:            "max_results must be a whole number",
		`{"query":"a","max_results":1e300}`:        "max_results must be a whole number",
		`{"query":"a","max_results":21}`:           "max_results must be between 1 and 20",
		`{"query":"a","search_mode":"academic"}`:   "search_mode must be one of web",
		`{"query":"a","search_type":"images"}`:     "search_type must be one of web, fast, people",
		`{"query":"a","search_recency_filter":""}`: "search_recency_filter must be one of hour",
		`{"query":"a","search_after_date_filter":"2026-03-01"}`:    "search_after_date_filter must be a day as MM/DD/YYYY",
		`{"query":"a","search_context_size":"low","max_tokens":1}`: "search_context_size stands for",
		`{"query":"a","search_domain_filter":["a.org","-b.org"]}`:  "search_domain_filter must name either",
		`{"query":"a","search_language_filter":["en","de","fr"]}`:  "search_language_filter must have at most 2 entries",
	} {
		httpapitest.Refused(t, httpapitest.Ask(s, "POST", "/v1/search", body), http.StatusBadRequest, "validation_error", says)
	}
	httpapitest.Refused(t, httpapitest.Ask(s, "POST", "/search", `{"query":"a","search_type":"people"}`), http.StatusNotFound, "not_found", "the setting people_search_provider")
}
