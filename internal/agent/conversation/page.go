package conversation

import (
	"context"
	"regexp"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
)

// Clients of Anthropic's API ask for long pages. They get several pages of the store, and fewer events
// where events are long.
const (
	// MaxPage is the largest number of entries of a page.
	MaxPage      = 1000
	maxPageBytes = 4 << 20
	storePage    = 100
)

// ReadEvents reads a page of events of a session or thread from the store.
type ReadEvents func(f session.EventFilter) (page []session.Event, next string, err error)

// Page reads the events of a filter, and calls take with each of them, which returns its size in bytes.
// next is the cursor of the next page.
func (read ReadEvents) Page(f session.EventFilter, take func(*session.Event) int) (next string, err error) {
	size := 0
	for left := f.Limit; len(f.Sorts) > 0 && left > 0 && size < maxPageBytes; left -= storePage {
		f.Limit = min(left, storePage)
		var page []session.Event
		if page, next, err = read(f); err != nil {
			return "", err
		}
		for i := range page {
			size += take(&page[i])
		}
		if f.Cursor = next; next == "" {
			break
		}
	}
	return next, nil
}

// named matches the ids of events that clients learn before the place of the event is known: they have the id of
// the turn.
var named = regexp.MustCompile(`^sevt_([0-9a-f]{32})(_m[1-9][0-9]{0,3}|_interrupt|[0-9a-f]{4,8})$`)

// Place returns the place of an event of a session or thread with so many events by the id of the event; 0
// for an unknown id. idOf returns the id that an event has for clients.
func (read ReadEvents) Place(of session.ID, events int64, id string, idOf func(session.ID, *session.Event) string) (int64, error) {
	if seq, ok := session.EventSeq(of, id); ok && seq <= events {
		return seq, nil
	}
	m := named.FindStringSubmatch(id)
	for cursor := ""; m != nil; {
		page, next, err := read(session.EventFilter{Page: agent.Page{Cursor: cursor, Limit: storePage}, Run: run.ID("run_" + m[1])})
		if err != nil {
			return 0, err
		}
		for i := range page {
			if idOf(of, &page[i]) == id {
				return page[i].Seq, nil
			}
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	return 0, invalid("Last-Event-ID and cursor must be the id of an event of this session")
}

// Threads reads a page of at most limit threads of a session. next is the cursor of the next page.
func (s *Service) Threads(ctx context.Context, of *session.Session, f session.ThreadFilter, limit int) (all []session.Thread, next string, err error) {
	for left := limit; left > 0; left -= storePage {
		f.Limit = min(left, storePage)
		var page []session.Thread
		if page, next, err = s.Store.Threads(ctx, of.Tenant, of.ID, f); err != nil {
			return nil, "", err
		}
		all = append(all, page...)
		if f.Cursor = next; next == "" {
			break
		}
	}
	return all, next, nil
}
