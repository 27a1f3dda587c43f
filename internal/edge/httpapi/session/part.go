package session

import (
	"context"
	"errors"
	"time"

	"github.com/atoll-run/atoll/internal/agent/handoff"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/edge/httpapi/response"
)

// part is the part that an agent has in a turn.
type part struct {
	agent    *agent.Agent
	held     []*agent.Definition // of the agents whose policies it is held to, its own last
	hands    agent.Multiagent
	handoffs []agent.Handoff
	chain    []run.Member // the agents that the turn came by, itself last
}

func memberOf(a *agent.Agent, name string) run.Member {
	return run.Member{Agent: string(a.ID), Version: a.Version, Name: name}
}

// partOf is the part of the agent that speaks in a session.
func (h *Handlers) partOf(ctx context.Context, s *session.Session) (*part, error) {
	a, err := h.Agents.At(ctx, s.Tenant, string(s.Agent), s.Version)
	if fault.KindOf(err) == fault.NotFound { // deleted as the session was created
		return nil, fault.New(fault.Conflict, "the agent of the session was deleted: create a session with another agent")
	}
	if err != nil {
		return nil, err
	}
	if s.Speaker == (session.Speaker{}) {
		return first(a), nil
	}
	return h.peer(ctx, a, run.Member{Agent: string(s.Speaker.Agent), Version: s.Speaker.Version})
}

// first is the part of the agent of a session itself.
func first(a *agent.Agent) *part {
	d := &a.Definition
	return &part{agent: a, held: []*agent.Definition{d}, hands: d.Hands(), handoffs: d.Handoffs, chain: []run.Member{memberOf(a, d.Name)}}
}

// peer is the part of one of a swarm, which is the agent of a session and those that it hands on
// to: each of them hands on to all others, and its own handoffs have no effect.
func (h *Handlers) peer(ctx context.Context, of *agent.Agent, who run.Member) (*part, error) {
	if agent.ID(who.Agent) == of.ID {
		return first(of), nil
	}
	a, err := h.Agents.At(ctx, of.Tenant, who.Agent, who.Version)
	if err != nil {
		return nil, err
	}
	d := &of.Definition
	p := &part{agent: a, held: []*agent.Definition{d, &a.Definition}, hands: d.Hands(), chain: []run.Member{memberOf(of, d.Name)}}
	for _, one := range d.Handoffs {
		if one.Agent == a.ID {
			one = agent.Handoff{Agent: of.ID, Version: of.Version, Name: d.Name, Description: d.Description}
		}
		p.handoffs = append(p.handoffs, one)
	}
	return p, nil
}

// worker is the part of an agent that work was handed to by a chain of others. How many hand-offs
// there are in a turn is for the first of them to say.
func (h *Handlers) worker(ctx context.Context, of tenant.ID, chain []run.Member, to run.Member) (*part, error) {
	p, most := &part{}, 0
	for _, m := range append(append([]run.Member{}, chain...), to) {
		a, err := h.Agents.At(ctx, of, m.Agent, m.Version)
		if err != nil {
			return nil, err
		}
		if most == 0 {
			most = a.Definition.Hands().MaxDelegations
		}
		p.agent, p.held, p.chain = a, append(p.held, &a.Definition), append(p.chain, m)
	}
	d := &p.agent.Definition
	if p.hands = d.Hands(); p.hands.Mode == agent.Orchestrator {
		p.hands.MaxDelegations, p.handoffs = most, d.Handoffs
	}
	return p, nil
}

// ruleOf is the rule for the tools of an agent, in the caller's environment.
func ruleOf(caller *tenant.Principal, p *part) *rule {
	return &rule{held: p.held, own: &p.agent.Definition, online: !caller.Environment.Permissions.Network.Blocked()}
}

// part is what an agent is asked for its part in a turn of a session.
func (h *Handlers) part(ctx context.Context, caller *tenant.Principal, s *session.Session, p *part) (*response.Turn, error) {
	d := &p.agent.Definition
	r := ruleOf(caller, p)
	if err := r.asks(caller); err != nil {
		return nil, err
	}
	q, err := r.request()
	if err != nil {
		return nil, err
	}
	pool, err := h.pool(s, d)
	if err != nil {
		return nil, err
	}
	skills, err := h.skills(ctx, s, d)
	if err != nil {
		return nil, err
	}
	var copies []execution.FileRef
	if !d.Pooled() {
		copies = session.Copies(s.About.Mounts)
	}
	return &response.Turn{
		Agent: string(p.agent.ID), In: q, Tools: pool, Servers: r.programs(caller, s), Vaults: s.Vaults, NoWeb: r.offline(), Stop: d.Model.Stop, RetryFor: retryFor(d), Compact: compactOf(d), Govern: func(q *run.Request) error {
			skills.Apply(q)
			q.Copies = copies
			if err := handoff.Give(q, p.hands, p.handoffs, p.chain); err != nil {
				return err
			}
			r.govern(q)
			return nil
		},
	}, nil
}

func compactOf(d *agent.Definition) *run.Compact {
	switch c := d.Compaction; {
	case c == nil:
		return &run.Compact{}
	case c.Off:
		return nil
	default:
		return &run.Compact{At: c.At}
	}
}

func retryFor(d *agent.Definition) *time.Duration {
	if d.RetryFor == nil {
		return nil
	}
	return new(time.Duration(*d.RetryFor) * time.Millisecond)
}

// Compose implements handoff.Composer.
func (h *Handlers) Compose(ctx context.Context, a *handoff.Ask) (*run.Request, error) {
	caller, err := h.Entrant(ctx, a.Run.Tenant, a.Run.Key, a.Run.Environment)
	if err != nil {
		return nil, err
	}
	s, err := h.Store.Get(ctx, a.Run.Tenant, session.ID(a.Run.Session))
	if err != nil {
		return nil, err
	}
	var p *part
	if a.Mode == agent.Swarm {
		var of *agent.Agent
		if of, err = h.Agents.At(ctx, s.Tenant, string(s.Agent), s.Version); err == nil {
			p, err = h.peer(ctx, of, a.To)
		}
	} else {
		p, err = h.worker(ctx, s.Tenant, a.Chain, a.To)
	}
	if fault.KindOf(err) == fault.NotFound {
		return nil, fault.New(fault.Conflict, "the agent %s is not there any more", a.To.Name)
	}
	if err != nil {
		return nil, err
	}
	t, err := h.part(ctx, &caller, s, p)
	if err != nil {
		return nil, err
	}
	q, err := h.Turns.Part(ctx, &caller, a.Run.ID, t)
	if refused, ok := errors.AsType[*httpapi.ProtocolError](err); ok {
		return nil, fault.New(fault.Conflict, "%s", refused.Error())
	}
	return q, err
}

// Speak has a queued turn asked of the agent that speaks by now.
func (h *Handlers) Speak(ctx context.Context, q *session.Queued) error {
	to := run.Member{Agent: string(q.Now.Agent), Version: q.Now.Version}
	asked, err := h.Compose(ctx, &handoff.Ask{Run: &q.Run, To: to, Mode: agent.Swarm})
	if err == nil {
		(&run.Move{To: to, Request: asked}).Onto(&q.Request)
	}
	return err
}
