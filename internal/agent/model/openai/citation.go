package openai

import (
	"encoding/json"

	"github.com/atoll-run/atoll/internal/core/model"
)

// annotation is a citation in either protocol: of Chat Completions its fields are in an
// object of their own.
type annotation struct {
	Type string `json:"type"`
	citation
	Nested citation `json:"url_citation"`
}

type citation struct {
	URL   string `json:"url"`
	Title string `json:"title"`
	Start int    `json:"start_index"`
	End   int    `json:"end_index"`
}

// citationOf reads an annotation; nil for one of another kind, or of no page.
func citationOf(raw json.RawMessage) *model.Citation {
	var is annotation
	if json.Unmarshal(raw, &is) != nil || is.Type != "url_citation" {
		return nil
	}
	of := is.citation
	if of.URL == "" {
		of = is.Nested
	}
	c, ok := model.Citation(of).Sound()
	if !ok {
		return nil
	}
	return &c
}

// cite passes on a citation of a message of which text has come.
func (a *answer) cite(at int, raw json.RawMessage) {
	if c := citationOf(raw); c != nil && a.said[at] && a.calls[at] == nil {
		a.cited[at] = true
		a.send(model.Delta{Kind: model.Cited, Index: at, Citation: c})
	}
}
