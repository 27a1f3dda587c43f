// Package agent serves agents: versioned definitions of a model, what it is told and the
// tools that it may call.
package agent

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Handlers serve agents: to keys with the scope read to see them, execute to change them.
type Handlers struct {
	Store  agent.Store
	Models Models
	Skills skill.Store
	Limits agent.Limits // of each tenant
	// Off says why the server does not have a tool of its own; nil if it has it. A nil Off is for
	// one that has them all.
	Off func(t agent.ToolType) error
}

// Models finds models that a tenant may use, by their names.
type Models interface {
	Show(ctx context.Context, id tenant.ID, idOrName string) (model.Record, error)
}

// Operations are those of /v1/agents. The original contract has them below /default, too.
func (h *Handlers) Operations() []httpapi.Operation {
	unknown := httpapi.Refusal(http.StatusNotFound, "not_found: the agent or version does not exist, or belongs to another tenant.")
	taken := httpapi.Refusal(http.StatusConflict, "conflict: the slug is taken, the agent has another version by now, or it is archived.")
	id := []httpapi.Param{{Name: "agent", In: httpapi.InPath, Doc: "Id or slug."}}
	version := append([]httpapi.Param{{Name: "version", In: httpapi.InPath, Doc: "The number of a version."}}, id...)
	asked := &AgentModel{Name: new("claude-sonnet-4"), MaxTokens: new(int64(4096)), Temperature: new(0.7)}
	example := NewAgent{Name: new("Customer Support Agent"), Slug: new("support-agent"), Model: asked, System: new("You are a helpful customer support agent."), Tools: []AgentTool{{Type: new("mcp"), Server: new("web-search")}}}
	var ops []httpapi.Operation
	for _, base := range []struct{ path, suffix string }{{"/v1/agents", ""}, {"/default/v1/agents", "Default"}} {
		one := base.path + "/{agent}"
		ops = append(ops, []httpapi.Operation{
			{
				Method: http.MethodGet, Path: base.path, ID: "listAgents" + base.suffix, Summary: "List the tenant's agents, newest first", Description: "Each with its current version. Archived ones are omitted unless `include_archived` says so.", Scope: tenant.ScopeRead,
				Params:  ListParams(),
				Answers: []httpapi.Answer{httpapi.OK(httpapi.Page[Agent]{}, "A page.")}, Serve: httpapi.Returns(h.list),
			},
			{
				Method: http.MethodPost, Path: base.path, ID: "createAgent" + base.suffix, Summary: "Create an agent", Description: "It begins with version 1. Unknown models, tools and skills return 400 and their path in the body; `warnings` lists stored fields that have no effect. A taken slug returns 409.", Scope: tenant.ScopeExecute, Body: httpapi.JSON(example),
				Answers: []httpapi.Answer{httpapi.Created(Agent{}, "It is created, with version 1."), taken,
					httpapi.Refusal(http.StatusNotFound, "not_found: handoffs names an agent that is not there, or belongs to another tenant.")}, Serve: httpapi.Takes(h.create),
			},
			{
				Method: http.MethodGet, Path: one, ID: "getAgent" + base.suffix, Summary: "Show the current version of an agent, or of another tenant's template", Description: "By id or slug. Of another tenant's template, by its id, what is shown leaves out headers, queries of URLs and metadata.", Scope: tenant.ScopeRead, Params: id,
				Answers: []httpapi.Answer{httpapi.OK(Agent{}, "The agent."), unknown}, Serve: httpapi.Returns(h.get),
			},
			{
				Method: http.MethodPatch, Path: one, ID: "updateAgent" + base.suffix, Summary: "Make another version of an agent", Description: "Omitted fields stay unchanged; lists and objects are replaced. `version` must be the current one, or the answer is 409: read the agent again and repeat the change. A change of nothing makes no version. Sessions keep the version that they began with.", Scope: tenant.ScopeExecute, Params: id,
				Body:    httpapi.JSON(AgentChange{Version: new(1), System: new("Updated system prompt")}),
				Answers: []httpapi.Answer{httpapi.OK(Agent{}, "The new version; the current one if nothing changes."), unknown, taken}, Serve: httpapi.Takes(h.update),
			},
			{
				Method: http.MethodGet, Path: one + "/versions", ID: "listAgentVersions" + base.suffix, Summary: "List the versions of an agent, newest first", Description: "Versions never change, and are deleted only with their agent.", Scope: tenant.ScopeRead,
				Params:  append(httpapi.PageParams(20, 100), id...),
				Answers: []httpapi.Answer{httpapi.OK(httpapi.Page[Agent]{}, "A page."), unknown}, Serve: httpapi.Returns(h.versions),
			},
			{
				Method: http.MethodGet, Path: one + "/versions/{version}", ID: "getAgentVersion" + base.suffix, Summary: "Show a version of an agent", Description: "As the agent was from that version on.", Scope: tenant.ScopeRead, Params: version,
				Answers: []httpapi.Answer{httpapi.OK(Agent{}, "The version."), unknown}, Serve: httpapi.Returns(h.version),
			},
			{
				Method: http.MethodPost, Path: one + "/archive", ID: "archiveAgent" + base.suffix, Summary: "Archive an agent", Description: "No new session can use it. It keeps its slug, and existing sessions continue.", Scope: tenant.ScopeExecute, Params: id,
				Answers: []httpapi.Answer{httpapi.OK(Agent{}, "It is archived: it can be read, and not be changed. Again is no error."), unknown}, Serve: httpapi.Returns(h.archive),
			},
			{
				Method: http.MethodDelete, Path: one, ID: "deleteAgent" + base.suffix, Summary: "Delete an agent with its versions", Description: "Refused with 409 while the agent has sessions, archived ones included. The slug is free again. Agents that hand work to it fail to do so from then on.", Scope: tenant.ScopeExecute, Params: id,
				Answers: []httpapi.Answer{httpapi.OK(DeletedAgent{}, "The agent and its versions are deleted."), unknown, httpapi.Refusal(http.StatusConflict, "conflict: the agent has sessions.")}, Serve: httpapi.Returns(h.remove),
			},
			{
				Method: http.MethodPost, Path: one + "/copy", ID: "copyAgent" + base.suffix, Summary: "Copy an agent, or another tenant's template", Description: "A copy never has the headers of MCP servers. Give `model` if the tenant may not use the template's.", Scope: tenant.ScopeExecute, Params: id,
				Body:    &httpapi.Body{JSON: AgentCopy{Slug: new("support-copy")}, Optional: true},
				Answers: []httpapi.Answer{httpapi.Created(Agent{}, "The copy: private, with version 1 and without the servers' headers."), unknown, taken}, Serve: httpapi.Takes(h.copy),
			},
		}...)
	}
	for i := range ops {
		ops[i].Tag = "agents"
	}
	return ops
}

