package agent

import (
	"fmt"

	"github.com/atoll-run/atoll/internal/agent/agents"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

func handoffsIn(in []AgentHandoff) []agents.Handoff {
	out := make([]agents.Handoff, len(in))
	for i, h := range in {
		path := fmt.Sprintf("handoffs[%d]", i)
		out[i] = agents.Handoff{Agent: *h.AgentID, Version: h.AgentVersion, AgentPath: path + ".agent_id", VersionPath: path + ".agent_version", Name: h.Name, Description: h.Description, Trigger: h.Trigger}
	}
	return out
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
	return AgentHandoff{AgentID: new(string(in.Agent)), AgentVersion: &in.Version, Name: &in.Name, Description: httpapi.OrNull(in.Description), Trigger: httpapi.OrNull(in.Trigger)}
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
