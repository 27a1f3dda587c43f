package agents

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Coordinator is how an agent hands work on if a request names only the agents: side by side, and with the
// largest limits.
var Coordinator = agent.Multiagent{
	Mode: agent.Orchestrator, MaxDelegations: agent.MaxDelegations, Parallel: true, Sharing: agent.ShareSummary, TimeoutMS: agent.MaxTimeoutMS,
}

// Coordinate replaces the agents that an agent hands work to, each of them once. An orchestrator keeps how
// it hands on.
func (s *Service) Coordinate(ctx context.Context, t tenant.ID, to *agent.Definition, entries []Handoff) error {
	before := to.Handoffs
	out, err := s.ResolveHandoffs(ctx, t, entries, before)
	if err != nil {
		return err
	}
	names, seen := map[string]int{}, map[agent.ID]int{}
	for i, one := range out {
		path, tool := entries[i].AgentPath, agent.HandoffTool(one.Name, i+1)
		if at, there := seen[one.Agent]; there {
			return invalid("%s is the same agent as %s: name each once", path, entries[at].AgentPath)
		}
		if at, there := names[tool]; there {
			return invalid("%s: its tool would be called %s, as that of %s: give one of them another name", path, tool, entries[at].AgentPath)
		}
		names[tool], seen[one.Agent] = i, i
	}
	if len(before) == 0 || to.Hands().Mode != agent.Orchestrator {
		how := Coordinator
		to.Multiagent = &how
	}
	to.Handoffs = out
	return nil
}
