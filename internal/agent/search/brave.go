package search

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/html"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/web"
)

var braveFilters = web.Filters{Languages: 1, Country: true, Published: true, Recencies: []web.Recency{web.Day, web.Week, web.Month, web.Year}}

// Bounds of Brave's API.
const (
	braveText    = 400 // characters of a query
	braveWords   = 50
	braveResults = 20
)

var braveFreshness = map[web.Recency]string{web.Day: "pd", web.Week: "pw", web.Month: "pm", web.Year: "py"}

// braveLanguages are the codes that differ from ISO 639-1.
var braveLanguages = map[string]string{"ja": "jp", "zh": "zh-hans", "pt": "pt-pt"}

// askBrave: see api-dashboard.search.brave.com/api-reference/web/search.
func askBrave(e *Engine, ctx context.Context, r web.Request) (*http.Request, error) {
	q := sites(r.Text, &r.Filter)
	if utf8.RuneCountInString(q) > braveText || len(strings.Fields(q)) > braveWords {
		return nil, fault.New(fault.Invalid, "query must have at most %d characters and %d words, including the domains of the filter: the server's provider (brave) accepts no more", braveText, braveWords)
	}
	params := url.Values{"q": {q}, "count": {strconv.Itoa(min(r.Max, braveResults))}, "result_filter": {"web"}, "text_decorations": {"false"}}
	if r.Filter.Country != "" {
		params.Set("country", r.Filter.Country)
	}
	for _, l := range r.Filter.Languages {
		params.Set("search_lang", cmp.Or(braveLanguages[l], l))
	}
	if f := braveFreshness[r.Filter.Recency]; f != "" {
		params.Set("freshness", f)
	} else if !r.Filter.After.IsZero() || !r.Filter.Before.IsZero() {
		after, before := r.Filter.After, r.Filter.Before
		if after.IsZero() {
			after = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
		}
		if before.IsZero() {
			before = time.Now().UTC()
		}
		params.Set("freshness", after.Format(time.DateOnly)+"to"+before.Format(time.DateOnly))
	}
	req, err := e.get(ctx, "web/search", params)
	if err == nil {
		req.Header.Set("X-Subscription-Token", e.key)
	}
	return req, err
}

func readBrave(body []byte) ([]web.Result, error) {
	var answer struct {
		Web *struct {
			Results []struct {
				URL, Title, Description string
				Snippets                []string `json:"extra_snippets"`
				PageAge                 string   `json:"page_age"`
			}
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	if answer.Web == nil { // there is no such part where nothing is found
		return nil, nil
	}
	found := make([]web.Result, 0, len(answer.Web.Results))
	for _, r := range answer.Web.Results {
		found = append(found, web.Result{
			Title: unmarked(r.Title), URL: r.URL, Snippet: unmarked(strings.Join(append([]string{r.Description}, r.Snippets...), "\n")), Date: when(r.PageAge),
		})
	}
	return found, nil
}

// unmarked is a text without the marks of HTML, which Brave puts around matches.
func unmarked(s string) string {
	if !strings.ContainsAny(s, "<&") {
		return s
	}
	var out strings.Builder
	for z := html.NewTokenizer(strings.NewReader(s)); ; {
		switch z.Next() {
		case html.ErrorToken:
			return out.String()
		case html.TextToken:
			out.Write(z.Text())
		}
	}
}