// event notes a change of an agent.
func event(c *httpapi.Call, id agent.ID, old, now string) tenant.PolicyEvent {
	return tenant.PolicyEvent{Tenant: c.Caller.Tenant.ID, Actor: c.Caller.Key.ID, Field: "agent/" + string(id), Old: old, New: now, CreatedAt: time.Now().UTC().Truncate(time.Microsecond)}
}

func numbered(v int) string { return fmt.Sprintf("version %d", v) }

func (h *Handlers) create(c *httpapi.Call, in *NewAgent) (out Agent, err error) {
	a := &agent.Agent{ID: agent.NewID(), Tenant: c.Caller.Tenant.ID, Visibility: agent.Private}
	change := AgentChange{
		Name: in.Name, Slug: in.Slug, Description: in.Description, Model: in.Model, System: in.System, Tools: &in.Tools, MCPServers: &in.MCPServers,
		ToolPolicy: in.ToolPolicy, Metadata: &in.Metadata, Visibility: in.Visibility, Multiagent: in.Multiagent, Compaction: in.Compaction, MaxSteps: in.MaxSteps, RetryForMS: in.RetryForMS,
	}
	if err := change.change(a); err != nil {
		return out, err
	}
	if a.Definition.Skills, err = h.ReadSkills(c, in.Skills, nil); err != nil {
		return out, err
	}
	if a.Definition.Handoffs, err = h.readHandoffs(c, in.Handoffs, nil); err != nil {
		return out, err
	}
	if err := h.Insert(c, a, numbered(1)); err != nil {
		return out, err
	}
	return h.agentOf(a), nil
}

