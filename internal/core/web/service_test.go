package web_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/web"
)

// engine answers from a map of texts.
type engine struct {
	can   web.Filters
	found map[string][]web.Result
	err   error
	wait  chan struct{} // nil not to
	begun chan struct{}
}

func (e *engine) Name() string         { return "fake" }
func (e *engine) Filters() web.Filters { return e.can }

func (e *engine) Search(_ context.Context, r web.Request) ([]web.Result, error) {
	if e.wait != nil {
		e.begun <- struct{}{}
		<-e.wait
	}
	return e.found[r.Text], e.err
}

// trail keeps what is recorded.
type trail struct {
	mu   sync.Mutex
	rows []sandbox.Call
	err  error
}

func (t *trail) record(_ context.Context, _ *tenant.Principal, c sandbox.Call) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows = append(t.rows, c)
	return t.err
}

func page(n int) web.Result {
	return web.Result{Title: fmt.Sprint("Page ", n), URL: fmt.Sprintf("https://example.org/%d", n), Snippet: "text"}
}

func by(credits float64) web.Caller {
	return web.Caller{TraceID: "trc_1", Principal: &tenant.Principal{Tenant: tenant.Tenant{ID: "ten_1", MonthlyCredits: credits}}}
}

func urls(found []web.Result) (all []string) {
	for _, r := range found {
		all = append(all, strings.TrimPrefix(r.URL, "https://example.org/"))
	}
	return all
}

func TestSearchMerges(t *testing.T) {
	var rows trail
	e := &engine{found: map[string][]web.Result{
		"a": {page(1), page(2), page(3), page(4)},
		"b": {page(5), page(1), {Title: "no URL"}, {URL: "javascript:alert(1)"}, {URL: "https://u:p@example.org/"}, page(6)},
	}}
	s := web.New(web.Config{Web: e, Record: rows.record})
	found, err := s.Search(t.Context(), by(0), web.Query{Kind: web.Web, Texts: []string{"a", "b"}, Max: 5})
	if err != nil || !slices.Equal(urls(found), []string{"1", "5", "2", "3", "4"}) {
		t.Errorf("found %v, %v", urls(found), err)
	}
	want := sandbox.Call{TraceID: "trc_1", Source: "web_search", Command: []byte("a\nb"), Status: audit.OK}
	if len(rows.rows) != 1 || rows.rows[0].Source != want.Source || string(rows.rows[0].Command) != "a\nb" || rows.rows[0].Status != audit.OK || rows.rows[0].Refused || rows.rows[0].Metadata["results"] != "5" {
		t.Errorf("rows are %+v", rows.rows)
	}
	found, err = s.Search(t.Context(), by(0), web.Query{Kind: web.Web, Texts: []string{"nothing"}})
	if found == nil || len(found) != 0 || err != nil {
		t.Errorf("found %v, %v", found, err)
	}
}

// TestSearchBounds: what providers send is cut and cleaned, and held to the filter.
func TestSearchBounds(t *testing.T) {
	var rows trail
	long := strings.Repeat("ü", 1000)
	e := &engine{found: map[string][]web.Result{"a": {
		{Title: strings.Repeat("t", 1000), URL: "https://a.example.org/", Snippet: "x\x00y\n\n z \xff" + long},
		{Title: "", URL: "https://b.example.org/", Snippet: long},
		{Title: "evil", URL: "https://evilexample.org/", Snippet: long},
		{Title: "three", URL: "https://EXAMPLE.org/", Snippet: long},
	}}}
	s := web.New(web.Config{Web: e, Record: rows.record})
	found, err := s.Search(t.Context(), by(0), web.Query{Texts: []string{"a"}, MaxTokens: 150, MaxPerResult: 100, Filter: web.Filter{Domains: []string{".example.org"}}})
	if err != nil || len(found) != 3 {
		t.Fatalf("found %+v, %v", found, err)
	}
	if !strings.HasPrefix(found[0].Snippet, "x y z \uFFFDüü") || utf8.RuneCountInString(found[0].Snippet) != 400 || len(found[0].Title) != 500 {
		t.Errorf("the first is %+v", found[0])
	}
	if utf8.RuneCountInString(found[1].Snippet) != 200 || found[1].Title != "b.example.org" || found[2].Snippet != "" {
		t.Errorf("the others are %+v", found[1:])
	}
}

