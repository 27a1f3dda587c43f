// Package session serves sessions: conversations with agents.
package session

import (
	stdjson "encoding/json"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/conversation"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/vault"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/edge/httpapi/sessionstream"
)

// Handlers serve sessions: to keys with the scope read to see them, execute to change them
// and to send messages.
type Handlers struct {
	Service *conversation.Service
	Streams *sessionstream.Streams
	Outputs httpapi.Outputs
}

// Operations are those of /v1/sessions. The original contract has them below /default, too.
func (h *Handlers) Operations() []httpapi.Operation {
	unknown := httpapi.Refusal(http.StatusNotFound, "not_found: the session or agent does not exist, or belongs to another tenant.")
	busy := httpapi.Refusal(http.StatusConflict, "conflict: a turn is in progress, or the session or agent is archived.")
	id := []httpapi.Param{{Name: "session_id", In: httpapi.InPath, Doc: "Id of a session."}}
	var ops []httpapi.Operation
	for _, base := range []struct{ path, suffix string }{{"/v1/sessions", ""}, {"/default/v1/sessions", "Default"}} {
		one := base.path + "/{session_id}"
		ops = append(ops, []httpapi.Operation{
			{
				Method: http.MethodGet, Path: base.path, ID: "listSessions" + base.suffix, Summary: "List the tenant's sessions, newest first", Description: "Archived ones are omitted unless `include_archived` says so.", Scope: tenant.ScopeRead,
				Params: append(httpapi.PageParams(20, 100), httpapi.Param{Name: "agent_id", Doc: "Only those of an agent.", Max: 64},
					httpapi.Param{Name: "include_archived", Type: httpapi.Bool, Doc: "Includes archived ones."}),
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
				Method: http.MethodPatch, Path: one, ID: "updateSession" + base.suffix, Summary: "Change the title and metadata of a session, and raise its budget", Description: "Omitted fields stay unchanged; `metadata` is replaced. A budget can be raised and not be lowered.", Scope: tenant.ScopeExecute, Params: id,
				Body:    httpapi.JSON(SessionChange{Title: new("Return of order 12345")}),
				Answers: []httpapi.Answer{httpapi.OK(Session{}, "The session."), unknown, busy}, Serve: httpapi.Takes(h.update),
			},
			{
				Method: http.MethodDelete, Path: one, ID: "deleteSession" + base.suffix, Summary: "Delete a session with its conversation", Description: "Its events, sandboxes, files and the records of its turns go with it. While a turn is in progress the answer is 409: interrupt it first.", Scope: tenant.ScopeExecute, Params: id,
				Answers: []httpapi.Answer{httpapi.NoContent("It is deleted."), unknown, busy}, Serve: httpapi.Does(h.remove),
			},
			{
				Method: http.MethodPost, Path: one + "/archive", ID: "archiveSession" + base.suffix, Summary: "Archive a session", Description: "Its sandboxes end; events and files can still be read. While a turn is in progress the answer is 409.", Scope: tenant.ScopeExecute, Params: id,
				Answers: []httpapi.Answer{httpapi.OK(Session{}, "It is archived: it can be read, and takes no messages. Again is no error."), unknown, busy}, Serve: httpapi.Returns(h.archive),
			},
			{
				Method: http.MethodPost, Path: one + "/interrupt", ID: "interruptSession" + base.suffix, Summary: "End the turn that is in progress", Description: "The answer does not wait for the end: the turn's status follows as an event. A turn that waits for answers ends, too; queued ones begin next.", Scope: tenant.ScopeExecute, Params: id,
				Answers: []httpapi.Answer{httpapi.OK(Session{}, "Its end is asked for; there may be none."), unknown}, Serve: httpapi.Returns(h.interrupt),
			},
		}...)
		ops = append(ops, httpapi.Operation{
			Method: http.MethodGet, Path: one + "/context", ID: "getSessionContext" + base.suffix, Summary: "Show what the model is told in the session's next turn", Scope: tenant.ScopeRead, Params: id,
			Description: "The instructions with those of the skills, and the tools, as a turn that begins now would have them. Atoll asks the agent's MCP servers for their tools; the instructions name the servers that do not answer.",
			Answers: []httpapi.Answer{httpapi.OK(SessionContext{}, "System prompt."), unknown,
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

func (h *Handlers) find(c *httpapi.Call) (*session.Session, error) {
	return h.Service.Find(c.Context(), c.Caller.Tenant.ID, session.ID(c.Path("session_id")))
}

func (h *Handlers) create(c *httpapi.Call, in *NewSession) (out Session, err error) {
	made, err := in.domain()
	if err != nil {
		return out, err
	}
	return shown(h.Service.Create(c.Context(), c.Caller, made))
}

// domain reads a session to create.
func (in *NewSession) domain() (*conversation.NewSession, error) {
	out := &conversation.NewSession{Agent: *in.AgentID, Version: in.Version, Environment: in.Environment, About: session.About{Metadata: stored(in.Metadata)}, Webhook: in.Webhook}
	if in.Title != nil {
		out.About.Title = *in.Title
	}
	for _, id := range in.Vaults {
		out.Vaults = append(out.Vaults, vault.ID(id))
	}
	var err error
	if out.About.Mounts, err = mountsOf(in.Mounts); err != nil {
		return nil, err
	}
	out.Budget, err = in.Budget.domain()
	return out, err
}

func shown(s *session.Session, err error) (out Session, _ error) {
	if err != nil {
		return out, err
	}
	return sessionOf(s), nil
}

func (h *Handlers) update(c *httpapi.Call, in *SessionChange) (out Session, err error) {
	s, err := h.find(c)
	if err != nil {
		return out, err
	}
	change := &conversation.Change{Title: in.Title}
	if in.Metadata != nil {
		change.Metadata = new(stored(*in.Metadata))
	}
	if change.Budget, err = in.Budget.domain(); err != nil {
		return out, err
	}
	return shown(h.Service.Update(c.Context(), c.Caller, s.ID, change))
}

func (h *Handlers) get(c *httpapi.Call) (Session, error) { return shown(h.find(c)) }

func (h *Handlers) archive(c *httpapi.Call) (Session, error) {
	return shown(h.Service.Archive(c.Context(), c.Caller, session.ID(c.Path("session_id"))))
}

func (h *Handlers) remove(c *httpapi.Call) error {
	return h.Service.Delete(c.Context(), c.Caller, session.ID(c.Path("session_id")))
}

func (h *Handlers) interrupt(c *httpapi.Call) (Session, error) {
	return shown(h.Service.Interrupt(c.Context(), c.Caller, session.ID(c.Path("session_id"))))
}

func (h *Handlers) list(c *httpapi.Call) (out httpapi.Page[Session], err error) {
	cursor, err := c.Cursor()
	if err != nil {
		return out, err
	}
	f := session.Filter{Page: agent.Page{Cursor: cursor, Limit: int(c.Int("limit"))}, Agent: agent.ID(c.Text("agent_id")), Archived: c.Bool("include_archived")}
	page, next, err := h.Service.Store.List(c.Context(), c.Caller.Tenant.ID, f)
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
