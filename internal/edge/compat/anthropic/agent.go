package anthropic

import (
	"net/http"

	"github.com/atoll-run/atoll/internal/agent/agents"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

func (d *Handlers) agents() []httpapi.Operation {
	const all, one = "/v1/agents", "/v1/agents/{agent}"
	body := httpapi.JSON(AgentFields{})
	list := append(httpapi.PageParams(20, 100), httpapi.Param{Name: "include_archived", Type: httpapi.Bool}, httpapi.Param{Name: "created_at[gte]", Type: httpapi.Time}, httpapi.Param{Name: "created_at[lte]", Type: httpapi.Time})
	return []httpapi.Operation{
		{Method: http.MethodGet, Path: all, Scope: tenant.ScopeRead, Params: list, Serve: httpapi.Returns(d.listAgents)},
		{Method: http.MethodPost, Path: all, Scope: tenant.ScopeExecute, Body: body, Serve: httpapi.Takes(d.createAgent)},
		{Method: http.MethodGet, Path: one, Scope: tenant.ScopeRead, Params: []httpapi.Param{{Name: "version", Type: httpapi.Int, Min: 1, Max: 1 << 31}}, Serve: httpapi.Returns(d.agent)},
		{Method: http.MethodPost, Path: one, Scope: tenant.ScopeExecute, Body: body, Serve: httpapi.Takes(d.changeAgent)},
		{Method: http.MethodGet, Path: one + "/versions", Scope: tenant.ScopeRead, Params: httpapi.PageParams(20, 100), Serve: httpapi.Returns(d.agentVersions)},
		{Method: http.MethodPost, Path: one + "/archive", Scope: tenant.ScopeExecute, Serve: httpapi.Returns(d.archiveAgent)},
	}
}

var shownAgent = httpapi.Shown(agentOf)

func (d *Handlers) createAgent(c *httpapi.Call, in *AgentFields) (out Agent, err error) {
	switch {
	case in.Name == nil:
		return out, httpapi.Invalid("name is required: a string")
	case len(in.Model) == 0:
		return out, httpapi.Invalid("model is required: the name of a model, or an object with its id")
	case in.Version != nil:
		return out, httpapi.Invalid("version must be omitted: a new agent has version 1")
	}
	return shownAgent(d.Agents.Create(c.Context(), c.Caller, d.edit(c, in)))
}

func (d *Handlers) changeAgent(c *httpapi.Call, in *AgentFields) (Agent, error) {
	return shownAgent(d.Agents.Change(c.Context(), c.Caller, c.Path("agent"), agents.Change{
		Version: in.Version, Edit: d.edit(c, in), Model: len(in.Model) > 0 || len(in.Tools) > 0 || len(in.Skills) > 0 || len(in.Multiagent) > 0,
	}))
}

// edit returns the change of an agent that a body asks for.
func (d *Handlers) edit(c *httpapi.Call, in *AgentFields) func(*agent.Agent) error {
	in.off = d.Agents.Off
	return func(a *agent.Agent) error {
		if err := in.change(a); err != nil {
			return err
		}
		if err := d.setSkills(c, in, &a.Definition); err != nil {
			return err
		}
		return d.setMultiagent(c, in, &a.Definition)
	}
}

func (d *Handlers) agent(c *httpapi.Call) (Agent, error) {
	if c.Has("version") {
		return shownAgent(d.Agents.At(c.Context(), c.Caller.Tenant.ID, c.Path("agent"), int(c.Int("version"))))
	}
	return shownAgent(d.Agents.Find(c.Context(), c.Caller.Tenant.ID, c.Path("agent")))
}

func (d *Handlers) archiveAgent(c *httpapi.Call) (Agent, error) {
	return shownAgent(d.Agents.Archive(c.Context(), c.Caller, c.Path("agent")))
}

func (d *Handlers) listAgents(c *httpapi.Call) (out httpapi.Page[Agent], err error) {
	cursor, err := c.Cursor()
	if err != nil {
		return out, err
	}
	f := agent.Filter{Page: agent.Page{Cursor: cursor, Limit: int(c.Int("limit"))}, Archived: c.Bool("include_archived"), From: c.Time("created_at[gte]"), To: c.Time("created_at[lte]")}
	return httpapi.ShownPage(agentOf)(d.Agents.Store.List(c.Context(), c.Caller.Tenant.ID, f))
}

func (d *Handlers) agentVersions(c *httpapi.Call) (out httpapi.Page[Agent], err error) {
	cursor, err := c.Cursor()
	if err != nil {
		return out, err
	}
	return httpapi.ShownPage(agentOf)(d.Agents.Versions(c.Context(), c.Caller.Tenant.ID, c.Path("agent"), agent.Page{Cursor: cursor, Limit: int(c.Int("limit"))}))
}