func TestSearchRefuses(t *testing.T) {
	var rows trail
	e := &engine{can: web.Filters{Languages: 1, Recencies: []web.Recency{web.Day}}}
	s := web.New(web.Config{Web: e, Record: rows.record, Used: func(context.Context, tenant.ID) (float64, error) { return 5, nil }})
	day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for says, q := range map[string]web.Query{
		"query must be a text":                 {},
		"a list of 1 to 5":                     {Texts: make([]string, 6)},
		"1 to 2000 characters":                 {Texts: []string{" "}},
		"and no NUL":                           {Texts: []string{"a\x00"}},
		"max_results must be between 1 and 20": {Texts: []string{"a"}, Max: 21},
		"max_tokens_per_page must be":          {Texts: []string{"a"}, MaxPerResult: -1},
		"either domains":                       {Texts: []string{"a"}, Filter: web.Filter{Domains: []string{"a.org"}, NotDomains: []string{"b.org"}}},
		"at most 20 domains":                   {Texts: []string{"a"}, Filter: web.Filter{Domains: make([]string, 21)}},
		"must have domains such as":            {Texts: []string{"a"}, Filter: web.Filter{Domains: []string{"a.org OR x"}}},
		"two lowercase letters":                {Texts: []string{"a"}, Filter: web.Filter{Languages: []string{"EN"}}},
		"at most 1 entries":                    {Texts: []string{"a"}, Filter: web.Filter{Languages: []string{"en", "de"}}},
		"two capital letters":                  {Texts: []string{"a"}, Filter: web.Filter{Country: "us"}},
		"country is not supported":             {Texts: []string{"a"}, Filter: web.Filter{Country: "US"}},
		"search_recency_filter hour is not":    {Texts: []string{"a"}, Filter: web.Filter{Recency: web.Hour}},
		"search_recency_filter cannot be comb": {Texts: []string{"a"}, Filter: web.Filter{Recency: web.Day, After: day}},
		"search_after_date_filter and":         {Texts: []string{"a"}, Filter: web.Filter{After: day}},
		"must not be later":                    {Texts: []string{"a"}, Filter: web.Filter{After: day, Before: day.AddDate(0, 0, -1)}},
		"last_updated_after_filter and":        {Texts: []string{"a"}, Filter: web.Filter{UpdatedBefore: day}},
	} {
		if _, err := s.Search(t.Context(), by(0), q); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
	_, err := s.Search(t.Context(), by(0), web.Query{Kind: web.People, Texts: []string{"a"}})
	if fault.KindOf(err) != fault.NotFound || !strings.Contains(err.Error(), "people_search_provider") {
		t.Errorf("what is off: %v", err)
	}
	if len(rows.rows) != 0 {
		t.Errorf("mistakes left rows: %+v", rows.rows)
	}
	if _, err := s.Search(t.Context(), by(5), web.Query{Texts: []string{"a"}}); fault.KindOf(err) != fault.Exhausted || !strings.Contains(err.Error(), "monthly budget") {
		t.Errorf("a spent budget: %v", err)
	}
	e.err = fault.New(fault.Unavailable, "down")
	if _, err := s.Search(t.Context(), by(6), web.Query{Texts: []string{"a"}}); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("a provider that is down: %v", err)
	}
	for _, r := range rows.rows { // nothing is charged for them
		if !r.Refused || r.Status == audit.OK {
			t.Errorf("a row is %+v", r)
		}
	}
	e.err, rows.err = nil, fault.New(fault.Unavailable, "no record")
	if found, err := s.Search(t.Context(), by(0), web.Query{Texts: []string{"a"}}); found != nil || err == nil {
		t.Errorf("an answer is given that is not on record: %v, %v", found, err)
	}
}

func TestSearchesAtOnce(t *testing.T) {
	var rows trail
	e := &engine{wait: make(chan struct{}), begun: make(chan struct{})}
	s := web.New(web.Config{Web: e, Record: rows.record})
	var all sync.WaitGroup
	for range web.MaxCalls {
		all.Go(func() {
			if _, err := s.Search(t.Context(), by(0), web.Query{Texts: []string{"a"}}); err != nil {
				t.Error(err)
			}
		})
		<-e.begun
	}
	if _, err := s.Search(t.Context(), by(0), web.Query{Texts: []string{"a"}}); fault.KindOf(err) != fault.Exhausted {
		t.Errorf("one more: %v", err)
	}
	close(e.wait)
	all.Wait()
	go func() { <-e.begun }()
	if _, err := s.Search(t.Context(), by(0), web.Query{Texts: []string{"a"}}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
