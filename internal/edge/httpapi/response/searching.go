package response

import (
	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/agent/webtool"
	"github.com/atoll-run/atoll/internal/core/run"
)

// The contract's clients read what searches and pages are about from events of their own,
// which stand beside the items search_results and fetch_url_results. Clients that do not know
// these items get none: they are of requests that name the tools as the contract does.

// searched is a call whose item is the contract's.
func searched(it *run.Item, shown *ResponseItem) bool {
	return it.Use != nil && (shown.Type == "search_results" || shown.Type == "fetch_url_results")
}

// searchBegan tells what is looked for. A reader is told once of calls side by side that the
// search has begun, and once that it is over.
func (s *stream) searchBegan(it *run.Item, shown *ResponseItem) error {
	if !searched(it, shown) {
		return nil
	}
	var a webtool.Arguments
	if err := json.Unmarshal(it.Use.Input, &a); err != nil {
		return err
	}
	if s.searching++; s.searching == 1 {
		if err := s.send(&ResponseEvent{Type: "response.reasoning.started"}); err != nil {
			return err
		}
	}
	if shown.Type == "search_results" {
		return s.send(&ResponseEvent{Type: "response.reasoning.search_queries", Queries: a.Queries})
	}
	return s.send(&ResponseEvent{Type: "response.reasoning.fetch_url_queries", URLs: a.URLs})
}

// searchDone tells what was found.
func (s *stream) searchDone(it *run.Item, shown *ResponseItem) error {
	if !searched(it, shown) {
		return nil
	}
	if it.Status == run.ItemCompleted {
		e := &ResponseEvent{Type: "response.reasoning.search_results", Results: shown.Results}
		if shown.Type == "fetch_url_results" {
			e = &ResponseEvent{Type: "response.reasoning.fetch_url_results", Contents: shown.Contents}
		}
		if err := s.send(e); err != nil {
			return err
		}
	}
	if s.searching--; s.searching > 0 {
		return nil
	}
	return s.send(&ResponseEvent{Type: "response.reasoning.stopped"})
}
