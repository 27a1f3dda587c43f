package web

import (
	"time"

	"github.com/atoll-run/atoll/internal/core/web"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// SearchRequest is a search, as clients of the contract send it.
type SearchRequest struct {
	Query         *wire.Texts      `json:"query" required:"true" doc:"Search query of 1 to 2000 characters, or a list of 1 to 5 queries, whose results are merged."`
	SearchType    *SearchType      `json:"search_type,omitzero" default:"" doc:"web for pages, of which fast is another name; people for people."`
	MaxResults    *wire.Whole      `json:"max_results,omitzero" minimum:"1" maximum:"100" default:"10" doc:"At most 20 of pages and 100 of people. A provider may have fewer."`
	MaxTokens     *wire.Whole      `json:"max_tokens,omitzero" minimum:"1" maximum:"1000000" default:"25000" doc:"Of all snippets together; 4 characters count as a token."`
	MaxPerPage    *wire.Whole      `json:"max_tokens_per_page,omitzero" minimum:"1" maximum:"1000000" default:"4096" doc:"Of each snippet."`
	ContextSize   *web.ContextSize `json:"search_context_size,omitzero" doc:"Instead of the two bounds in tokens: 256, 1024 or 4096 tokens of each page."`
	Domains       *[]wire.Text     `json:"search_domain_filter,omitzero" maxItems:"20" doc:"Domains to search, with those below them; each with a leading - to leave them out."`
	Languages     *[]wire.Text     `json:"search_language_filter,omitzero" maxItems:"20" doc:"Codes of ISO 639-1."`
	Country       *string          `json:"country,omitzero" doc:"A code of ISO 3166-1, such as US."`
	Recency       *web.Recency     `json:"search_recency_filter,omitzero" doc:"How long ago a page was published at most."`
	After         *string          `json:"search_after_date_filter,omitzero" doc:"Published on this day, MM/DD/YYYY, or later."`
	Before        *string          `json:"search_before_date_filter,omitzero" doc:"Published on this day or earlier."`
	UpdatedAfter  *string          `json:"last_updated_after_filter,omitzero" doc:"Changed on this day or later."`
	UpdatedBefore *string          `json:"last_updated_before_filter,omitzero" doc:"Changed on this day or earlier."`
	SearchMode    *SearchMode      `json:"search_mode,omitzero" default:"" doc:"Scope of the search."`
	ServerTime    *bool            `json:"display_server_time,omitzero" default:"false" doc:"Whether the answer says what time it is."`
}

// SearchType is web, fast or people.
type SearchType string

// Choices lists them.
func (SearchType) Choices() []string { return []string{"web", "fast", "people"} }

// SearchMode is web: other indexes are not searched.
type SearchMode string

// Choices lists them.
func (SearchMode) Choices() []string { return []string{"web"} }

// SearchAnswer is what was found.
type SearchAnswer struct {
	ID         string         `json:"id" doc:"The call, as the audit trail names it."`
	Results    []SearchResult `json:"results" doc:"Best first."`
	ServerTime *time.Time     `json:"server_time,omitzero" nullable:"false" doc:"Time at the server, if requested."`
}

// SearchResult is a page that was found.
type SearchResult struct {
	Title       string  `json:"title"`
	URL         string  `json:"url"`
	Snippet     string  `json:"snippet" doc:"The provider's extract of the page's text."`
	Date        *string `json:"date" doc:"When it was published, as in 2026-03-01; null where that is not known."`
	LastUpdated *string `json:"last_updated" doc:"When it was changed, as in 2026-03-01; null where that is not known."`
}

// domain reads a request.
func (in *SearchRequest) domain() (q web.Query, err error) {
	q = web.Query{Kind: web.Web, Texts: *in.Query}
	if in.SearchType != nil && *in.SearchType == "people" {
		q.Kind = web.People
	}
	if err := web.WholeNumber("max_results", in.MaxResults, &q.Max); err != nil {
		return q, err
	}
	n := web.Narrowing{
		ContextSize: in.ContextSize, MaxTokens: in.MaxTokens, MaxPerPage: in.MaxPerPage, Country: in.Country, Recency: in.Recency,
		After: in.After, Before: in.Before, UpdatedAfter: in.UpdatedAfter, UpdatedBefore: in.UpdatedBefore,
	}
	if in.Domains != nil {
		n.Domains = wire.Strings(*in.Domains)
	}
	if in.Languages != nil {
		q.Filter.Languages = wire.Strings(*in.Languages)
	}
	err = n.Apply(&q)
	return q, err
}

// FetchRequest names pages.
type FetchRequest struct {
	URL        *wire.Texts `json:"url" required:"true" doc:"An http or https URL of at most 4096 bytes, or a list of 1 to 10."`
	MaxPerPage *wire.Whole `json:"max_tokens_per_page,omitzero" minimum:"1" maximum:"1000000" default:"25000" doc:"Of each page; 4 characters count as a token."`
}

// FetchAnswer is pages.
type FetchAnswer struct {
	ID       string        `json:"id" doc:"The call, as the audit trail names it."`
	Contents []FetchedPage `json:"contents" doc:"In the order of the URLs."`
}

// FetchedPage is a page, or the reason why it was not fetched.
type FetchedPage struct {
	URL         string  `json:"url" doc:"As it was given."`
	FinalURL    *string `json:"final_url" doc:"Where it was, after redirects; null with error."`
	Title       string  `json:"title"`
	Text        string  `json:"text"`
	MediaType   string  `json:"media_type" doc:"Such as text/html."`
	Date        *string `json:"date" doc:"When it was published, as in 2026-03-01; null where that is not known."`
	LastUpdated *string `json:"last_updated" doc:"When it was changed, as in 2026-03-01; null where that is not known."`
	Truncated   bool    `json:"truncated" doc:"It continues beyond text."`
	Error       *string `json:"error" doc:"Why there is no page; null for none."`
}

func pageOf(f web.Fetched) FetchedPage {
	if f.Err != nil {
		return FetchedPage{URL: f.Asked, Error: new(httpapi.Reason(f.Err))}
	}
	return FetchedPage{
		URL: f.Asked, FinalURL: &f.URL, Title: f.Title, Text: f.Text, MediaType: f.Media,
		Date: dateOf(f.Date), LastUpdated: dateOf(f.Updated), Truncated: f.Cut,
	}
}

func resultOf(r web.Result) SearchResult {
	return SearchResult{Title: r.Title, URL: r.URL, Snippet: r.Snippet, Date: dateOf(r.Date), LastUpdated: dateOf(r.Updated)}
}

// dateOf is a day as it is written, nil for the zero time.
func dateOf(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	return new(t.Format(time.DateOnly))
}
