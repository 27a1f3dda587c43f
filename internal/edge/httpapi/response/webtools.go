package response

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/response"
	"github.com/atoll-run/atoll/internal/agent/webtool"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/web"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// WebSearchTool is the tool web_search, as both of its vendors have it.
type WebSearchTool struct {
	Type              *string           `json:"type" required:"true"`
	Filters           *WebSearchFilters `json:"filters,omitzero"`
	ContextSize       *web.ContextSize  `json:"search_context_size,omitzero"`
	MaxTokens         *int              `json:"max_tokens,omitzero"`
	MaxPerPage        *int              `json:"max_tokens_per_page,omitzero"`
	UserLocation      *UserLocation     `json:"user_location,omitzero"`
	ExternalWebAccess *bool             `json:"external_web_access,omitzero"`
	ContentTypes      []string          `json:"search_content_types,omitzero"`
}

// WebSearchFilters narrow searches.
type WebSearchFilters struct {
	AllowedDomains []string     `json:"allowed_domains,omitzero"`
	Domains        []string     `json:"search_domain_filter,omitzero"`
	Recency        *web.Recency `json:"search_recency_filter,omitzero"`
	After          *string      `json:"search_after_date_filter,omitzero"`
	Before         *string      `json:"search_before_date_filter,omitzero"`
	UpdatedAfter   *string      `json:"last_updated_after_filter,omitzero"`
	UpdatedBefore  *string      `json:"last_updated_before_filter,omitzero"`
}

// UserLocation is about where the user is.
type UserLocation struct {
	Type      *string  `json:"type,omitzero" enum:"approximate"`
	City      *string  `json:"city,omitzero"`
	Region    *string  `json:"region,omitzero"`
	Country   *string  `json:"country,omitzero"`
	Timezone  *string  `json:"timezone,omitzero"`
	Latitude  *float64 `json:"latitude,omitzero"`
	Longitude *float64 `json:"longitude,omitzero"`
}

// FetchURLTool is the tool fetch_url.
type FetchURLTool struct {
	Type    *string `json:"type" required:"true"`
	MaxURLs *int    `json:"max_urls,omitzero"`
}

// webTool decodes a tool of the web.
func (r *reader) webTool(path, kind string, text jsontext.Value) error {
	switch kind {
	case web.FetchName:
		var in FetchURLTool
		if err := decode(path, text, &in); err != nil {
			return err
		}
		return r.Fetch(path, in.MaxURLs, text)
	case web.PeopleName:
		if err := decode(path, text, &onlyType{}); err != nil {
			return err
		}
		return r.People(path, text)
	}
	var in WebSearchTool
	if err := decode(path, text, &in); err != nil {
		return err
	}
	f := in.Filters
	if f == nil {
		f = &WebSearchFilters{}
	}
	ask := &response.Search{
		Kind: kind, Domains: f.AllowedDomains, ExternalWebAccess: in.ExternalWebAccess, ContentTypes: in.ContentTypes,
		Narrow: web.Narrowing{
			ContextSize: in.ContextSize, MaxTokens: whole(in.MaxTokens), MaxPerPage: whole(in.MaxPerPage), Domains: f.Domains,
			Recency: f.Recency, After: f.After, Before: f.Before, UpdatedAfter: f.UpdatedAfter, UpdatedBefore: f.UpdatedBefore,
		},
	}
	if l := in.UserLocation; l != nil {
		ask.Place = &response.Place{City: l.City, Region: l.Region, Country: l.Country, Timezone: l.Timezone, Latitude: l.Latitude, Longitude: l.Longitude}
	}
	return r.Search(path, ask, text)
}

func whole(n *int) *wire.Whole {
	if n == nil {
		return nil
	}
	return new(wire.Whole(*n))
}

// ResponsePage is a page that was read.
type ResponsePage struct {
	URL     string `json:"url" required:"true"`
	Title   string `json:"title" required:"true"`
	Snippet string `json:"snippet" required:"true" doc:"A piece of the page's text."`
	Error   string `json:"error,omitzero" doc:"Why there is no page."`
}

// ResponseAction is what an item web_search_call did, or will do.
type ResponseAction struct {
	Type    string                 `json:"type" required:"true" enum:"search"`
	Query   string                 `json:"query" required:"true" doc:"Search query."`
	Queries []string               `json:"queries" required:"true" doc:"Search queries."`
	Sources []ResponseActionSource `json:"sources,omitzero" doc:"Pages that were found."`
}

// ResponseActionSource is a page that a search found.
type ResponseActionSource struct {
	Type string `json:"type" required:"true" enum:"url"`
	URL  string `json:"url" required:"true"`
}

// found reads what a search found, nothing while it continues.
func found(u *run.ToolUse) (a webtool.Arguments, f webtool.Found, err error) {
	if err = json.Unmarshal(u.Input, &a); err == nil && u.Output != nil {
		err = json.Unmarshal(u.Output, &f)
	}
	return a, f, err
}

func showResults(out *ResponseItem, u *run.ToolUse) error {
	a, f, err := found(u)
	if err != nil {
		return err
	}
	if f.Results == nil {
		f.Results = []webtool.Result{}
	}
	out.Type, out.Queries, out.Error = "search_results", a.Queries, u.Error
	out.Results, err = json.Marshal(f.Results)
	return err
}

func showSearchCall(out *ResponseItem, u *run.ToolUse) error {
	a, f, err := found(u)
	if err != nil {
		return err
	}
	out.Type, out.CallID = response.SearchCall, ""
	out.Action = &ResponseAction{Type: "search", Queries: a.Queries, Query: strings.Join(a.Queries, "; ")}
	for _, r := range f.Results {
		out.Action.Sources = append(out.Action.Sources, ResponseActionSource{"url", r.URL})
	}
	return nil
}

func showPages(out *ResponseItem, u *run.ToolUse) error {
	var r webtool.Read
	if u.Output != nil {
		if err := json.Unmarshal(u.Output, &r); err != nil {
			return err
		}
	}
	contents := make([]ResponsePage, len(r.Contents))
	for i, c := range r.Contents {
		contents[i] = ResponsePage(c)
	}
	out.Type, out.Contents, out.Error = "fetch_url_results", &contents, u.Error
	return nil
}
