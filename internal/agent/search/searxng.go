package search

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/web"
)

// searxngFilters are what all engines behind SearXNG have in common.
var searxngFilters = web.Filters{Languages: 1, Country: true, Locales: true, Recencies: []web.Recency{web.Day, web.Week, web.Month, web.Year}}

// askSearXNG: see docs.searxng.org/dev/search_api. It has no number of results, and no
// country but that of a language.
func askSearXNG(e *Engine, ctx context.Context, r web.Request) (*http.Request, error) {
	params := url.Values{"q": {sites(r.Text, &r.Filter)}, "format": {"json"}, "categories": {"general"}}
	locale := strings.Join(r.Filter.Languages, "")
	switch {
	case r.Filter.Country != "" && locale == "":
		return nil, fault.New(fault.Invalid, "country needs a language in search_language_filter: the server's provider (searxng) supports countries only with a language")
	case r.Filter.Country != "":
		locale += "-" + r.Filter.Country
	}
	if locale != "" {
		params.Set("language", locale)
	}
	if r.Filter.Recency != "" {
		params.Set("time_range", string(r.Filter.Recency))
	}
	req, err := e.get(ctx, "search", params)
	if err == nil {
		e.bearer(req) // of a proxy before it: SearXNG itself has no keys
	}
	return req, err
}

func readSearXNG(body []byte) ([]web.Result, error) {
	var answer struct {
		Results []struct {
			URL, Title, Content *string
			PublishedDate       *string `json:"publishedDate"`
		}
		Unresponsive []json.RawMessage `json:"unresponsive_engines"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	if len(answer.Results) == 0 && len(answer.Unresponsive) > 0 {
		return nil, errors.New("no engine of SearXNG answered")
	}
	found := make([]web.Result, 0, len(answer.Results))
	for _, r := range answer.Results {
		found = append(found, web.Result{Title: text(r.Title), URL: text(r.URL), Snippet: text(r.Content), Date: when(text(r.PublishedDate))})
	}
	return found, nil
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
