package agent

import (
	"fmt"
	"slices"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// readHandoffs reads the agents that a caller has an agent hand on to, which has had before
// ones: each is resolved to a version.
func (h *Handlers) readHandoffs(c *httpapi.Call, in []AgentHandoff, before []agent.Handoff) (out []agent.Handoff, err error) {
	if len(in) > agent.MaxHandoffs {
		return nil, httpapi.Invalid("handoffs must have at most %d entries", agent.MaxHandoffs)
	}
	for i := range in {
		one, err := h.Handoff(c, fmt.Sprintf("handoffs[%d]", i), &in[i], before)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// Handoff reads an agent that a caller has another one hand on to, by the path that says so.
func (h *Handlers) Handoff(c *httpapi.Call, path string, in *AgentHandoff, before []agent.Handoff) (out agent.Handoff, err error) {
	none := fault.New(fault.NotFound, "%s.agent_id: agent %.80q not found", path, *in.AgentID)
	if !tenant.Name.MatchString(*in.AgentID) || len(*in.AgentID) > maxRef {
		return out, none
	}
	a, err := h.Store.Get(c.Context(), c.Caller.Tenant.ID, *in.AgentID)
	if fault.KindOf(err) == fault.NotFound {
		return out, none
	}
	if err != nil {
		return out, err
	}
	if a.Archived() && !slices.ContainsFunc(before, func(old agent.Handoff) bool { return old.Agent == a.ID }) {
		return out, httpapi.Invalid("%s.agent_id: the agent is archived", path)
	}
	if in.AgentVersion != nil && *in.AgentVersion != a.Version {
		a, err = h.Store.At(c.Context(), a.Tenant, string(a.ID), *in.AgentVersion)
		if fault.KindOf(err) == fault.NotFound {
			return out, fault.New(fault.NotFound, "%s.agent_version: the agent has no version %d", path, *in.AgentVersion)
		}
		if err != nil {
			return out, err
		}
	}
	d := &a.Definition
	out = agent.Handoff{Agent: a.ID, Version: a.Version, Name: d.Name, Description: d.Description, Depth: d.Depth(), Swarm: d.Hands().Mode == agent.Swarm && len(d.Handoffs) > 0}
	set(&out.Name, in.Name)
	set(&out.Description, in.Description)
	set(&out.Trigger, in.Trigger)
	return out, nil
}

const sharedSandbox, ownSandbox = "shared", "own"

// domain has what is omitted as it is by itself; nil where all of it is.
func (in *AgentMultiagent) domain() *agent.Multiagent {
	if *in == (AgentMultiagent{}) {
		return nil
	}
	mode := ""
	set(&mode, in.Mode)
	out := agent.Defaults(agent.Mode(mode))
	set(&out.MaxDelegations, in.MaxDelegations)
	set(&out.Parallel, in.Parallel)
	set(&out.TimeoutMS, in.TimeoutMS)
	if in.ContextSharing != nil {
		out.Sharing = agent.Sharing(*in.ContextSharing)
	}
	out.OwnSandbox = in.Sandbox != nil && *in.Sandbox == ownSandbox
	return &out
}

func handoffOf(in agent.Handoff) AgentHandoff {
	return AgentHandoff{AgentID: new(string(in.Agent)), AgentVersion: &in.Version, Name: &in.Name, Description: text(in.Description), Trigger: text(in.Trigger)}
}

func multiagentOf(in *agent.Multiagent) *AgentMultiagent {
	if in == nil {
		return nil
	}
	out := &AgentMultiagent{Mode: new(string(in.Mode)), MaxDelegations: &in.MaxDelegations, Parallel: &in.Parallel, ContextSharing: new(string(in.Sharing))}
	if in.TimeoutMS > 0 {
		out.TimeoutMS = &in.TimeoutMS
	}
	switch {
	case in.OwnSandbox:
		out.Sandbox = new(ownSandbox)
	case in.Mode == agent.Orchestrator:
		out.Sandbox = new(sharedSandbox)
	}
	return out
}
