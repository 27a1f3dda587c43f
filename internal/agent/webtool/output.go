package webtool

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/web"
)

// Found is the run.ToolUse.Output of a search.
type Found struct {
	Results []Result `json:"results"`
}

// Result is a page that was found.
type Result struct {
	ID          int    `json:"id"` // from 1
	Title       string `json:"title"`
	URL         string `json:"url"`
	Snippet     string `json:"snippet"`
	Date        string `json:"date,omitzero"` // such as 2026-03-01
	LastUpdated string `json:"last_updated,omitzero"`
	Source      string `json:"source"`
}

// Read is the run.ToolUse.Output of pages that were read.
type Read struct {
	Contents []Content `json:"contents"`
}

// Content is a page, or the reason that Atoll cannot read it.
type Content struct {
	URL     string `json:"url"`
	Title   string `json:"title"`
	Snippet string `json:"snippet"`
	Error   string `json:"error,omitzero"`
}

// Limits in tokens: of one page, and of all pages of one call.
const (
	pageTokens = 10_000
	callTokens = 25_000
)

// maxSnippet is how many characters of a page are shown.
const maxSnippet = 2000

func day(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.DateOnly)
}

func results(found []web.Result) []Result {
	out := make([]Result, len(found))
	for i, r := range found {
		out[i] = Result{ID: i + 1, Title: r.Title, URL: r.URL, Snippet: r.Snippet, Date: day(r.Date), LastUpdated: day(r.Updated), Source: "web"}
	}
	return out
}

// fetch reads pages.
func (w *Web) fetch(ctx context.Context, c *loop.Call, by web.Caller, urls []string) (*loop.Outcome, error) {
	pages, err := w.Service.Fetch(ctx, by, urls, min(pageTokens, callTokens/len(urls)))
	if err != nil {
		return refused(ctx, c, err)
	}
	var told strings.Builder
	told.WriteString(web.Strangers)
	out, failed := Read{Contents: make([]Content, len(pages))}, 0
	for i, p := range pages {
		if p.Err != nil {
			failed++
			why := "it cannot be read"
			if f, ok := errors.AsType[*fault.Error](p.Err); ok {
				why = f.Msg
			}
			out.Contents[i] = Content{URL: p.Asked, Error: why}
			fmt.Fprintf(&told, "\n%s\nThere is no page: %s\n", p.Asked, why)
			continue
		}
		out.Contents[i] = Content{URL: p.URL, Title: p.Title, Snippet: web.Cut(p.Text, maxSnippet)}
		fmt.Fprintf(&told, "\n%s\n%s\n\n%s\n", p.URL, p.Title, p.Text)
		if p.Cut {
			told.WriteString("[the rest of the page is cut]\n")
		}
	}
	return outcome(c, out, told.String(), failed == len(pages))
}
