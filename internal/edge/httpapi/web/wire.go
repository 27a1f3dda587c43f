package web

import (
	"math"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/web"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// SearchRequest is a search, as clients of the contract send it.
type SearchRequest struct {
	Query         *wire.Texts  `json:"query" required:"true" doc:"Search query of 1 to 2000 characters, or a list of 1 to 5 queries, whose results are merged."`
	SearchType    *SearchType  `json:"search_type,omitzero" default:"" doc:"web for pages, of which fast is another name; people for people."`
	MaxResults    *wire.Whole  `json:"max_results,omitzero" minimum:"1" maximum:"100" default:"10" doc:"At most 20 of pages and 100 of people. A provider may have fewer."`
	MaxTokens     *wire.Whole  `json:"max_tokens,omitzero" minimum:"1" maximum:"1000000" default:"25000" doc:"Of all snippets together; 4 characters count as a token."`
	MaxPerPage    *wire.Whole  `json:"max_tokens_per_page,omitzero" minimum:"1" maximum:"1000000" default:"4096" doc:"Of each snippet."`
	ContextSize   *ContextSize `json:"search_context_size,omitzero" doc:"Instead of the two bounds in tokens: 256, 1024 or 4096 tokens of each page."`
	Domains       *[]wire.Text `json:"search_domain_filter,omitzero" maxItems:"20" doc:"Domains to search, with those below them; each with a leading - to leave them out."`
	Languages     *[]wire.Text `json:"search_language_filter,omitzero" maxItems:"20" doc:"Codes of ISO 639-1."`
	Country       *string      `json:"country,omitzero" doc:"A code of ISO 3166-1, such as US."`
	Recency       *Recency     `json:"search_recency_filter,omitzero" doc:"How long ago a page was published at most."`
	After         *Date        `json:"search_after_date_filter,omitzero" doc:"Published on this day, MM/DD/YYYY, or later."`
	Before        *Date        `json:"search_before_date_filter,omitzero" doc:"Published on this day or earlier."`
	UpdatedAfter  *Date        `json:"last_updated_after_filter,omitzero" doc:"Changed on this day or later."`
	UpdatedBefore *Date        `json:"last_updated_before_filter,omitzero" doc:"Changed on this day or earlier."`
	SearchMode    *SearchMode  `json:"search_mode,omitzero" default:"" doc:"Scope of the search."`
	ServerTime    *bool        `json:"display_server_time,omitzero" default:"false" doc:"Whether the answer says what time it is."`
}

// SearchType is web, fast or people.
type SearchType string

// Choices lists them.
func (SearchType) Choices() []string { return []string{"web", "fast", "people"} }

// SearchMode is web: other indexes are not searched.
type SearchMode string

// Choices lists them.
func (SearchMode) Choices() []string { return []string{"web"} }

// ContextSize is how much of each page is wanted.
type ContextSize string

// Choices lists them.
func (ContextSize) Choices() []string { return []string{"low", "medium", "high"} }

// contextTokens are the tokens of each page.
var contextTokens = map[ContextSize]int{"low": 256, "medium": 1024, "high": 4096}

// Recency is a web.Recency.
type Recency string

// Choices lists them.
func (Recency) Choices() []string {
	var all []string
	for _, r := range web.Recencies {
		all = append(all, string(r))
	}
	return all
}

// Date is a day, as in 3/1/2026.
type Date string

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
	for _, n := range []struct {
		name string
		from *wire.Whole
		to   *int
	}{{"max_results", in.MaxResults, &q.Max}, {"max_tokens", in.MaxTokens, &q.MaxTokens}, {"max_tokens_per_page", in.MaxPerPage, &q.MaxPerResult}} {
		if err := bounded(n.name, n.from, n.to); err != nil {
			return q, err
		}
	}
	if in.ContextSize != nil {
		if in.MaxTokens != nil || in.MaxPerPage != nil {
			return q, httpapi.Invalid("search_context_size stands for max_tokens and max_tokens_per_page: give it or them")
		}
		q.MaxPerResult = contextTokens[*in.ContextSize]
	}
	f := &q.Filter
	if in.Domains != nil {
		for _, d := range *in.Domains {
			if name, not := strings.CutPrefix(string(d), "-"); not {
				f.NotDomains = append(f.NotDomains, name)
			} else {
				f.Domains = append(f.Domains, name)
			}
		}
	}
	if in.Languages != nil {
		f.Languages = wire.Strings(*in.Languages)
	}
	if in.Country != nil {
		f.Country = *in.Country
	}
	if in.Recency != nil {
		f.Recency = web.Recency(*in.Recency)
	}
	for _, d := range []struct {
		name string
		from *Date
		to   *time.Time
	}{
		{"search_after_date_filter", in.After, &f.After}, {"search_before_date_filter", in.Before, &f.Before},
		{"last_updated_after_filter", in.UpdatedAfter, &f.UpdatedAfter}, {"last_updated_before_filter", in.UpdatedBefore, &f.UpdatedBefore},
	} {
		if d.from == nil {
			continue
		}
		if *d.to, err = time.Parse("1/2/2006", string(*d.from)); err != nil || d.to.Year() < 1 {
			return q, httpapi.Invalid("%s must be a day as MM/DD/YYYY, such as 3/1/2026", d.name)
		}
	}
	return q, nil
}

// bounded reads a whole number, if it is given.
func bounded(name string, from *wire.Whole, to *int) error {
	if from == nil {
		return nil
	}
	f := float64(*from)
	if f != math.Trunc(f) || f < 1 || f > web.MaxTokens {
		return httpapi.Invalid("%s must be a whole number from 1 to %d", name, web.MaxTokens)
	}
	*to = int(f)
	return nil
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

// Narrow is what narrows the searches of a tool.
type Narrow struct {
	ContextSize                                *ContextSize
	MaxTokens, MaxPerPage                      *int
	Domains                                    []string
	Country                                    *string
	Recency                                    *Recency
	After, Before, UpdatedAfter, UpdatedBefore *Date
}

// Narrowed reads it as a request is read.
func Narrowed(n Narrow) (web.Query, error) {
	whole := func(i *int) *wire.Whole {
		if i == nil {
			return nil
		}
		return new(wire.Whole(*i))
	}
	in := &SearchRequest{
		Query: &wire.Texts{}, ContextSize: n.ContextSize, MaxTokens: whole(n.MaxTokens), MaxPerPage: whole(n.MaxPerPage), Country: n.Country,
		Recency: n.Recency, After: n.After, Before: n.Before, UpdatedAfter: n.UpdatedAfter, UpdatedBefore: n.UpdatedBefore,
	}
	if len(n.Domains) > 0 {
		domains := make([]wire.Text, len(n.Domains))
		for i, d := range n.Domains {
			domains[i] = wire.Text(d)
		}
		in.Domains = &domains
	}
	return in.domain()
}
