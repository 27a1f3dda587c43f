package session

import (
	"net/http"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// eventParams are the parameters of a list of events.
func eventParams() []httpapi.Param {
	return append(httpapi.PageParams(100, 100),
		httpapi.Param{Name: "order", Enum: []string{"asc", "desc"}, Doc: "asc, the oldest first, if omitted."},
		httpapi.Param{Name: "types", Doc: "Only events of these types, separated by commas.", Max: 256})
}

var (
	deltas = httpapi.Param{Name: "deltas", Type: httpapi.Bool, Doc: "Send pieces of messages, thinking and tool_use, too, as they come."}
	stream = []httpapi.Media{{Type: httpapi.EventStream, Body: httpapi.OneOf{SessionEvent{}, SessionDelta{}}}}
)

// streamParams are the parameters of a stream.
func streamParams() []httpapi.Param {
	return []httpapi.Param{
		deltas, {Name: "after", Doc: "The id of the last event that the client has; in place of Last-Event-ID.", Max: 64},
		{Name: "Last-Event-ID", In: httpapi.InHeader, Doc: "The id of the last event that the client has."},
	}
}

func (h *Handlers) eventOperations(one, suffix string, id []httpapi.Param, unknown, busy httpapi.Answer) []httpapi.Operation {
	limited := httpapi.Refusal(http.StatusTooManyRequests, "rate_limited: over a rate or another limit of the plan, or the budget; Retry-After says until when.")
	return []httpapi.Operation{
		{
			Method: http.MethodGet, Path: one + "/events", ID: "listSessionEvents" + suffix, Summary: "List a session's events", Description: "Events never change. `order` is from the first or from the last; `types` leaves out others. Follow those to come by `…/events/stream`.", Scope: tenant.ScopeRead,
			Params:  append(eventParams(), id...),
			Answers: []httpapi.Answer{httpapi.OK(httpapi.Page[SessionEvent]{}, "A page."), unknown}, Serve: httpapi.Returns(h.events),
		},
		{
			Method: http.MethodGet, Path: one + "/events/stream", ID: "streamSessionEvents" + suffix, Summary: "Follow a session's events", Scope: tenant.ScopeRead, Watched: true,
			Description: "Sends the events there are and those to come, until the session is archived or deleted. Each has its id, after which `Last-Event-ID` continues.",
			Params:      append(streamParams(), id...),
			Answers:     []httpapi.Answer{{Status: http.StatusOK, Doc: "Events.", Media: stream}, unknown}, Serve: httpapi.Writes(h.stream),
		},
		{
			Method: http.MethodPost, Path: one + "/events", ID: "sendSessionEvent" + suffix, Summary: "Send a message, an outcome to work for, or an answer to a call", Scope: tenant.ScopeExecute,
			Description: "Begins a turn, and answers when it has ended; with `Accept: text/event-stream` by its events; with `Prefer: respond-async` at once.",
			Params:      append([]httpapi.Param{deltas, {Name: "Prefer", In: httpapi.InHeader, Doc: "respond-async: do not wait for the end of the turn."}}, id...),
			Body:        httpapi.JSON(NewSessionEvent{Type: new("message"), Role: new("user"), Content: new("I want to return order #12345")}),
			Answers: []httpapi.Answer{
				{Status: http.StatusOK, Doc: "The turn has ended.", Body: SessionTurn{}, Media: stream},
				{Status: http.StatusAccepted, Doc: "With Prefer: respond-async: it continues. With queue: it waits for the turns before it.", Body: SessionTurn{}, Header: []httpapi.Param{{Name: "Preference-Applied", Doc: "respond-async"}}},
				unknown, busy, limited,
			},
			Serve: httpapi.WritesFrom(h.send),
		},
	}
}

// eventFilter reads the parameters of a list of events.
func eventFilter(c *httpapi.Call) (f session.EventFilter, err error) {
	cursor, err := c.Cursor()
	if err != nil {
		return f, err
	}
	f = session.EventFilter{Page: agent.Page{Cursor: cursor, Limit: int(c.Int("limit"))}, Last: c.Text("order") == "desc"}
	if !c.Has("types") {
		f.Kinds = run.EventKinds()
		return f, nil
	}
	for name := range strings.SplitSeq(c.Text("types"), ",") {
		kind := run.EventKind(strings.TrimSpace(name))
		if !slices.Contains(run.EventKinds(), kind) || slices.Contains(f.Kinds, kind) {
			return f, httpapi.Invalid("types must be types of events, each once, separated by commas")
		}
		f.Kinds = append(f.Kinds, kind)
	}
	return f, nil
}

func (h *Handlers) events(c *httpapi.Call) (out httpapi.Page[SessionEvent], err error) {
	f, err := eventFilter(c)
	if err != nil {
		return out, err
	}
	s, err := h.find(c)
	if err != nil {
		return out, err
	}
	page, next, err := h.Service.Store.Events(c.Context(), s.Tenant, s.ID, f)
	out = httpapi.Page[SessionEvent]{Data: []SessionEvent{}, NextPage: httpapi.OrNull(next)}
	for i := range page {
		out.Data = append(out.Data, eventOf(s.ID, &page[i]))
	}
	return out, err
}
