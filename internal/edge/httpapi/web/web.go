// Package web serves what programs may ask of the web through the server.
package web

import (
	"net/http"
	"time"

	"github.com/atoll-run/atoll/internal/control/webcall"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/web"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Handlers serve the web.
type Handlers struct{ Web *web.Service }

// Operations are those of searches, under /v1 and where the contract's clients ask, and
// that of pages.
func (h *Handlers) Operations() []httpapi.Operation {
	example := SearchRequest{Query: &wire.Texts{"gVisor systrap platform"}, MaxResults: new(wire.Whole(5))}
	ops := []httpapi.Operation{
		{
			Path: "/v1/search", ID: "search", Description: "One query, or up to 5 whose results are merged, by the operator's provider of searches, within 20 s for each. A filter that the provider does not have is refused by name. It is charged as one call of `web_search` or `people_search`.",
			Body: httpapi.JSON(example),
		},
		{
			Path: "/search", ID: "searchOfContract", Description: "POST /v1/search at the path that the contract's clients ask, whose `client.search.create` it serves.",
			Body: httpapi.JSON(SearchRequest{Query: &wire.Texts{"EROFS", "overlayfs"}, SearchType: new(SearchType("web"))}),
		},
	}
	for i := range ops {
		op := &ops[i]
		op.Method, op.Tag, op.Scope, op.Summary = http.MethodPost, "web", tenant.ScopeTools, "Search the web, or for people"
		op.Answers = []httpapi.Answer{
			httpapi.OK(SearchAnswer{}, "Search results, which can be empty."),
			httpapi.Refusal(http.StatusNotFound, "not_found: the operator has not turned this search on; message names the setting."),
			httpapi.Refusal(http.StatusTooManyRequests, "rate_limited: over a limit of the plan, the month's budget, or 16 searches and pages at once."),
			httpapi.Refusal(http.StatusServiceUnavailable, "service_unavailable: the provider of searches cannot be reached, or refuses this server."),
		}
		op.Serve = httpapi.Takes(h.search)
	}
	return append(ops, httpapi.Operation{
		Method: http.MethodPost, Path: "/v1/fetch", ID: "fetch", Tag: "web", Scope: tenant.ScopeTools, Summary: "Read pages of the web as text",
		Description: "Of a page of HTML it is the article, or the whole text where it has none.",
		Body:        httpapi.JSON(FetchRequest{URL: &wire.Texts{"https://gvisor.dev/docs/"}}),
		Answers: []httpapi.Answer{
			httpapi.OK(FetchAnswer{}, "The pages in the order of their URLs; error says why one could not be read."),
			httpapi.Refusal(http.StatusNotFound, "not_found: the operator has not turned this on; message names the setting."),
			httpapi.Refusal(http.StatusTooManyRequests, "rate_limited: over a limit of the plan, the month's budget, or 16 searches and pages at once."),
			httpapi.Refusal(http.StatusServiceUnavailable, "service_unavailable: it could not be recorded, or took too long."),
		},
		Serve: httpapi.Takes(h.fetch),
	})
}

// callerOf returns who calls, which a program in a sandbox may be.
func callerOf(c *httpapi.Call) web.Caller {
	call := webcall.Of(c.Context())
	return web.Caller{Principal: c.Caller, TraceID: c.TraceID(), Reserve: call.Reserve(c.Caller), Held: call != nil && call.Held}
}

func (h *Handlers) fetch(c *httpapi.Call, in *FetchRequest) (out FetchAnswer, err error) {
	tokens := 0
	if err := web.WholeNumber("max_tokens_per_page", in.MaxPerPage, &tokens); err != nil {
		return out, err
	}
	pages, err := h.Web.Fetch(c.Context(), callerOf(c), *in.URL, tokens)
	if err != nil {
		return out, err
	}
	return FetchAnswer{ID: c.TraceID(), Contents: httpapi.Each(pages, pageOf)}, nil
}

func (h *Handlers) search(c *httpapi.Call, in *SearchRequest) (out SearchAnswer, err error) {
	q, err := in.domain()
	if err != nil {
		return out, err
	}
	found, err := h.Web.Search(c.Context(), callerOf(c), q)
	if err != nil {
		return out, err
	}
	out = SearchAnswer{ID: c.TraceID(), Results: httpapi.Each(found, resultOf)}
	if in.ServerTime != nil && *in.ServerTime {
		out.ServerTime = new(time.Now().UTC())
	}
	return out, nil
}
