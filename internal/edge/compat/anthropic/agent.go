package anthropic

import (
	"net/http"
	"slices"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/web"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	agentapi "github.com/atoll-run/atoll/internal/edge/httpapi/agent"
)

func (d *Handlers) agents() []httpapi.Operation {
	const all, one = "/v1/agents", "/v1/agents/{agent}"
	body := httpapi.JSON(AgentFields{})
	return []httpapi.Operation{
		{Method: http.MethodGet, Path: all, Scope: tenant.ScopeRead, Params: agentapi.ListParams(), Serve: httpapi.Returns(d.listAgents)},
		{Method: http.MethodPost, Path: all, Scope: tenant.ScopeExecute, Body: body, Serve: httpapi.Takes(d.createAgent)},
		{Method: http.MethodGet, Path: one, Scope: tenant.ScopeRead, Params: []httpapi.Param{{Name: "version", Type: httpapi.Int, Min: 1, Max: 1 << 31}}, Serve: httpapi.Returns(d.agent)},
		{Method: http.MethodPost, Path: one, Scope: tenant.ScopeExecute, Body: body, Serve: httpapi.Takes(d.changeAgent)},
		{Method: http.MethodGet, Path: one + "/versions", Scope: tenant.ScopeRead, Params: httpapi.PageParams(20, 100), Serve: httpapi.Returns(d.agentVersions)},
		{Method: http.MethodPost, Path: one + "/archive", Scope: tenant.ScopeExecute, Serve: httpapi.Returns(d.archiveAgent)},
	}
}

func (d *Handlers) createAgent(c *httpapi.Call, in *AgentFields) (out Agent, err error) {
	in.off = d.off()
	a := &agent.Agent{ID: agent.NewID(), Tenant: c.Caller.Tenant.ID, Visibility: agent.Private}
	switch {
	case in.Name == nil:
		return out, httpapi.Invalid("name is required: a string")
	case len(in.Model) == 0:
		return out, httpapi.Invalid("model is required: the name of a model, or an object with its id")
	case in.Version != nil:
		return out, httpapi.Invalid("version must be omitted: a new agent has version 1")
	}
	if err := in.change(a); err != nil {
		return out, err
	}
	if err := d.setSkills(c, in, &a.Definition); err != nil {
		return out, err
	}
	if err := d.setMultiagent(c, in, &a.Definition); err != nil {
		return out, err
	}
	if err := d.Agents.Insert(c, a, "version 1"); err != nil {
		return out, err
	}
	return agentOf(a), nil
}

// off are the tools of the agent toolset that are off on this server.
func (d *Handlers) off() (kinds []agent.ToolType) {
	if d.Web == nil {
		return nil
	}
	on := d.Web.Services()
	for kind, name := range map[agent.ToolType]string{agent.WebSearch: web.SearchName, agent.FetchURL: web.FetchName} {
		if !slices.Contains(on, name) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// maxTries is how often a change that names no version is made again after another one.
const maxTries = 5

func (d *Handlers) changeAgent(c *httpapi.Call, in *AgentFields) (out Agent, err error) {
	in.off = d.off()
	for try := 1; ; try++ {
		now, err := d.changeOnce(c, in)
		if err == nil {
			return agentOf(now), nil
		}
		if in.Version != nil || try == maxTries || fault.KindOf(err) != fault.Conflict {
			return out, err
		}
	}
}

func (d *Handlers) changeOnce(c *httpapi.Call, in *AgentFields) (*agent.Agent, error) {
	before, err := d.Agents.Find(c)
	switch {
	case err != nil:
		return nil, err
	case before.Archived():
		return nil, agent.ErrArchived
	case in.Version != nil && *in.Version != before.Version:
		return nil, agent.VersionConflict(before.Version)
	}
	after := *before
	if err := in.change(&after); err != nil {
		return nil, err
	}
	if err := d.setSkills(c, in, &after.Definition); err != nil {
		return nil, err
	}
	if err := d.setMultiagent(c, in, &after.Definition); err != nil {
		return nil, err
	}
	return d.Agents.Replace(c, before, &after, len(in.Model) > 0 || len(in.Tools) > 0 || len(in.Skills) > 0 || len(in.Multiagent) > 0)
}

func (d *Handlers) agent(c *httpapi.Call) (out Agent, err error) {
	a, err := d.Agents.Find(c)
	if err == nil && c.Has("version") {
		a, err = d.Agents.Store.At(c.Context(), a.Tenant, string(a.ID), int(c.Int("version")))
	}
	if err != nil {
		return out, err
	}
	return agentOf(a), nil
}

func (d *Handlers) archiveAgent(c *httpapi.Call) (out Agent, err error) {
	a, err := d.Agents.End(c)
	if err != nil {
		return out, err
	}
	return agentOf(a), nil
}

func (d *Handlers) listAgents(c *httpapi.Call) (out httpapi.Page[Agent], err error) {
	page, next, err := d.Agents.Page(c)
	return pageOf(page, next), err
}

func (d *Handlers) agentVersions(c *httpapi.Call) (out httpapi.Page[Agent], err error) {
	a, err := d.Agents.Find(c)
	if err != nil {
		return out, err
	}
	cursor, err := c.Cursor()
	if err != nil {
		return out, err
	}
	page, next, err := d.Agents.Store.Versions(c.Context(), a.Tenant, string(a.ID), agent.Page{Cursor: cursor, Limit: int(c.Int("limit"))})
	return pageOf(page, next), err
}

func pageOf(page []agent.Agent, next string) httpapi.Page[Agent] {
	out := httpapi.Page[Agent]{Data: []Agent{}, NextPage: httpapi.OrNull(next)}
	for i := range page {
		out.Data = append(out.Data, agentOf(&page[i]))
	}
	return out
}
