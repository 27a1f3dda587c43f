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
)

// SearchCall is how calls of web_search are shown if the request names OpenAI's tool.
const SearchCall = "web_search_call"

// openAISearches are names that only OpenAI has for the tool.
var openAISearches = []string{"web_search_preview", "web_search_preview_2025_03_11", "web_search_2025_08_26"}

// IsWebTool reports whether tools of a type search or read the web.
func IsWebTool(kind string) bool {
	return slices.Contains([]string{web.SearchName, web.PeopleName, web.FetchName}, kind) || slices.Contains(openAISearches, kind)
}

// here is a rejection of a tool, at its path.
func here(path string, err error) error {
	if fault.KindOf(err) == fault.Internal {
		return err
	}
	return invalid("%s: %s", path, err)
}

// web adds a tool of the web.
func (p *Plan) web(t run.Tool, err error, shown jsontext.Value) error {
	if err == nil {
		p.tool(&t, shown)
	}
	return err
}

// People adds people_search.
func (p *Plan) People(path string, shown jsontext.Value) error {
	q := web.Query{Kind: web.People}
	if err := p.s.Web.Check(q); err != nil {
		return here(path, err)
	}
	t, err := webtool.Search(webtool.Options{Shown: web.PeopleName, Query: q}, "")
	return p.web(t, err, shown)
}

// Fetch adds fetch_url.
func (p *Plan) Fetch(path string, maxURLs *int, shown jsontext.Value) error {
	o := webtool.Options{Shown: web.FetchName, MaxURLs: web.MaxURLs}
	if maxURLs != nil {
		if o.MaxURLs = *maxURLs; o.MaxURLs < 1 || o.MaxURLs > web.MaxURLs {
			return invalid("%s.max_urls must be between 1 and %d", path, web.MaxURLs)
		}
	}
	if err := p.s.Web.CheckFetch(); err != nil {
		return here(path, err)
	}
	t, err := webtool.Fetch(o)
	return p.web(t, err, shown)
}

// Search is the tool web_search. Nil fields were omitted.
type Search struct {
	Kind              string // the name of the tool
	Narrow            web.Narrowing
	Domains           []string // OpenAI's filter
	Place             *Place
	ExternalWebAccess *bool
	ContentTypes      []string
}

// Place is where the user is. Nil fields were omitted.
type Place struct {
	City, Region, Country, Timezone *string
	Latitude, Longitude             *float64
}

// Search adds web_search.
func (p *Plan) Search(path string, in *Search, shown jsontext.Value) error {
	if in.ExternalWebAccess != nil && !*in.ExternalWebAccess {
		return invalid("%s.external_web_access must be true: there is no cache to search", path)
	}
	if len(in.ContentTypes) > 0 && !slices.Equal(in.ContentTypes, []string{"text"}) {
		return invalid(`%s.search_content_types must be ["text"]: images are not searched`, path)
	}
	n := in.Narrow
	if in.Domains != nil && n.Domains != nil {
		return invalid("%s.filters: allowed_domains and search_domain_filter are the same; give one of them", path)
	}
	o := webtool.Options{Shown: web.SearchName}
	if in.Kind != web.SearchName || in.Domains != nil || n.ContextSize != nil || in.ExternalWebAccess != nil || slices.Contains(p.o.Include, IncludeSources) {
		o.Shown = SearchCall
	}
	if n.Country = in.Place.country(); n.Country != nil && len(*n.Country) != len("US") {
		return invalid("%s.user_location.country must be two letters, such as US", path)
	}
	n.Domains = append(slices.Clone(n.Domains), in.Domains...)
	if n.ContextSize == nil && o.Shown == SearchCall && n.MaxTokens == nil && n.MaxPerPage == nil {
		n.ContextSize = new(web.ContextSize("medium")) // OpenAI's default
	}
	o.Query.Kind = web.Web
	if err := n.Apply(&o.Query); err != nil {
		return here(path, err)
	}
	if err := p.s.Web.Check(o.Query); err != nil {
		country := o.Query.Filter.Country
		o.Query.Filter.Country = ""
		if country == "" || p.s.Web.Check(o.Query) != nil {
			return here(path, err)
		}
		// The provider lacks such a filter: the model learns where the user is.
	}
	t, err := webtool.Search(o, in.Place.text())
	return p.web(t, err, shown)
}

func (l *Place) country() *string {
	if l == nil || l.Country == nil || *l.Country == "" {
		return nil
	}
	return new(strings.ToUpper(*l.Country))
}

// text is a place for the model to read.
func (l *Place) text() string {
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
