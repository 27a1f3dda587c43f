package agents

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Handoff names an agent that another agent may hand work to. Omitted fields are nil.
type Handoff struct {
	Agent   string // id or slug
	Version *int   // nil for the current version
	// AgentPath and VersionPath are the paths of Agent and Version in the request, for faults.
	AgentPath, VersionPath string
	// Keep takes an omitted Name, Description and Trigger from the entry for the same agent before the
	// change, if there is one, and otherwise from the agent.
	Keep                       bool
	Name, Description, Trigger *string
}

// ResolveHandoffs resolves the agents that an agent may hand work to, which had the entries before.
func (s *Service) ResolveHandoffs(ctx context.Context, t tenant.ID, in []Handoff, before []agent.Handoff) (out []agent.Handoff, err error) {
	if len(in) > agent.MaxHandoffs {
		return nil, invalid("handoffs must have at most %d entries", agent.MaxHandoffs)
	}
	for i := range in {
		one, err := s.resolveHandoff(ctx, t, &in[i], before)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

func (s *Service) resolveHandoff(ctx context.Context, t tenant.ID, in *Handoff, before []agent.Handoff) (out agent.Handoff, err error) {
	a, err := s.Find(ctx, t, in.Agent)
	if fault.KindOf(err) == fault.NotFound {
		return out, fault.New(fault.NotFound, "%s: agent %.80q not found", in.AgentPath, in.Agent)
	}
	if err != nil {
		return out, err
	}
	old := -1 // the last entry, because an orchestrator may list an agent twice
	for i := range before {
		if before[i].Agent == a.ID {
			old = i
		}
	}
	if a.Archived() && old < 0 {
		return out, invalid("%s: the agent is archived", in.AgentPath)
	}
	if in.Version != nil && *in.Version != a.Version {
		a, err = s.Store.At(ctx, t, string(a.ID), *in.Version)
		if fault.KindOf(err) == fault.NotFound {
			return out, fault.New(fault.NotFound, "%s: the agent has no version %d", in.VersionPath, *in.Version)
		}
		if err != nil {
			return out, err
		}
	}
	d := &a.Definition
	out = agent.Handoff{Agent: a.ID, Version: a.Version, Name: d.Name, Description: d.Description, Depth: d.Depth(), Swarm: d.Hands().Mode == agent.Swarm && len(d.Handoffs) > 0}
	if in.Keep && old >= 0 {
		out.Name, out.Description, out.Trigger = before[old].Name, before[old].Description, before[old].Trigger
	}
	for _, f := range []struct{ from, to *string }{{in.Name, &out.Name}, {in.Description, &out.Description}, {in.Trigger, &out.Trigger}} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	return out, nil
}
