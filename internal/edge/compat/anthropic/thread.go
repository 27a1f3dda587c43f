package anthropic

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/agent/conversation"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/edge/httpapi/sessionstream"
)

// threadStatuses are the states of threads that this form knows. None is rescheduled here.
var threadStatuses = map[string][]session.ThreadStatus{
	"running": {session.ThreadRunning}, "idle": {session.ThreadIdle, session.ThreadWaits}, "terminated": {session.ThreadTerminated}, "rescheduling": nil,
}

func (d *Handlers) threads() []httpapi.Operation {
	const all, one = "/v1/sessions/{session_id}/threads", "/v1/sessions/{session_id}/threads/{thread_id}"
	list := slices.Concat(httpapi.PageParams(100, conversation.MaxPage), many("statuses", []string{"running", "idle", "terminated", "rescheduling"}))
	follow := func(path string) httpapi.Operation {
		return httpapi.Operation{
			Method: http.MethodGet, Path: path, Scope: tenant.ScopeRead, Watched: true, Params: followParams(), Serve: httpapi.Writes(d.streamThread),
			Answers: []httpapi.Answer{{Status: http.StatusOK, Media: []httpapi.Media{{Type: httpapi.EventStream, Body: Event{}}}}},
		}
	}
	return []httpapi.Operation{
		{Method: http.MethodGet, Path: all, Scope: tenant.ScopeRead, Params: list, Serve: httpapi.Returns(d.listThreads)},
		{Method: http.MethodGet, Path: one, Scope: tenant.ScopeRead, Serve: httpapi.Returns(d.thread)},
		{Method: http.MethodPost, Path: one + "/archive", Scope: tenant.ScopeExecute, Serve: httpapi.Returns(d.archiveThread)},
		{Method: http.MethodGet, Path: one + "/events", Scope: tenant.ScopeRead, Params: httpapi.PageParams(100, conversation.MaxPage), Serve: httpapi.Returns(d.listThreadEvents)},
		follow(one + "/stream"), follow(one + "/events/stream"),
	}
}

// primaryOf is the id of the thread that the session's own conversation is in this form.
func primaryOf(s session.ID) string { return "sthr_" + strings.TrimPrefix(string(s), "sess_") }

// primary finds the session of a path that names its own conversation; nil for another thread.
func (d *Handlers) primary(c *httpapi.Call) (*session.Session, error) {
	if c.Path("thread_id") != primaryOf(session.ID(c.Path("session_id"))) {
		return nil, nil
	}
	return d.find(c)
}

func (d *Handlers) findThread(c *httpapi.Call) (*session.Thread, error) {
	return d.Conversations.Thread(c.Context(), c.Caller.Tenant.ID, session.ID(c.Path("session_id")), c.Path("thread_id"))
}

func (d *Handlers) thread(c *httpapi.Call) (out Thread, err error) {
	r := &renderer{d, c, map[string]*agent.Agent{}}
	s, err := d.primary(c)
	if err != nil {
		return out, err
	}
	if s != nil {
		return r.primary(s)
	}
	t, err := d.findThread(c)
	if err != nil {
		return out, err
	}
	return r.thread(t)
}

func (d *Handlers) archiveThread(c *httpapi.Call) (out Thread, err error) {
	s, err := d.primary(c)
	if err != nil {
		return out, err
	}
	if s != nil {
		return out, fault.New(fault.Conflict, "the primary thread is archived with its session: archive the session")
	}
	t, err := d.Conversations.ArchiveThread(c.Context(), c.Caller, session.ID(c.Path("session_id")), c.Path("thread_id"))
	if err != nil {
		return out, err
	}
	return (&renderer{d, c, map[string]*agent.Agent{}}).thread(t)
}

// afterPrimary is the page that begins after the primary thread, which comes first.
const afterPrimary = "handed-on"

func (d *Handlers) listThreads(c *httpapi.Call) (out httpapi.Page[Thread], err error) {
	cursor, err := c.Cursor()
	if err != nil {
		return out, err
	}
	s, err := d.find(c)
	if err != nil {
		return out, err
	}
	out.Data = []Thread{}
	r := &renderer{d, c, map[string]*agent.Agent{}}
	f := session.ThreadFilter{}
	asked := values(c, "statuses")
	if len(asked) > 0 {
		f.Statuses = []session.ThreadStatus{}
	}
	for _, name := range asked {
		f.Statuses = append(f.Statuses, threadStatuses[name]...)
	}
	left := int(c.Int("limit"))
	switch cursor {
	case "":
		first, err := r.primary(s)
		if err != nil {
			return out, err
		}
		if len(asked) == 0 || slices.Contains(asked, first.Status) {
			out.Data, left = append(out.Data, first), left-1
		}
		if out.NextPage = httpapi.OrNull(afterPrimary); left == 0 {
			return out, nil
		}
	case afterPrimary:
	default:
		f.Cursor = cursor
	}
	page, next, err := d.Conversations.Threads(c.Context(), s, f, left)
	if err != nil {
		return out, err
	}
	for i := range page {
		one, err := r.thread(&page[i])
		if err != nil {
			return out, err
		}
		out.Data = append(out.Data, one)
	}
	out.NextPage = httpapi.OrNull(next)
	return out, nil
}

