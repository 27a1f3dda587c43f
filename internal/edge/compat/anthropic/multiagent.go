package anthropic

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/agents"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

const coordinator = "coordinator" // the only topology there is

// coordinates is how an agent hands on that this form has made: side by side, and with the most that
// is bounded, as this form has no word for bounds.
var coordinates = agent.Multiagent{
	Mode: agent.Orchestrator, MaxDelegations: agent.MaxDelegations, Parallel: true, Sharing: agent.ShareSummary, TimeoutMS: agent.MaxTimeoutMS,
}

// MultiagentFields says which agents an agent may hand work to.
type MultiagentFields struct {
	Type   *string          `json:"type" required:"true"`
	Agents []jsontext.Value `json:"agents,omitzero"` // each a text, or a RosterFields
}

// RosterFields is an agent that another one may hand work to.
type RosterFields struct {
	Type    *string `json:"type" required:"true"`
	ID      *string `json:"id,omitzero"`
	Version *int    `json:"version,omitzero" minimum:"1"`

	// Ours: what the model is told of the agent.
	Name        *string `json:"name,omitzero"`
	Description *string `json:"description,omitzero"`
	Trigger     *string `json:"trigger,omitzero"`
}

// Multiagent says which agents an agent may hand work to: an AgentRef each, or in a session a
// ThreadAgent.
type Multiagent struct {
	Type   string `json:"type"`
	Agents []any  `json:"agents"`
}

// AgentRef is a version of an agent.
type AgentRef struct {
	Type    string `json:"type"`
	ID      string `json:"id"`
	Version int    `json:"version"`

	// Ours: what the model is told of the agent.
	Name        string `json:"name"`
	Description string `json:"description,omitzero"`
	Trigger     string `json:"trigger,omitzero"`
}

// setMultiagent replaces the agents that work is handed to. One that was there keeps the name,
// description and trigger that it had, and an orchestrator how it hands on.
func (d *Handlers) setMultiagent(c *httpapi.Call, in *AgentFields, to *agent.Definition) error {
	switch {
	case len(in.Multiagent) == 0:
		return nil
	case in.Multiagent.Kind() == 'n':
		to.Handoffs, to.Multiagent = nil, nil
		return nil
	}
	var of struct {
		Multiagent *MultiagentFields `json:"multiagent"`
	}
	if err := only("multiagent", in.Multiagent, &of); err != nil {
		return err
	}
	m := of.Multiagent
	switch {
	case *m.Type != coordinator:
		return httpapi.Invalid("multiagent.type must be %s: others are not supported by this version", coordinator)
	case len(m.Agents) < 1 || len(m.Agents) > agent.MaxHandoffs:
		return httpapi.Invalid("multiagent.agents must have 1 to %d agents", agent.MaxHandoffs)
	}
	entries := make([]agents.Handoff, len(m.Agents))
	for i, raw := range m.Agents {
		if err := rosterEntry(raw, fmt.Sprintf("multiagent.agents[%d]", i), &entries[i]); err != nil {
			return err
		}
	}
	before := to.Handoffs
	out, err := d.Agents.ResolveHandoffs(c.Context(), c.Caller.Tenant.ID, entries, before)
	if err != nil {
		return err
	}
	names, seen := map[string]int{}, map[agent.ID]int{}
	for i, one := range out {
		path, tool := fmt.Sprintf("multiagent.agents[%d]", i), agent.HandoffTool(one.Name, i+1)
		if at, there := seen[one.Agent]; there {
			return httpapi.Invalid("%s is the same agent as multiagent.agents[%d]: name each once", path, at)
		}
		if at, there := names[tool]; there {
			return httpapi.Invalid("%s: its tool would be called %s, as that of multiagent.agents[%d]: give one of them another name", path, tool, at)
		}
		names[tool], seen[one.Agent] = i, i
	}
	if len(before) == 0 || to.Hands().Mode != agent.Orchestrator {
		how := coordinates
		to.Multiagent = &how
	}
	to.Handoffs = out
	return nil
}

// rosterEntry reads an agent that work is handed to: a text is its id.
func rosterEntry(raw jsontext.Value, path string, out *agents.Handoff) error {
	in := &RosterFields{Type: new("agent")}
	if raw.Kind() == '"' {
		text, err := jsontext.AppendUnquote(nil, raw)
		if err != nil {
			return httpapi.Invalid("%s must be the id of an agent, or an object", path)
		}
		in.ID = new(string(text))
	} else if err := decode(path, raw, in); err != nil {
		return err
	}
	switch {
	case *in.Type != "agent":
		return httpapi.Invalid("%s.type must be agent: others are not supported by this version", path)
	case in.ID == nil:
		return httpapi.Invalid("%s.id is required: the id of an agent", path)
	}
	*out = agents.Handoff{Agent: *in.ID, Version: in.Version, AgentPath: path, VersionPath: path + ".version", Keep: true, Name: in.Name, Description: in.Description, Trigger: in.Trigger}
	return nil
}

// multiagentOf shows an orchestrator. This form has no word for a swarm.
func multiagentOf(d *agent.Definition) *Multiagent {
	if len(d.Handoffs) == 0 || d.Hands().Mode != agent.Orchestrator {
		return nil
	}
	out := &Multiagent{Type: coordinator, Agents: []any{}}
	for i := range d.Handoffs {
		h := &d.Handoffs[i]
		out.Agents = append(out.Agents, AgentRef{"agent", string(h.Agent), h.Version, h.Name, h.Description, h.Trigger})
	}
	return out
}

// roster is what a session shows of it: the agents themselves.
func (r *renderer) roster(of *agent.Agent) (*Multiagent, error) {
	out := multiagentOf(&of.Definition)
	if out == nil {
		return nil, nil
	}
	for i := range of.Definition.Handoffs {
		h := &of.Definition.Handoffs[i]
		a, err := r.version(of.Tenant, h.Agent, h.Version)
		if err != nil {
			return nil, err
		}
		out.Agents[i] = threadAgentOf(a)
	}
	return out, nil
}

// unsaidHands names what this form has no word for of how an agent hands on.
func unsaidHands(d *agent.Definition, add func(has bool, path string)) {
	add(len(d.Handoffs) > 0 && d.Hands().Mode != agent.Orchestrator, "handoffs")
	add(len(d.Handoffs) > 0 && d.Hands() != coordinates || d.Multiagent != nil && len(d.Handoffs) == 0, "multiagent")
}
