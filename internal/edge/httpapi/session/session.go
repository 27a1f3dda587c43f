// Package session serves sessions: conversations with agents.
package session

import (
	"context"
	stdjson "encoding/json"
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/upload"
	"github.com/atoll-run/atoll/internal/core/vault"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/edge/httpapi/response"
)

// Handlers serve sessions: to keys with the scope read to see them, execute to change them
// and to send messages.
type Handlers struct {
	Store  session.Store
	Agents agent.Store
	Skills skill.Store
	Vaults vault.Store
	Files  *upload.Service // nil where there are none
	// Pool has the tools of the sessions' named sandboxes, and Sandboxes has those.
	Pool interface {
		Tools(agent string) ([]run.Tool, error)
	}
	Sandboxes Sandboxes
	Turns     *response.Handlers
	Queued    func() // a turn was queued
	// Enter puts a caller into an environment, as a tenant.Authority does.
	Enter func(ctx context.Context, p *tenant.Principal, environment string) error
	// Entrant finds out who started a run, as a tenant.Authority does.
	Entrant func(ctx context.Context, t tenant.ID, key, environment string) (tenant.Principal, error)
	Max     int           // sessions of a tenant; 0 for any number
	Within  time.Duration // that calls wait for the client where the agent's policy does not say; 0 for ever

	// CheckWebhook refuses URLs that messages may not be sent to.
	CheckWebhook func(ctx context.Context, raw string) error
	Told         func() // a session may have told its webhook something
	// News says when a session has changed; nil where no other process changes any, and sessions are
	// looked at every second.
	News run.News

	hub hub
}

