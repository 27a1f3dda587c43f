package search

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/atoll-run/atoll/internal/core/web"
)

var tavilyFilters = web.Filters{Published: true, Recencies: []web.Recency{web.Day, web.Week, web.Month, web.Year}}

const tavilyResults = 20

// askTavily: see docs.tavily.com/documentation/api-reference/endpoint/search.
func askTavily(e *Engine, ctx context.Context, r web.Request) (*http.Request, error) {
	body := struct {
		Query     string      `json:"query"`
		Max       int         `json:"max_results"`
		Domains   []string    `json:"include_domains,omitempty"`
		Not       []string    `json:"exclude_domains,omitempty"`
		TimeRange web.Recency `json:"time_range,omitempty"`
		Start     string      `json:"start_date,omitempty"`
		End       string      `json:"end_date,omitempty"`
	}{Query: r.Text, Max: min(r.Max, tavilyResults), Domains: r.Filter.Domains, Not: r.Filter.NotDomains, TimeRange: r.Filter.Recency, Start: day(r.Filter.After), End: day(r.Filter.Before)}
	return e.post(ctx, "search", body)
}

// day is a date, "" for the zero time.
func day(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.DateOnly)
}

func readTavily(body []byte) ([]web.Result, error) {
	var answer struct {
		Results []struct {
			URL, Title, Content string
			Published           *string `json:"published_date"` // of news alone
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	found := make([]web.Result, 0, len(answer.Results))
	for _, r := range answer.Results {
		found = append(found, web.Result{Title: r.Title, URL: r.URL, Snippet: r.Content, Date: when(text(r.Published))})
	}
	return found, nil
}
