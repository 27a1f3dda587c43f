package agent

import (
	stdjson "encoding/json"
	"maps"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// change makes of a the version that in asks for.
func (in *AgentChange) change(a *agent.Agent) error {
	d := &a.Definition
	set(&a.Slug, in.Slug)
	set(&d.Name, in.Name)
	set(&d.Description, in.Description)
	set(&d.System, in.System)
	if in.Visibility != nil {
		a.Visibility = agent.Visibility(*in.Visibility)
	}
	if err := in.Model.set(&d.Model); err != nil {
		return err
	}
	if in.Tools != nil {
		d.Tools = nil
		for _, t := range *in.Tools {
			tool := agent.Tool{Type: agent.ToolType(*t.Type), Schema: agent.Canonical(stdjson.RawMessage(t.InputSchema))}
			set(&tool.Server, t.Server)
			set(&tool.Name, t.Name)
			set(&tool.Description, t.Description)
			d.Tools = append(d.Tools, tool)
		}
	}
	if in.MCPServers != nil {
		before := *d
		d.Servers = nil
		for i, s := range *in.MCPServers {
			server := agent.Server{Name: *s.Name, AllowedTools: s.AllowedTools, Args: filled(s.Args)}
			set(&server.URL, s.URL)
			set(&server.Command, s.Command)
			if len(s.Headers) > 0 {
				server.Headers = s.Headers
			}
			if len(s.Env) > 0 {
				server.Env = s.Env
			}
			if s.Type != nil && (*s.Type == "stdio") != (server.Command != "") {
				return httpapi.Invalid("mcp_servers[%d].type: a server of the type url has url, and one of the type stdio has command", i)
			}
			set(&server.Description, s.Description)
			old := before.Server(server.Name)
			if s.Headers == nil && old != nil && old.URL == server.URL {
				server.Headers = old.Headers
			}
			if s.Env == nil && old != nil && old.Command == server.Command {
				server.Env = old.Env
			}
			d.Servers = append(d.Servers, server)
		}
	}
	if in.Multiagent != nil {
		d.Multiagent = in.Multiagent.domain()
	}
	if c := in.Compaction; c != nil {
		d.Compaction = &agent.Compaction{Off: *c.Mode == "off"}
		if set(&d.Compaction.At, c.AtTokens); c.AtTokens != nil && *c.AtTokens <= 0 {
			d.Compaction.At = -1 // which the check refuses
		}
	}
	if in.MaxSteps != nil && *in.MaxSteps < 1 {
		return httpapi.Invalid("max_steps must be between 1 and %d", agent.MaxSteps)
	}
	set(&d.MaxSteps, in.MaxSteps)
	if in.RetryForMS != nil {
		d.RetryFor = in.RetryForMS
	}
	return in.policy(d)
}

// set replaces a model, if in is not nil.
func (in *AgentModel) set(m *agent.Model) error {
	if in == nil {
		return nil
	}
	if in.MaxTokens != nil && *in.MaxTokens < 1 {
		return httpapi.Invalid("model.max_tokens must be between 1 and 1000000")
	}
	*m = agent.Model{Name: *in.Name, Temperature: in.Temperature, TopP: in.TopP, Stop: filled(in.Stop)}
	set(&m.MaxTokens, in.MaxTokens)
	set(&m.Effort, in.Effort)
	return nil
}

// policy sets metadata and the policy, which metadata may have, too. Metadata that do not speak
// of it leave it as it is, so that it is never lost by the way.
func (in *AgentChange) policy(d *agent.Definition) error {
	p := in.ToolPolicy
	if in.Metadata != nil {
		d.Metadata = nil
		for key, value := range *in.Metadata {
			if d.Metadata == nil {
				d.Metadata = map[string]stdjson.RawMessage{}
			}
			d.Metadata[key] = agent.Canonical(stdjson.RawMessage(value))
		}
		if text := (*in.Metadata)["tool_policy"]; len(text) > 0 && string(text) != "null" {
			if p != nil {
				return httpapi.Invalid("tool_policy and metadata.tool_policy are the same; give one of them")
			}
			p = new(ToolPolicy)
			if err := wire.Body.Decode(text, p); err != nil {
				return httpapi.Invalid("metadata.tool_policy: %s", err)
			}
		}
	}
	if p != nil {
		d.Policy = agent.Policy{Allow: p.AllowList, Deny: filled(p.DenyList), Confirm: filled(p.RequireConfirmation)}
		if p.ConfirmWithin != nil {
			if d.Policy.Within = *p.ConfirmWithin; d.Policy.Within < 1 {
				return httpapi.Invalid("tool_policy.confirm_within must be at least 1 second")
			}
		}
	}
	if _, there := d.Metadata["tool_policy"]; there && in.ToolPolicy != nil { // one agent does not say two things
		now, err := json.Marshal(policyOf(d))
		if err != nil {
			return err
		}
		d.Metadata = maps.Clone(d.Metadata)
		d.Metadata["tool_policy"] = agent.Canonical(stdjson.RawMessage(now))
	}
	return nil
}

// filled is nil for an empty list, of those that mean the same by both.
func filled(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return list
}

func set[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}

func (h *Handlers) agentOf(a *agent.Agent) Agent {
	d := &a.Definition
	out := Agent{
		ID: string(a.ID), Type: "agent", Name: d.Name, Slug: httpapi.OrNull(a.Slug), Description: httpapi.OrNull(d.Description), System: httpapi.OrNull(d.System), Visibility: string(a.Visibility), Version: a.Version,
		Model: AgentModel{Name: &d.Model.Name, Temperature: d.Model.Temperature, TopP: d.Model.TopP, Stop: d.Model.Stop, Effort: httpapi.OrNull(d.Model.Effort)},
		Tools: []AgentTool{}, MCPServers: []AgentServer{}, Skills: httpapi.Each(d.Skills, skillOf), Metadata: map[string]jsontext.Value{}, Warnings: []Warning{},
		ToolPolicy: policyOf(d), Handoffs: httpapi.Each(d.Handoffs, handoffOf), Multiagent: multiagentOf(d.Multiagent),
		RetryForMS: d.RetryFor, CreatedAt: a.CreatedAt, UpdatedAt: a.UpdatedAt,
	}
	if c := d.Compaction; c != nil {
		out.Compaction = &AgentCompaction{Mode: new("auto")}
		if c.Off {
			*out.Compaction.Mode = "off"
		}
		if c.At > 0 {
			out.Compaction.AtTokens = &c.At
		}
	}
	if d.MaxSteps > 0 {
		out.MaxSteps = &d.MaxSteps
	}
	if d.Model.MaxTokens > 0 {
		out.Model.MaxTokens = &d.Model.MaxTokens
	}
	for _, t := range d.Tools {
		out.Tools = append(out.Tools, AgentTool{Type: new(string(t.Type)), Server: httpapi.OrNull(t.Server), Name: httpapi.OrNull(t.Name), Description: httpapi.OrNull(t.Description), InputSchema: jsontext.Value(t.Schema)})
	}
	for _, s := range d.Servers {
		out.MCPServers = append(out.MCPServers, AgentServer{
			Type: new(s.Type()), Name: &s.Name, URL: httpapi.OrNull(s.URL), Command: httpapi.OrNull(s.Command), Args: s.Args, Description: httpapi.OrNull(s.Description), AllowedTools: s.AllowedTools,
		})
	}
	for key, value := range maps.All(d.Metadata) {
		out.Metadata[key] = jsontext.Value(value)
	}
	for _, w := range h.Service.Warnings(a) {
		out.Warnings = append(out.Warnings, Warning(w))
	}
	if a.Archived() {
		out.ArchivedAt = &a.ArchivedAt
	}
	return out
}

func policyOf(d *agent.Definition) ToolPolicy {
	out := ToolPolicy{AllowList: d.Policy.Allow, DenyList: d.Policy.Deny, RequireConfirmation: d.Policy.Confirm}
	if d.Policy.Within > 0 {
		out.ConfirmWithin = &d.Policy.Within
	}
	return out
}
