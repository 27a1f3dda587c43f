package anthropic

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/agents"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

const coordinator = "coordinator" // the only topology there is

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
	return d.Agents.Coordinate(c.Context(), c.Caller.Tenant.ID, to, entries)
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
	add(len(d.Handoffs) > 0 && d.Hands() != agents.Coordinator || d.Multiagent != nil && len(d.Handoffs) == 0, "multiagent")
}