// Insert checks and stores the first version of an agent. how is what the tenant's policy
// events say of it.
func (h *Handlers) Insert(c *httpapi.Call, a *agent.Agent, how string) error {
	if err := h.check(c, a, true); err != nil {
		return err
	}
	return h.Store.Create(c.Context(), a, h.Limits, event(c, a.ID, "", how))
}

// Replace checks and stores after as the version that follows before, and says what is current
// then: before, if they are the same. modelled says that the caller spoke of the model or tools.
func (h *Handlers) Replace(c *httpapi.Call, before, after *agent.Agent, modelled bool) (*agent.Agent, error) {
	if reflect.DeepEqual(before, after) {
		return before, nil
	}
	if err := h.check(c, after, modelled); err != nil {
		return nil, err
	}
	after.Version = before.Version + 1
	return after, h.Store.Update(c.Context(), after, h.Limits, event(c, after.ID, numbered(before.Version), numbered(after.Version)))
}

// check refuses what an agent cannot be. Its model is looked at only when the caller says
// something of it: one that has gone does not keep a prompt from being changed.
func (h *Handlers) check(c *httpapi.Call, a *agent.Agent, withModel bool) error {
	if err := a.Check(); err != nil || !withModel {
		return err
	}
	m, err := h.Models.Show(c.Context(), a.Tenant, a.Definition.Model.Name)
	if fault.KindOf(err) == fault.NotFound {
		return httpapi.Invalid("model.name: there is no model %q: GET /v1/models lists what there is", a.Definition.Model.Name)
	}
	if err != nil {
		return err
	}
	return a.Definition.CheckModel(&m)
}

func (h *Handlers) update(c *httpapi.Call, in *AgentChange) (out Agent, err error) {
	before, err := h.Find(c)
	if err != nil {
		return out, err
	}
	switch {
	case before.Archived():
		return out, agent.ErrArchived
	case *in.Version != before.Version:
		return out, agent.VersionConflict(before.Version)
	}
	after := *before
	if err := in.change(&after); err != nil {
		return out, err
	}
	if in.Skills != nil {
		if after.Definition.Skills, err = h.ReadSkills(c, *in.Skills, before.Definition.Skills); err != nil {
			return out, err
		}
	}
	if in.Handoffs != nil {
		if after.Definition.Handoffs, err = h.readHandoffs(c, *in.Handoffs, before.Definition.Handoffs); err != nil {
			return out, err
		}
	}
	now, err := h.Replace(c, before, &after, in.Model != nil || in.Tools != nil || in.Skills != nil || in.Handoffs != nil)
	if err != nil {
		return out, err
	}
	return h.agentOf(now), nil
}

func (h *Handlers) archive(c *httpapi.Call) (out Agent, err error) {
	a, err := h.End(c)
	if err != nil {
		return out, err
	}
	return h.agentOf(a), nil
}

// End archives the agent of a request.
func (h *Handlers) End(c *httpapi.Call) (*agent.Agent, error) {
	before, err := h.Find(c)
	if err != nil {
		return nil, err
	}
	return h.Store.Archive(c.Context(), before.Tenant, string(before.ID), event(c, before.ID, numbered(before.Version), "archived"))
}

func (h *Handlers) remove(c *httpapi.Call) (out DeletedAgent, err error) {
	a, err := h.Find(c)
	if err != nil {
		return out, err
	}
	return DeletedAgent{string(a.ID), "agent_deleted"}, h.Store.Delete(c.Context(), a.Tenant, a.ID, event(c, a.ID, numbered(a.Version), "deleted"))
}

// maxRef bounds what an agent is asked for as.
const maxRef = 64

// ref is the id or slug of a request's path.
func ref(c *httpapi.Call) (string, error) {
	name := c.Path("agent")
	if !tenant.Name.MatchString(name) || len(name) > maxRef {
		return "", agent.ErrNotFound
	}
	return name, nil
}

