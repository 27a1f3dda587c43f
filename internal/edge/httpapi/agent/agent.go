// Package agent serves agents: versioned definitions of a model, what it is told and the
// tools that it may call.
package agent

import (
	"net/http"
	"strconv"

	"github.com/atoll-run/atoll/internal/agent/agents"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Handlers serve agents: to keys with the scope read to see them, execute to change them.
type Handlers struct {
	Service *agents.Service
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
				Params: append(httpapi.PageParams(20, 100), httpapi.Param{Name: "include_archived", Type: httpapi.Bool, Doc: "Includes archived ones."},
					httpapi.Param{Name: "created_at[gte]", Type: httpapi.Time, Doc: "Only those created at this time or later."},
					httpapi.Param{Name: "created_at[lte]", Type: httpapi.Time, Doc: "Only those created at this time or earlier."}),
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

func (h *Handlers) shown(a *agent.Agent, err error) (Agent, error) {
	return httpapi.Shown(h.agentOf)(a, err)
}

func (h *Handlers) create(c *httpapi.Call, in *NewAgent) (Agent, error) {
	change := &AgentChange{
		Name: in.Name, Slug: in.Slug, Description: in.Description, Model: in.Model, System: in.System, Tools: &in.Tools, MCPServers: &in.MCPServers, Skills: &in.Skills,
		ToolPolicy: in.ToolPolicy, Metadata: &in.Metadata, Visibility: in.Visibility, Handoffs: &in.Handoffs, Multiagent: in.Multiagent, Compaction: in.Compaction, MaxSteps: in.MaxSteps, RetryForMS: in.RetryForMS,
	}
	return h.shown(h.Service.Create(c.Context(), c.Caller, h.edit(c, change)))
}

func (h *Handlers) update(c *httpapi.Call, in *AgentChange) (Agent, error) {
	return h.shown(h.Service.Change(c.Context(), c.Caller, c.Path("agent"), agents.Change{
		Version: in.Version, Edit: h.edit(c, in), Model: in.Model != nil || in.Tools != nil || in.Skills != nil || in.Handoffs != nil,
	}))
}

// edit returns the change of an agent that a body asks for.
func (h *Handlers) edit(c *httpapi.Call, in *AgentChange) func(*agent.Agent) error {
	return func(a *agent.Agent) (err error) {
		if err := in.change(a); err != nil {
			return err
		}
		d := &a.Definition
		if in.Skills != nil {
			list, err := skillsIn(*in.Skills)
			if err != nil {
				return err
			}
			if d.Skills, err = h.Service.ResolveSkills(c.Context(), a.Tenant, list, d.Skills); err != nil {
				return err
			}
		}
		if in.Handoffs != nil {
			d.Handoffs, err = h.Service.ResolveHandoffs(c.Context(), a.Tenant, handoffsIn(*in.Handoffs), d.Handoffs)
		}
		return err
	}
}

func (h *Handlers) archive(c *httpapi.Call) (Agent, error) {
	return h.shown(h.Service.Archive(c.Context(), c.Caller, c.Path("agent")))
}

func (h *Handlers) remove(c *httpapi.Call) (DeletedAgent, error) {
	id, err := h.Service.Delete(c.Context(), c.Caller, c.Path("agent"))
	return DeletedAgent{string(id), "agent_deleted"}, err
}

func (h *Handlers) copy(c *httpapi.Call, in *AgentCopy) (Agent, error) {
	return h.shown(h.Service.Copy(c.Context(), c.Caller, c.Path("agent"), func(a *agent.Agent) error {
		set(&a.Slug, in.Slug)
		set(&a.Definition.Name, in.Name)
		return in.Model.set(&a.Definition.Model)
	}))
}

func (h *Handlers) get(c *httpapi.Call) (Agent, error) {
	return h.shown(h.Service.Visible(c.Context(), c.Caller.Tenant.ID, c.Path("agent")))
}

func (h *Handlers) version(c *httpapi.Call) (out Agent, err error) {
	v, err := strconv.ParseInt(c.Path("version"), 10, 32)
	if err != nil || v < 1 {
		return out, httpapi.Invalid("version must be a whole number from 1")
	}
	return h.shown(h.Service.At(c.Context(), c.Caller.Tenant.ID, c.Path("agent"), int(v)))
}

func (h *Handlers) list(c *httpapi.Call) (out httpapi.Page[Agent], err error) {
	cursor, err := c.Cursor()
	if err != nil {
		return out, err
	}
	f := agent.Filter{Page: agent.Page{Cursor: cursor, Limit: int(c.Int("limit"))}, Archived: c.Bool("include_archived"), From: c.Time("created_at[gte]"), To: c.Time("created_at[lte]")}
	return httpapi.ShownPage(h.agentOf)(h.Service.Store.List(c.Context(), c.Caller.Tenant.ID, f))
}

func (h *Handlers) versions(c *httpapi.Call) (out httpapi.Page[Agent], err error) {
	cursor, err := c.Cursor()
	if err != nil {
		return out, err
	}
	return httpapi.ShownPage(h.agentOf)(h.Service.Versions(c.Context(), c.Caller.Tenant.ID, c.Path("agent"), agent.Page{Cursor: cursor, Limit: int(c.Int("limit"))}))
}