// Operations are those of /v1/sessions. The original contract has them below /default, too.
func (h *Handlers) Operations() []httpapi.Operation {
	unknown := httpapi.Refusal(http.StatusNotFound, "not_found: there is no such session or agent, or it belongs to another tenant.")
	busy := httpapi.Refusal(http.StatusConflict, "conflict: a turn is under way, or the session or agent is archived.")
	id := []httpapi.Param{{Name: "session_id", In: httpapi.InPath, Doc: "Id of a session."}}
	var ops []httpapi.Operation
	for _, base := range []struct{ path, suffix string }{{"/v1/sessions", ""}, {"/default/v1/sessions", "Default"}} {
		one := base.path + "/{session_id}"
		ops = append(ops, []httpapi.Operation{
			{
				Method: http.MethodGet, Path: base.path, ID: "listSessions" + base.suffix, Summary: "List the tenant's sessions, newest first", Description: "Archived ones are left out unless `include_archived` says so.", Scope: tenant.ScopeRead,
				Params: append(httpapi.PageParams(20, 100), httpapi.Param{Name: "agent_id", Doc: "Only those of an agent.", Max: 64},
					httpapi.Param{Name: "include_archived", Type: httpapi.Bool, Doc: "Those that are archived, too."}),
				Answers: []httpapi.Answer{httpapi.OK(httpapi.Page[Session]{}, "A page.")}, Serve: httpapi.Returns(h.list),
			},
			{
				Method: http.MethodPost, Path: base.path, ID: "createSession" + base.suffix, Summary: "Begin a session with an agent", Description: "It keeps the agent's current version, or `agent_version`, for good. No model is asked and no sandbox made before the first message. Above the server's `max_sessions` the answer is 429.", Scope: tenant.ScopeExecute,
				Body: httpapi.JSON(NewSession{AgentID: new("support-agent"), Metadata: map[string]jsontext.Value{"user_id": jsontext.Value(`"user_456"`)}}),
				Answers: []httpapi.Answer{httpapi.Created(Session{}, "It is there, and takes messages."), unknown, busy,
					httpapi.Refusal(http.StatusTooManyRequests, "rate_limited: the tenant has the most sessions.")}, Serve: httpapi.Takes(h.create),
			},
			{
				Method: http.MethodGet, Path: one, ID: "getSession" + base.suffix, Summary: "Show a session", Description: "Its state, budget and what its turns have used so far. `requires_action` means that calls wait for the client.", Scope: tenant.ScopeRead, Params: id,
				Answers: []httpapi.Answer{httpapi.OK(Session{}, "The session."), unknown}, Serve: httpapi.Returns(h.get),
			},
			{
				Method: http.MethodPatch, Path: one, ID: "updateSession" + base.suffix, Summary: "Change the title and metadata of a session, and raise its budget", Description: "What is left out stays; `metadata` is replaced. A budget can be raised and not be lowered.", Scope: tenant.ScopeExecute, Params: id,
				Body:    httpapi.JSON(SessionChange{Title: new("Return of order 12345")}),
				Answers: []httpapi.Answer{httpapi.OK(Session{}, "The session."), unknown, busy}, Serve: httpapi.Takes(h.update),
			},
			{
				Method: http.MethodDelete, Path: one, ID: "deleteSession" + base.suffix, Summary: "Delete a session with its conversation", Description: "Its events, sandboxes, files and the records of its turns go with it. While a turn is under way the answer is 409: interrupt it first.", Scope: tenant.ScopeExecute, Params: id,
				Answers: []httpapi.Answer{httpapi.NoContent("It is deleted."), unknown, busy}, Serve: httpapi.Does(h.remove),
			},
			{
				Method: http.MethodPost, Path: one + "/archive", ID: "archiveSession" + base.suffix, Summary: "Archive a session", Description: "Its sandboxes end; events and files can still be read. While a turn is under way the answer is 409.", Scope: tenant.ScopeExecute, Params: id,
				Answers: []httpapi.Answer{httpapi.OK(Session{}, "It is archived: it can be read, and takes no messages. Again is no error."), unknown, busy}, Serve: httpapi.Returns(h.archive),
			},
			{
				Method: http.MethodPost, Path: one + "/interrupt", ID: "interruptSession" + base.suffix, Summary: "End the turn that is under way", Description: "The answer does not wait for the end: the turn's status follows as an event. A turn that waits for answers ends, too; queued ones begin next.", Scope: tenant.ScopeExecute, Params: id,
				Answers: []httpapi.Answer{httpapi.OK(Session{}, "Its end is asked for; there may be none."), unknown}, Serve: httpapi.Returns(h.interrupt),
			},
		}...)
		ops = append(ops, httpapi.Operation{
			Method: http.MethodGet, Path: one + "/context", ID: "getSessionContext" + base.suffix, Summary: "Show what the model is told in the session's next turn", Scope: tenant.ScopeRead, Params: id,
			Description: "The instructions with those of the skills, and the tools, as a turn that begins now would have them. MCP servers of the agent are asked for their tools; those that do not answer are named in the instructions.",
			Answers: []httpapi.Answer{httpapi.OK(SessionContext{}, "What the model is told before the conversation."), unknown,
				httpapi.Refusal(http.StatusConflict, "conflict: a skill of the agent was deleted, or the key is of another environment.")},
			Serve: httpapi.Returns(h.context),
		})
		ops = append(ops, h.eventOperations(one, base.suffix, id, unknown, busy)...)
		ops = append(ops, h.fileOperations(one, base.suffix, id, unknown)...)
		ops = append(ops, h.threadOperations(one, base.suffix, id, unknown)...)
	}
	for i := range ops {
		ops[i].Tag = "sessions"
	}
	return ops
}

// event notes a change of a session.
func event(c *httpapi.Call, id session.ID, now string) tenant.PolicyEvent {
	return tenant.PolicyEvent{Tenant: c.Caller.Tenant.ID, Actor: c.Caller.Key.ID, Field: "session/" + string(id), New: now, CreatedAt: time.Now().UTC().Truncate(time.Microsecond)}
}

func (h *Handlers) find(c *httpapi.Call) (*session.Session, error) {
	id := session.ID(c.Path("session_id"))
	if !id.Valid() {
		return nil, session.ErrNotFound
	}
	return h.Store.Get(c.Context(), c.Caller.Tenant.ID, id)
}