// Find returns the current version of the agent of a request, by its id or slug.
func (h *Handlers) Find(c *httpapi.Call) (*agent.Agent, error) {
	name, err := ref(c)
	if err != nil {
		return nil, err
	}
	return h.Store.Get(c.Context(), c.Caller.Tenant.ID, name)
}

// visible is Find that sees templates of other tenants, too.
func (h *Handlers) visible(c *httpapi.Call) (*agent.Agent, error) {
	a, err := h.Find(c)
	id := agent.ID(c.Path("agent"))
	if fault.KindOf(err) != fault.NotFound || !id.Valid() {
		return a, err
	}
	if a, err = h.Store.Template(c.Context(), id); err != nil {
		return nil, err
	}
	return a.Shared(), nil
}

func (h *Handlers) copy(c *httpapi.Call, in *AgentCopy) (out Agent, err error) {
	from, err := h.visible(c)
	if err != nil {
		return out, err
	}
	a := from.Copy(c.Caller.Tenant.ID)
	set(&a.Slug, in.Slug)
	set(&a.Definition.Name, in.Name)
	if err := in.Model.set(&a.Definition.Model); err != nil {
		return out, err
	}
	if err := h.Insert(c, a, "copy of "+string(from.ID)); err != nil {
		return out, err
	}
	return h.agentOf(a), nil
}

func (h *Handlers) get(c *httpapi.Call) (out Agent, err error) {
	a, err := h.visible(c)
	if err != nil {
		return out, err
	}
	return h.agentOf(a), nil
}

func (h *Handlers) version(c *httpapi.Call) (out Agent, err error) {
	name, err := ref(c)
	if err != nil {
		return out, err
	}
	v, err := strconv.ParseInt(c.Path("version"), 10, 32)
	if err != nil || v < 1 {
		return out, httpapi.Invalid("version must be a whole number from 1")
	}
	a, err := h.Store.At(c.Context(), c.Caller.Tenant.ID, name, int(v))
	if err != nil {
		return out, err
	}
	return h.agentOf(a), nil
}

func (h *Handlers) list(c *httpapi.Call) (out httpapi.Page[Agent], err error) {
	page, next, err := h.Page(c)
	return h.pageOf(page, next), err
}

// ListParams are the parameters of a list of agents.
func ListParams() []httpapi.Param {
	return append(httpapi.PageParams(20, 100), httpapi.Param{Name: "include_archived", Type: httpapi.Bool, Doc: "Includes archived ones."},
		httpapi.Param{Name: "created_at[gte]", Type: httpapi.Time, Doc: "Only those created at this time or later."},
		httpapi.Param{Name: "created_at[lte]", Type: httpapi.Time, Doc: "Only those created at this time or earlier."})
}

// Page reads the page that a request asks for by ListParams.
func (h *Handlers) Page(c *httpapi.Call) (page []agent.Agent, next string, err error) {
	cursor, err := c.Cursor()
	if err != nil {
		return nil, "", err
	}
	f := agent.Filter{Page: agent.Page{Cursor: cursor, Limit: int(c.Int("limit"))}, Archived: c.Bool("include_archived"), From: c.Time("created_at[gte]"), To: c.Time("created_at[lte]")}
	return h.Store.List(c.Context(), c.Caller.Tenant.ID, f)
}

func (h *Handlers) versions(c *httpapi.Call) (out httpapi.Page[Agent], err error) {
	cursor, err := c.Cursor()
	if err != nil {
		return out, err
	}
	name, err := ref(c)
	if err != nil {
		return out, err
	}
	page, next, err := h.Store.Versions(c.Context(), c.Caller.Tenant.ID, name, agent.Page{Cursor: cursor, Limit: int(c.Int("limit"))})
	return h.pageOf(page, next), err
}

func (h *Handlers) pageOf(page []agent.Agent, next string) httpapi.Page[Agent] {
	out := httpapi.Page[Agent]{Data: []Agent{}, NextPage: text(next)}
	for i := range page {
		out.Data = append(out.Data, h.agentOf(&page[i]))
	}
	return out
}