// threadSorts are those of the events that a thread has in this form.
var threadSorts = func() (out []run.Sort) {
	for _, all := range sorts {
		out = append(out, all...)
	}
	return append(out, run.EventSummary.Sorts()...)
}()

func (d *Handlers) listThreadEvents(c *httpapi.Call) (out httpapi.Page[Event], err error) {
	cursor, err := c.Cursor()
	if err != nil {
		return out, err
	}
	f := session.EventFilter{Page: agent.Page{Cursor: cursor, Limit: int(c.Int("limit"))}}
	s, err := d.primary(c)
	if err != nil {
		return out, err
	}
	if s != nil {
		for _, all := range sorts {
			f.Sorts = append(f.Sorts, all...)
		}
		return pageOfEvents(f, d.eventsOf(c, s), func(e *session.Event) Event { return eventOf(s.ID, e) })
	}
	t, err := d.findThread(c)
	if err != nil {
		return out, err
	}
	form, err := d.threadForm(c, t)
	if err != nil {
		return out, err
	}
	f.Sorts = threadSorts
	return pageOfEvents(f, d.eventsOfThread(c, t), form.render)
}

// eventsOfThread reads events of a thread.
func (d *Handlers) eventsOfThread(c *httpapi.Call, t *session.Thread) conversation.ReadEvents {
	return func(f session.EventFilter) ([]session.Event, string, error) {
		return d.Conversations.Store.ThreadEvents(c.Context(), t, f)
	}
}

// threadForm is how the events of a thread are written.
type threadForm struct {
	stream
	t    *session.Thread
	from string // the thread that handed the work on
	name string // of its hand-off; "" for the primary thread
}

func (d *Handlers) threadForm(c *httpapi.Call, t *session.Thread) (*threadForm, error) {
	out := &threadForm{t: t, from: primaryOf(t.Session)}
	out.stream = stream{session.ID(t.ID), values(c, "event_deltas"), map[string]bool{}}
	if t.Parent == "" {
		return out, nil
	}
	parent, err := d.Conversations.Store.Thread(c.Context(), t.Tenant, t.Session, t.Parent)
	if err != nil {
		return nil, err
	}
	out.from, out.name = t.Parent, parent.Name
	return out, nil
}

// render is eventOf for a thread: what it was asked came from another agent, and its states are its
// own.
func (f *threadForm) render(e *session.Event) Event {
	out := eventOf(f.of, e)
	switch {
	case e.Kind == run.EventMessage && e.Place > 0:
		out.Type, out.FromSessionThreadID, out.FromAgentName = "agent.thread_message_received", f.from, f.name
	case e.Kind == run.EventSummary:
		out.Type, out.Content = ofSkill+string(e.Kind), []Block{{Type: "text", Text: &e.Thread.Text}}
	case e.Kind == run.EventUsage && e.Total == nil:
		out.Usage = usageOf(&run.Total{Spent: *e.Spent, Active: e.At.Sub(f.t.CreatedAt)})
	case e.Kind == run.EventStatus:
		out.Type, out.SessionThreadID, out.AgentName = "session.thread_status_running", f.t.ID, f.t.Name
		if end := (&run.ThreadEnd{Status: e.Status.End, Reason: e.Status.Reason}); !e.Status.Running {
			out.Type = "session.thread_status_idle"
			if len(e.Status.Waits) == 0 && end.Ended() {
				out.Type, out.StopReason, out.Code = "session.thread_status_terminated", nil, endCode(end)
			}
		}
	}
	return out
}

func endCode(e *run.ThreadEnd) string {
	if e.Reason != run.Done {
		return string(e.Reason)
	}
	return string(e.Status)
}

func (f *threadForm) Event(e *session.Event) sessionstream.Frame {
	out := f.render(e)
	return sessionstream.Frame{Kind: out.Type, Body: out}
}

// Over implements sessionstream.Form: the last event of a thread says that it has ended.
func (f *threadForm) Over(deleted bool) sessionstream.Frame {
	if !deleted {
		return sessionstream.Frame{}
	}
	now := time.Now().UTC()
	out := Event{ID: "sevt_" + strings.TrimPrefix(f.t.ID, "sthr_") + "_end", Type: "session.deleted", ProcessedAt: &now}
	return sessionstream.Frame{Kind: out.Type, Body: out}
}

// streamThread sends the events of a thread to come, or those after one, until it has ended.
func (d *Handlers) streamThread(c *httpapi.Call) error {
	s, err := d.primary(c)
	if err != nil {
		return err
	}
	if s != nil {
		return d.streamOf(c, s)
	}
	t, err := d.findThread(c)
	if err != nil {
		return err
	}
	form, err := d.threadForm(c, t)
	if err != nil {
		return err
	}
	after := t.Events
	if last := lastID(c); last != "" {
		if after, err = d.eventsOfThread(c, t).Place(session.ID(t.ID), t.Events, last, idOf); err != nil {
			return err
		}
	}
	return d.Streams.Thread(c, t, after, len(form.want) > 0, form)
}