func (h *Handlers) create(c *httpapi.Call, in *NewSession) (out Session, err error) {
	if !tenant.Name.MatchString(*in.AgentID) || len(*in.AgentID) > 64 {
		return out, agent.ErrNotFound
	}
	a, err := h.Agents.Get(c.Context(), c.Caller.Tenant.ID, *in.AgentID)
	if err == nil && a.Archived() {
		err = agent.ErrArchived
	}
	if err == nil && in.Version != nil {
		a, err = h.Agents.At(c.Context(), a.Tenant, string(a.ID), *in.Version)
	}
	if err != nil {
		return out, err
	}
	if in.Environment != nil {
		if err := h.enter(c, *in.Environment); err != nil {
			return out, err
		}
	}
	rule := ruleOf(c.Caller, first(a))
	if _, err := rule.request(); err != nil {
		return out, err
	}
	if err := rule.asks(c.Caller); err != nil {
		return out, err
	}
	id := session.NewID()
	s := &session.Session{
		ID: id, Tenant: a.Tenant, Key: c.Caller.Key.ID, Environment: c.Caller.Environment.ID, Agent: a.ID, Version: a.Version,
		Sandbox: "sbx_" + string(id[len("sess_"):]), About: session.About{Metadata: stored(in.Metadata)},
	}
	if in.Title != nil {
		s.About.Title = *in.Title
	}
	if err := s.About.Check(); err != nil {
		return out, err
	}
	if s.About.Mounts, err = h.mountsFor(c, &a.Definition, in.Mounts); err != nil {
		return out, err
	}
	if s.Budget, err = in.Budget.domain(s.Budget, false); err != nil {
		return out, err
	}
	if s.Vaults, err = h.vaultsOf(c, in.Vaults); err != nil {
		return out, err
	}
	if in.Webhook != nil {
		if err := h.CheckWebhook(c.Context(), *in.Webhook); err != nil {
			return out, err
		}
		s.Webhook = session.Webhook{URL: *in.Webhook, Secret: c.Caller.Key.WebhookSecret}
	}
	if err := h.Store.Create(c.Context(), s, h.Max, event(c, id, "created")); err != nil {
		return out, err
	}
	return sessionOf(s), nil
}

func (h *Handlers) update(c *httpapi.Call, in *SessionChange) (out Session, err error) {
	s, err := h.find(c)
	if err != nil {
		return out, err
	}
	about := s.About
	if in.Title != nil {
		about.Title = *in.Title
	}
	if in.Metadata != nil {
		about.Metadata = stored(*in.Metadata)
	}
	if err := about.Check(); err != nil {
		return out, err
	}
	budget, err := in.Budget.domain(s.Budget, true)
	if err != nil {
		return out, err
	}
	if s, err = h.Store.Update(c.Context(), s.Tenant, s.ID, about, budget, event(c, s.ID, "changed")); err != nil {
		return out, err
	}
	return sessionOf(s), nil
}

func (h *Handlers) get(c *httpapi.Call) (out Session, err error) {
	s, err := h.find(c)
	if err != nil {
		return out, err
	}
	return sessionOf(s), nil
}

func (h *Handlers) archive(c *httpapi.Call) (out Session, err error) {
	s, err := h.find(c)
	if err != nil {
		return out, err
	}
	left, err := h.waiting(c, s)
	if err != nil {
		return out, err
	}
	if s, err = h.Store.Archive(c.Context(), s.Tenant, s.ID, event(c, s.ID, "archived")); err != nil {
		return out, err
	}
	h.ended(c, s)
	h.free(c, s, left)
	return sessionOf(s), nil
}

func (h *Handlers) remove(c *httpapi.Call) error {
	s, err := h.find(c)
	if err != nil {
		return err
	}
	left, err := h.waiting(c, s)
	if err != nil {
		return err
	}
	if err := h.Store.Delete(c.Context(), s.Tenant, s.ID, event(c, s.ID, "deleted")); err != nil {
		return err
	}
	h.ended(c, s)
	h.free(c, s, left)
	return nil
}

// ended does what comes after the end of a session.
func (h *Handlers) ended(c *httpapi.Call, s *session.Session) {
	h.Told()
	h.destroy(c, s)
	h.Turns.Leave(c, s)
}

func (h *Handlers) list(c *httpapi.Call) (out httpapi.Page[Session], err error) {
	cursor, err := c.Cursor()
	if err != nil {
		return out, err
	}
	f := session.Filter{Page: agent.Page{Cursor: cursor, Limit: int(c.Int("limit"))}, Agent: agent.ID(c.Text("agent_id")), Archived: c.Bool("include_archived")}
	page, next, err := h.Store.List(c.Context(), c.Caller.Tenant.ID, f)
	out = httpapi.Page[Session]{Data: []Session{}, NextPage: httpapi.OrNull(next)}
	for i := range page {
		out.Data = append(out.Data, sessionOf(&page[i]))
	}
	return out, err
}

func stored(in map[string]jsontext.Value) map[string]stdjson.RawMessage {
	if len(in) == 0 {
		return nil
	}
	out := make(map[string]stdjson.RawMessage, len(in))
	for key, value := range in {
		out[key] = stdjson.RawMessage(value)
	}
	return out
}
