package search

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/atoll-run/atoll/internal/core/web"
)

// httpFilters are all of them: the server behind the URL refuses what it does not do.
var httpFilters = web.Filters{Languages: web.MaxFilters, Country: true, Published: true, Updated: true, Recencies: web.Recencies}

// contractDate is how the contract writes dates.
const contractDate = "1/2/2006"

// askHTTP asks as clients ask this server by POST /v1/search: docs/reference/web.md has the contract.
func askHTTP(e *Engine, ctx context.Context, r web.Request) (*http.Request, error) {
	date := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.Format(contractDate)
	}
	f := &r.Filter
	body := struct {
		Query         string      `json:"query"`
		Type          web.Kind    `json:"search_type"`
		Max           int         `json:"max_results"`
		Domains       []string    `json:"search_domain_filter,omitempty"`
		Languages     []string    `json:"search_language_filter,omitempty"`
		Country       string      `json:"country,omitempty"`
		Recency       web.Recency `json:"search_recency_filter,omitempty"`
		After         string      `json:"search_after_date_filter,omitempty"`
		Before        string      `json:"search_before_date_filter,omitempty"`
		UpdatedAfter  string      `json:"last_updated_after_filter,omitempty"`
		UpdatedBefore string      `json:"last_updated_before_filter,omitempty"`
	}{
		Query: r.Text, Type: r.Kind, Max: r.Max, Domains: f.Domains, Languages: f.Languages, Country: f.Country, Recency: f.Recency,
		After: date(f.After), Before: date(f.Before), UpdatedAfter: date(f.UpdatedAfter), UpdatedBefore: date(f.UpdatedBefore),
	}
	for _, d := range f.NotDomains {
		body.Domains = append(body.Domains, "-"+d)
	}
	return e.post(ctx, "", body)
}

func readHTTP(body []byte) ([]web.Result, error) {
	var answer struct {
		Results *[]struct {
			Title, URL, Snippet, Date *string
			Updated                   *string `json:"last_updated"`
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	if answer.Results == nil {
		return nil, errors.New("it has no results")
	}
	found := make([]web.Result, 0, len(*answer.Results))
	for _, r := range *answer.Results {
		found = append(found, web.Result{Title: text(r.Title), URL: text(r.URL), Snippet: text(r.Snippet), Date: when(text(r.Date)), Updated: when(text(r.Updated))})
	}
	return found, nil
}
