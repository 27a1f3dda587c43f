package session

import (
	"net/http"
	"time"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// SessionThread is work that an agent has handed to another one: a conversation of its own.
type SessionThread struct {
	ID           string     `json:"id" doc:"sthr_ and 32 hexadecimal digits."`
	Type         string     `json:"type" enum:"session_thread"`
	SessionID    string     `json:"session_id" doc:"The session that it belongs to."`
	TurnID       string     `json:"turn_id" doc:"The turn that it belongs to."`
	Parent       *string    `json:"parent_thread_id" doc:"The thread that handed it on; null for the session's own conversation."`
	AgentID      string     `json:"agent_id"`
	AgentVersion int        `json:"agent_version"`
	Name         string     `json:"name" doc:"Of the hand-off."`
	Status       string     `json:"status" enum:"running,requires_action,idle,terminated" doc:"requires_action: calls of it, or of a thread below it, wait for the client. idle: it came to its end. terminated: it was ended, or has failed."`
	Events       int64      `json:"events" doc:"Number of the last one."`
	Usage        TurnUsage  `json:"usage" doc:"Once it has ended, with that of threads below it."`
	CreatedAt    time.Time  `json:"created_at"`
	EndedAt      *time.Time `json:"ended_at" doc:"When it ended; null until then."`
	ArchivedAt   *time.Time `json:"archived_at" doc:"When a client of the other form put it aside."`
}

func (h *Handlers) threadOperations(one, suffix string, id []httpapi.Param, unknown httpapi.Answer) []httpapi.Operation {
	thread := append([]httpapi.Param{{Name: "thread_id", In: httpapi.InPath, Doc: "Id of a thread of the session."}}, id...)
	return []httpapi.Operation{
		{
			Method: http.MethodGet, Path: one + "/threads", ID: "listSessionThreads" + suffix, Summary: "List the threads of a session, newest first", Scope: tenant.ScopeRead,
			Description: "A thread is work that the agent, or one that it handed work to, has handed on.",
			Params:      append(httpapi.PageParams(20, 100), id...),
			Answers:     []httpapi.Answer{httpapi.OK(httpapi.Page[SessionThread]{}, "A page."), unknown}, Serve: httpapi.Returns(h.threads),
		},
		{
			Method: http.MethodGet, Path: one + "/threads/{thread_id}", ID: "getSessionThread" + suffix, Summary: "Show a thread of a session", Description: "Work that an agent has handed off to another one: the agent that does it, and its state.", Scope: tenant.ScopeRead, Params: thread,
			Answers: []httpapi.Answer{httpapi.OK(SessionThread{}, "The thread."), unknown}, Serve: httpapi.Returns(h.thread),
		},
		{
			Method: http.MethodGet, Path: one + "/threads/{thread_id}/events", ID: "listSessionThreadEvents" + suffix, Summary: "List the events of a thread", Description: "As the events of a session, of the agent that works in the thread alone.", Scope: tenant.ScopeRead,
			Params:  append(eventParams(), thread...),
			Answers: []httpapi.Answer{httpapi.OK(httpapi.Page[SessionEvent]{}, "A page."), unknown}, Serve: httpapi.Returns(h.threadEvents),
		},
		{
			Method: http.MethodGet, Path: one + "/threads/{thread_id}/events/stream", ID: "streamSessionThreadEvents" + suffix, Summary: "Follow the events of a thread", Scope: tenant.ScopeRead, Watched: true,
			Description: "Sends the events there are and those to come, until the thread has ended. Each has its id, after which `Last-Event-ID` continues.",
			Params:      append(streamParams(), thread...),
			Answers:     []httpapi.Answer{{Status: http.StatusOK, Doc: "Events.", Media: stream}, unknown}, Serve: httpapi.Writes(h.streamThread),
		},
	}
}

func (h *Handlers) findThread(c *httpapi.Call) (*session.Thread, error) {
	return h.Service.Thread(c.Context(), c.Caller.Tenant.ID, session.ID(c.Path("session_id")), c.Path("thread_id"))
}

func (h *Handlers) thread(c *httpapi.Call) (out SessionThread, err error) {
	t, err := h.findThread(c)
	if err != nil {
		return out, err
	}
	return threadOf(*t), nil
}

func (h *Handlers) threads(c *httpapi.Call) (out httpapi.Page[SessionThread], err error) {
	cursor, err := c.Cursor()
	if err != nil {
		return out, err
	}
	s, err := h.find(c)
	if err != nil {
		return out, err
	}
	page, next, err := h.Service.Store.Threads(c.Context(), s.Tenant, s.ID, session.ThreadFilter{Page: agent.Page{Cursor: cursor, Limit: int(c.Int("limit"))}})
	return httpapi.Page[SessionThread]{Data: httpapi.Each(page, threadOf), NextPage: httpapi.OrNull(next)}, err
}

func (h *Handlers) threadEvents(c *httpapi.Call) (out httpapi.Page[SessionEvent], err error) {
	f, err := eventFilter(c)
	if err != nil {
		return out, err
	}
	t, err := h.findThread(c)
	if err != nil {
		return out, err
	}
	page, next, err := h.Service.Store.ThreadEvents(c.Context(), t, f)
	return httpapi.Page[SessionEvent]{Data: httpapi.Each(page, func(e session.Event) SessionEvent { return eventOf(session.ID(t.ID), &e) }), NextPage: httpapi.OrNull(next)}, err
}

func threadOf(t session.Thread) SessionThread {
	out := SessionThread{
		ID: t.ID, Type: "session_thread", SessionID: string(t.Session), TurnID: turnID(t.Turn), Parent: httpapi.OrNull(t.Parent), AgentID: string(t.Agent), AgentVersion: t.Version,
		Name: t.Name, Status: string(t.Status), Events: t.Events, Usage: usageOf(&t.Used), CreatedAt: t.CreatedAt,
	}
	if !t.EndedAt.IsZero() {
		out.EndedAt = &t.EndedAt
	}
	if !t.ArchivedAt.IsZero() {
		out.ArchivedAt = &t.ArchivedAt
	}
	return out
}

// EventThread describes the thread in an event of a hand-off.
type EventThread struct {
	ThreadID     *string `json:"thread_id,omitzero" doc:"The id of the thread."`
	AgentID      string  `json:"agent_id"`
	AgentVersion int     `json:"agent_version"`
	Name         string  `json:"name"`
}
