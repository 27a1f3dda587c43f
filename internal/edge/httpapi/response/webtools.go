package response

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/webtool"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/web"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// searchCall is what calls of web_search are shown as where it was asked for as OpenAI's
// tool: an item web_search_call, in place of search_results.
const searchCall = "web_search_call"

// withSources is the value of include by which OpenAI's clients ask for the URLs of searches.
const withSources = "web_search_call.action.sources"

// openAISearches are names that OpenAI alone has for the tool.
var openAISearches = []string{"web_search_preview", "web_search_preview_2025_03_11", "web_search_2025_08_26"}

func isWebTool(kind string) bool {
	return slices.Contains([]string{web.SearchName, web.PeopleName, web.FetchName}, kind) || slices.Contains(openAISearches, kind)
}

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

// parseWeb adds a tool of the web.
func (p *parser) parseWeb(path, kind string, text jsontext.Value, include []string) (run.Tool, error) {
	switch kind {
	case web.FetchName:
		return p.parseFetch(path, text)
	case web.PeopleName:
		var only struct {
			Type *string `json:"type" required:"true"`
		}
		if err := decode(path, text, &only); err != nil {
			return run.Tool{}, err
		}
		q := web.Query{Kind: web.People}
		if err := p.web.Check(q); err != nil {
			return run.Tool{}, here(path, err)
		}
		return webtool.Search(webtool.Options{Shown: web.PeopleName, Query: q}, "")
	}
	return p.parseSearch(path, kind, text, include)
}

// here is a refusal of a tool, which says where it was asked for.
func here(path string, err error) error {
	if fault.KindOf(err) == fault.Internal {
		return err
	}
	return invalid("%s: %s", path, err)
}

func (p *parser) parseFetch(path string, text jsontext.Value) (run.Tool, error) {
	var in FetchURLTool
	if err := decode(path, text, &in); err != nil {
		return run.Tool{}, err
	}
	o := webtool.Options{Shown: web.FetchName, MaxURLs: web.MaxURLs}
	if in.MaxURLs != nil {
		if o.MaxURLs = *in.MaxURLs; o.MaxURLs < 1 || o.MaxURLs > web.MaxURLs {
			return run.Tool{}, invalid("%s.max_urls must be between 1 and %d", path, web.MaxURLs)
		}
	}
	if err := p.web.CheckFetch(); err != nil {
		return run.Tool{}, here(path, err)
	}
	return webtool.Fetch(o)
}

func (p *parser) parseSearch(path, kind string, text jsontext.Value, include []string) (run.Tool, error) {
	var in WebSearchTool
	if err := decode(path, text, &in); err != nil {
		return run.Tool{}, err
	}
	if in.ExternalWebAccess != nil && !*in.ExternalWebAccess {
		return run.Tool{}, invalid("%s.external_web_access must be true: there is no cache to search", path)
	}
	if len(in.ContentTypes) > 0 && !slices.Equal(in.ContentTypes, []string{"text"}) {
		return run.Tool{}, invalid(`%s.search_content_types must be ["text"]: images are not searched`, path)
	}
	f := in.Filters
	if f == nil {
		f = &WebSearchFilters{}
	}
	if f.AllowedDomains != nil && f.Domains != nil {
		return run.Tool{}, invalid("%s.filters: allowed_domains and search_domain_filter are the same; give one of them", path)
	}
	o := webtool.Options{Shown: web.SearchName}
	if kind != web.SearchName || f.AllowedDomains != nil || in.ContextSize != nil || in.ExternalWebAccess != nil || slices.Contains(include, withSources) {
		o.Shown = searchCall
	}
	if c := in.UserLocation.country(); c != nil && len(*c) != len("US") {
		return run.Tool{}, invalid("%s.user_location.country must be two letters, such as US", path)
	}
	var err error
	if o.Query, err = in.query(f, o.Shown); err != nil {
		return run.Tool{}, here(path, err)
	}
	if err := p.web.Check(o.Query); err != nil {
		country := o.Query.Filter.Country
		o.Query.Filter.Country = ""
		if country == "" || p.web.Check(o.Query) != nil {
			return run.Tool{}, here(path, err)
		}
		// The provider has no such filter: the model is told where the user is.
	}
	return webtool.Search(o, in.UserLocation.text())
}

// query reads what narrows searches, as POST /v1/search does.
func (in *WebSearchTool) query(f *WebSearchFilters, shown string) (q web.Query, err error) {
	n := web.Narrowing{
		ContextSize: in.ContextSize, MaxTokens: whole(in.MaxTokens), MaxPerPage: whole(in.MaxPerPage), Domains: append(slices.Clone(f.Domains), f.AllowedDomains...),
		Country: in.UserLocation.country(), Recency: f.Recency, After: f.After, Before: f.Before, UpdatedAfter: f.UpdatedAfter, UpdatedBefore: f.UpdatedBefore,
	}
	if n.ContextSize == nil && shown == searchCall && in.MaxTokens == nil && in.MaxPerPage == nil {
		n.ContextSize = new(web.ContextSize("medium")) // as OpenAI has it
	}
	q.Kind = web.Web
	err = n.Apply(&q)
	return q, err
}

func whole(n *int) *wire.Whole {
	if n == nil {
		return nil
	}
	return new(wire.Whole(*n))
}

func (l *UserLocation) country() *string {
	if l == nil || l.Country == nil || *l.Country == "" {
		return nil
	}
	return new(strings.ToUpper(*l.Country))
}

// text is a location for the model to read.
func (l *UserLocation) text() string {
	if l == nil {
		return ""
	}
	var parts []string
	for _, part := range []*string{l.City, l.Region, l.Country, l.Timezone} {
		if part != nil && *part != "" {
			parts = append(parts, web.Line(*part, 100))
		}
	}
	if l.Latitude != nil && l.Longitude != nil {
		at, _ := json.Marshal([2]float64{*l.Latitude, *l.Longitude}) // of JSON's own numbers: never fails
		parts = append(parts, string(at))
	}
	return strings.Join(parts, ", ")
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
	out.Type, out.CallID = searchCall, ""
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
