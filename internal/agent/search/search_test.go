package search_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/agent/search"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/web"
)

const key = "sk-of-the-provider"

// open is an engine whose provider is a handler.
func open(t *testing.T, provider string, serve http.HandlerFunc) *search.Engine {
	t.Helper()
	srv := httptest.NewServer(serve)
	t.Cleanup(srv.Close)
	e, err := search.Open(search.Config{Provider: provider, URL: srv.URL + "/base/", Key: key, Setting: "search"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func date(text string) time.Time {
	t, _ := time.Parse(time.DateOnly, text)
	return t
}

// TestProviders asks each in its wire format, with its quirks.
func TestProviders(t *testing.T) {
	for _, c := range []struct {
		name, provider string
		filter         web.Filter
		asks           []string // in the request: its line, headers and body
		answer         string
		want           []web.Result
	}{
		{
			"searxng", "searxng", web.Filter{Languages: []string{"de"}, Country: "AT", Recency: web.Week, NotDomains: []string{"x.org"}},
			[]string{"GET /base/search?", "categories=general", "format=json", "language=de-AT", "time_range=week", "q=a+%26+b+-site%3Ax.org", "Authorization: Bearer " + key},
			`{"query":"a","number_of_results":0,"results":[{"url":"https://a.org/1","title":"One","content":"First.","engine":"wikipedia","parsed_url":["https","a.org"],"score":4.0,"publishedDate":"2026-03-01T10:20:30","pubdate":"x"},
			  {"url":"https://a.org/2","title":"Two","content":null,"publishedDate":null}],"answers":[],"infoboxes":[],"suggestions":[],"unresponsive_engines":[["google","timeout"]]}`,
			[]web.Result{{Title: "One", URL: "https://a.org/1", Snippet: "First.", Date: time.Date(2026, 3, 1, 10, 20, 30, 0, time.UTC)}, {Title: "Two", URL: "https://a.org/2"}},
		},
		{
			"brave", "brave", web.Filter{Domains: []string{"a.org", "b.org"}, After: date("2026-01-02"), Before: date("2026-02-03"), Languages: []string{"ja"}, Country: "JP"},
			[]string{"GET /base/web/search?", "count=7", "country=JP", "search_lang=jp", "freshness=2026-01-02to2026-02-03", "q=a+%26+b+%28site%3Aa.org+OR+site%3Ab.org%29", "X-Subscription-Token: " + key},
			`{"type":"search","query":{"original":"a"},"web":{"type":"search","results":[{"title":"R&amp;D <strong>One</strong>","url":"https://a.org/1","description":"A <strong>match</strong> &lt;b&gt;","page_age":"2026-03-01T00:00:00","extra_snippets":["More."],"age":"3 days ago"}]}}`,
			[]web.Result{{Title: "R&D One", URL: "https://a.org/1", Snippet: "A match <b>\nMore.", Date: date("2026-03-01")}},
		},
		{"brave finds nothing", "brave", web.Filter{Recency: web.Day}, []string{"freshness=pd"}, `{"type":"search","query":{"original":"a"}}`, nil},
		{
			"tavily", "tavily", web.Filter{Domains: []string{"a.org"}, Recency: web.Month},
			[]string{"POST /base/search", "Authorization: Bearer " + key, `{"query":"a \u0026 b","max_results":7,"include_domains":["a.org"],"time_range":"month"}`},
			`{"query":"a","answer":null,"images":[],"follow_up_questions":null,"results":[{"url":"https://a.org/1","title":"One","content":"First.","score":0.9,"raw_content":null,"published_date":"Sun, 01 Mar 2026 00:00:00 GMT"}],"response_time":1.1}`,
			[]web.Result{{Title: "One", URL: "https://a.org/1", Snippet: "First.", Date: date("2026-03-01")}},
		},
		{
			"tavily with dates", "tavily", web.Filter{NotDomains: []string{"a.org"}, After: date("2026-01-02")},
			[]string{`"exclude_domains":["a.org"],"start_date":"2026-01-02"}`}, `{"results":[]}`, nil,
		},
		{
			"http", "http", web.Filter{NotDomains: []string{"a.org"}, Languages: []string{"de", "en"}, Country: "AT", Recency: web.Hour, UpdatedAfter: date("2026-01-02")},
			[]string{
				"POST /base ", "Authorization: Bearer " + key,
				`{"query":"a \u0026 b","search_type":"people","max_results":7,"search_domain_filter":["-a.org"],"search_language_filter":["de","en"],"country":"AT","search_recency_filter":"hour","last_updated_after_filter":"1/2/2026"}`,
			},
			`{"id":"x","results":[{"title":"One","url":"https://a.org/1","snippet":"First.","date":"2026-03-01","last_updated":null}]}`,
			[]web.Result{{Title: "One", URL: "https://a.org/1", Snippet: "First.", Date: date("2026-03-01")}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := open(t, c.provider, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				var asked strings.Builder
				asked.WriteString(r.Method + " " + r.URL.String() + " \n")
				_ = r.Header.Write(&asked)
				asked.Write(body)
				for _, part := range c.asks {
					if !strings.Contains(asked.String(), part) {
						t.Errorf("asked\n%s\nwithout %s", asked.String(), part)
					}
				}
				_, _ = w.Write([]byte(c.answer))
			})
			got, err := e.Search(t.Context(), web.Request{Kind: web.People, Text: "a & b", Max: 7, Filter: c.filter})
			if err != nil || len(got) != len(c.want) {
				t.Fatalf("got %+v, %v", got, err)
			}
			for i := range got {
				if got[i] != c.want[i] {
					t.Errorf("got %+v, want %+v", got[i], c.want[i])
				}
			}
		})
	}
}

// TestRefusals: callers learn what kind of failure it is, and neither the key nor what the
// provider says of the account.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name, provider string
		serve          http.HandlerFunc
		kind           fault.Kind
		says, logs     string
	}{
		{"a wrong key", "tavily", says(401, `{"detail":{"error":"Unauthorized: missing or invalid API key: `+key+`"}}`), fault.Unavailable, "rejects this server's key", "[key]"},
		{"a spent plan", "tavily", says(432, `{"detail":{"error":"This request exceeds your plan's set usage limit"}}`), fault.Unavailable, "answered 432", "plan's set usage limit"},
		{"a rate", "brave", says(429, `{"error":{"code":"RATE_LIMITED","detail":"Request rate limit exceeded","status":429}}`), fault.Unavailable, "answered 429", ""},
		{"a query it does not take", "brave", says(422, `{"error":{"detail":"Unable to validate request parameter(s)"}}`), fault.Invalid, "does not take this query (422)", ""},
		{"no JSON in SearXNG", "searxng", says(403, `<!doctype html>Forbidden`), fault.Unavailable, "answered 403", "settings.yml"},
		{"no engine of SearXNG", "searxng", says(200, `{"results":[],"unresponsive_engines":[["google","CAPTCHA"]]}`), fault.Unavailable, "cannot be read", "no engine"},
		{"a redirect", "http", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/base" {
				t.Errorf("the redirect to %s is followed", r.URL)
			}
			http.Redirect(w, r, "/other", http.StatusTemporaryRedirect)
		}, fault.Unavailable, "answered 307", ""},
		{"another page", "http", says(200, `<html>`), fault.Unavailable, "cannot be read", ""},
		{"other JSON", "http", says(200, `{"error":"x"}`), fault.Unavailable, "cannot be read", ""},
		{"half an answer", "http", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("{"))
		}, fault.Unavailable, "cannot be reached", ""},
		{"a bomb", "http", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			for range 8 {
				if _, err := z.Write(make([]byte, 1<<20)); err != nil {
					return // it is not read to its end
				}
			}
			_ = z.Close()
		}, fault.Unavailable, "larger than", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := open(t, c.provider, c.serve).Search(t.Context(), web.Request{Text: "secret words", Max: 5})
			f, ok := errors.AsType[*fault.Error](err)
			if !ok || f.Kind != c.kind || !strings.Contains(f.Msg, c.says) {
				t.Fatalf("got %v", err)
			}
			if !strings.Contains(err.Error(), c.logs) || strings.Contains(err.Error(), key) || strings.Contains(err.Error(), "secret") {
				t.Errorf("the log has %v", err)
			}
			if strings.Contains(f.Msg, "plan") {
				t.Errorf("callers are told %s", f.Msg)
			}
		})
	}
	e := open(t, "http", says(200, `{"results":[]}`))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Search(ctx, web.Request{Text: "a", Max: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that goes away: %v", err)
	}
	for provider, text := range map[string]string{"brave": strings.Repeat("a", 401), "searxng": "a"} {
		f := web.Filter{Country: "US"}
		if _, err := open(t, provider, says(200, `{}`)).Search(t.Context(), web.Request{Text: text, Filter: f}); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", provider, err)
		}
	}
}

