package anthropic

import (
	"maps"
	"net/http"
	"slices"

	"github.com/atoll-run/atoll/internal/agent/conversation"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

func (d *Handlers) events() []httpapi.Operation {
	const all = "/v1/sessions/{session_id}/events"
	list := slices.Concat(httpapi.PageParams(100, conversation.MaxPage), spanParams(), many("types", slices.Sorted(maps.Keys(sorts))), []httpapi.Param{orderParam})
	return []httpapi.Operation{
		{Method: http.MethodGet, Path: all, Scope: tenant.ScopeRead, Params: list, Serve: httpapi.Returns(d.listEvents)},
		{Method: http.MethodPost, Path: all, Scope: tenant.ScopeExecute, Body: httpapi.JSON(EventsFields{}), Serve: httpapi.Takes(d.sendEvents)},
		{
			Method: http.MethodGet, Path: all + "/stream", Scope: tenant.ScopeRead, Watched: true, Params: followParams(), Serve: httpapi.Writes(d.streamEvents),
			Answers: []httpapi.Answer{{Status: http.StatusOK, Media: []httpapi.Media{{Type: httpapi.EventStream, Body: Event{}}}}},
		},
	}
}

const lastEventID = "Last-Event-ID"

// followParams are the parameters of a stream.
func followParams() []httpapi.Param {
	return slices.Concat(many("event_deltas", previews), []httpapi.Param{{Name: "cursor", Max: 64}, {Name: lastEventID, In: httpapi.InHeader}})
}

// sorts are the types of events by what is recorded. Those without any do not occur here.
var sorts = map[string][]run.Sort{
	userMessage: {run.EventMessage.By("user")}, systemMessage: {run.EventMessage.By("system")}, userInterrupt: {run.Sort(run.EventInterrupt)}, userConfirmation: {run.Sort(run.EventDecision)},
	userResult:      {run.EventResult.By(run.ByClient)},
	"agent.message": {run.EventMessage.By("assistant")}, "agent.thinking": {run.Sort(run.EventThinking)},
	"agent.tool_use": {run.Sort(run.EventCall)}, "agent.mcp_tool_use": {run.EventCall.By(run.ByServer)}, "agent.custom_tool_use": {run.EventCall.By(run.ByClient)},
	"agent.tool_result": {run.Sort(run.EventResult)}, "agent.mcp_tool_result": {run.EventResult.By(run.ByServer)},
	"session.error": {run.Sort(run.EventError), run.Sort(run.EventWarning)}, "session.usage": {run.Sort(run.EventUsage)},
	"session.status_running": {run.EventStatus.By(run.Begun)}, "session.status_idle": {run.Sort(run.EventStatus)},
	"span.model_request_start": {run.Sort(run.EventRequest)}, "span.model_request_end": {run.Sort(run.EventAnswer)},
	ofSkill + "plan": {run.Sort(run.EventPlan)}, ofSkill + "review": {run.Sort(run.EventReview)}, ofSkill + "state": {run.Sort(run.EventDocument)}, ofSkill + "reminder": {run.Sort(run.EventReminder)},
	"session.thread_created": {run.Sort(run.EventOpened)}, "agent.thread_message_sent": {run.Sort(run.EventSent)}, "agent.thread_message_received": {run.Sort(run.EventReceived)},
	"session.thread_status_idle": {run.Sort(run.EventIdle)}, "session.thread_status_terminated": {run.Sort(run.EventTerminated)}, ofSkill + "speaker": {run.Sort(run.EventSpeaker)},

	userOutcome: {run.Sort(run.EventOutcome)}, evaluating: {run.Sort(run.EventEvaluating)}, grading: {run.Sort(run.EventGrading)}, evaluated: {run.Sort(run.EventEvaluated)},

	"session.status_rescheduled": nil, "session.status_terminated": nil, "session.updated": nil, "session.deleted": nil,
	"session.thread_status_running": nil, "session.thread_status_rescheduled": nil, "agent.thread_context_compacted": {run.Sort(run.EventCompacted)},
	userToolResult:         nil,
	"workflow_run.created": nil, "workflow_run.status_running": nil, "workflow_run.status_idle": nil, "workflow_run.status_ended": nil, "workflow_run.error": nil,
	"workflow_run.phase_started": nil, "workflow_run.phase_ended": nil,
}

func (d *Handlers) listEvents(c *httpapi.Call) (out httpapi.Page[Event], err error) {
	cursor, err := c.Cursor()
	if err != nil {
		return out, err
	}
	s, err := d.find(c)
	if err != nil {
		return out, err
	}
	f := session.EventFilter{Page: agent.Page{Cursor: cursor, Limit: int(c.Int("limit"))}, Span: spanOf(c), Last: c.Text("order") == "desc"}
	asked := values(c, "types")
	if len(asked) == 0 {
		asked = slices.Collect(maps.Keys(sorts))
	}
	for _, name := range asked {
		f.Sorts = append(f.Sorts, sorts[name]...)
	}
	return pageOfEvents(f, d.eventsOf(c, s), func(e *session.Event) Event { return eventOf(s.ID, e) })
}

// eventsOf reads events of a session.
func (d *Handlers) eventsOf(c *httpapi.Call, s *session.Session) conversation.ReadEvents {
	return func(f session.EventFilter) ([]session.Event, string, error) {
		return d.Conversations.Store.Events(c.Context(), s.Tenant, s.ID, f)
	}
}

// pageOfEvents is a page of events.
func pageOfEvents(f session.EventFilter, read conversation.ReadEvents, render func(e *session.Event) Event) (httpapi.Page[Event], error) {
	out := httpapi.Page[Event]{Data: []Event{}}
	next, err := read.Page(f, func(of *session.Event) int {
		e := render(of)
		out.Data = append(out.Data, e)
		return e.size()
	})
	out.NextPage = httpapi.OrNull(next)
	return out, err
}

// size is about how many bytes an event has.
func (e *Event) size() (n int) {
	n = 512 + len(e.Input) + len(e.Description)
	if e.Rubric != nil {
		n += len(e.Rubric.Content)
	}
	for i := range e.Content {
		if text := e.Content[i].Text; text != nil {
			n += len(*text)
		}
		if from := e.Content[i].Source; from != nil {
			n += len(from.Data)
		}
	}
	return n
}

// streamEvents sends the events to come, or those after one.
func (d *Handlers) streamEvents(c *httpapi.Call) error {
	s, err := d.find(c)
	if err != nil {
		return err
	}
	return d.streamOf(c, s)
}

// lastID is the id of the last event that the client has; "" for none.
func lastID(c *httpapi.Call) string {
	if c.Has("cursor") {
		return c.Text("cursor")
	}
	return c.R.Header.Get(lastEventID)
}

func (d *Handlers) streamOf(c *httpapi.Call, s *session.Session) (err error) {
	after := s.Events
	if last := lastID(c); last != "" {
		if after, err = d.eventsOf(c, s).Place(s.ID, s.Events, last, idOf); err != nil {
			return err
		}
	}
	previewed := values(c, "event_deltas")
	return d.Streams.Session(c, s, after, len(previewed) > 0, &stream{s.ID, previewed, map[string]bool{}})
}