func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

func TestOpen(t *testing.T) {
	for says, cfg := range map[string]search.Config{
		"search_provider: unknown":            {Provider: "other"},
		"search_url: must be set":             {Provider: "searxng"},
		"search_key_file: must be set":        {Provider: "brave"},
		"search_url: must be an http":         {Provider: "http", URL: "ftp://x"},
		"search_url: must be an http or http": {Provider: "http", URL: "http://u:p@x"},
		"host, an address":                    {Provider: "http", URL: "http://a_b!"},
	} {
		cfg.Setting = "search"
		if _, err := search.Open(cfg); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

// FuzzAnswer reads anything as the answer of each provider.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{`{"results":[{"url":"u","title":null,"content":"<b>"}]}`, `{"web":{"results":[{"title":"<a &lt;","extra_snippets":[null]}]}}`, `[]`, `{"results":{}}`, "", `{"results":[{"publishedDate":"0000-00-00"}]}`} {
		f.Add([]byte(s))
	}
	var body []byte
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) }))
	f.Cleanup(srv.Close)
	var all []*search.Engine
	for _, p := range search.Providers() {
		e, err := search.Open(search.Config{Provider: p, URL: srv.URL, Key: key})
		if err != nil {
			f.Fatal(err)
		}
		f.Cleanup(e.Close)
		all = append(all, e)
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		body = answer
		for _, e := range all {
			found, err := e.Search(t.Context(), web.Request{Text: "a", Max: 5})
			if err != nil && fault.KindOf(err) != fault.Unavailable {
				t.Fatalf("%s: %v", e.Name(), err)
			}
			if err == nil && !json.Valid(answer) {
				t.Fatalf("%s took %q and found %v", e.Name(), answer, found)
			}
		}
	})
}
