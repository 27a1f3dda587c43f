package conversation

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/agent/handoff"
	"github.com/atoll-run/atoll/internal/agent/mcptool"
	"github.com/atoll-run/atoll/internal/agent/pooltool"
	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
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
func (s *Service) partOf(ctx context.Context, of *session.Session) (*part, error) {
	a, err := s.Agents.At(ctx, of.Tenant, string(of.Agent), of.Version)
	if fault.KindOf(err) == fault.NotFound { // deleted as the session was created
		return nil, fault.New(fault.Conflict, "the agent of the session was deleted: create a session with another agent")
	}
	if err != nil {
		return nil, err
	}
	if of.Speaker == (session.Speaker{}) {
		return first(a), nil
	}
	return s.peer(ctx, a, run.Member{Agent: string(of.Speaker.Agent), Version: of.Speaker.Version})
}

// first is the part of the agent of a session itself.
func first(a *agent.Agent) *part {
	d := &a.Definition
	return &part{agent: a, held: []*agent.Definition{d}, hands: d.Hands(), handoffs: d.Handoffs, chain: []run.Member{memberOf(a, d.Name)}}
}

// peer is the part of one of a swarm, which is the agent of a session and those that it hands on
// to: each of them hands on to all others, and its own handoffs have no effect.
func (s *Service) peer(ctx context.Context, of *agent.Agent, who run.Member) (*part, error) {
	if agent.ID(who.Agent) == of.ID {
		return first(of), nil
	}
	a, err := s.Agents.At(ctx, of.Tenant, who.Agent, who.Version)
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
func (s *Service) worker(ctx context.Context, of tenant.ID, chain []run.Member, to run.Member) (*part, error) {
	p, most := &part{}, 0
	for _, m := range append(append([]run.Member{}, chain...), to) {
		a, err := s.Agents.At(ctx, of, m.Agent, m.Version)
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

// Bounds of a turn.
const (
	minOutputTokens = 16
	maxOutputTokens = 1_000_000
	maxDuration     = 24 * time.Hour
)

// request returns what the agent of a part is asked in a run of a session, without a conversation.
func (s *Service) request(ctx context.Context, caller *tenant.Principal, of *session.Session, p *part, r *run.Run) (*run.Request, error) {
	d := &p.agent.Definition
	rule := ruleOf(caller, p)
	q := &run.Request{
		Agent: string(p.agent.ID), Models: []string{d.Model.Name}, Instructions: d.System, Vaults: of.Vaults, NoWeb: rule.offline(), Parallel: true,
		Temperature: d.Model.Temperature, TopP: d.Model.TopP, Stop: d.Model.Stop, Reasoning: model.Reasoning{Effort: model.Effort(d.Model.Effort)},
		Truncate: true, Compact: compactionOf(d), RetryFor: s.RetryFor,
		Limits: run.Limits{Steps: agent.DefaultSteps, Duration: maxDuration, OutputTokens: d.Model.MaxTokens},
	}
	if d.MaxSteps > 0 {
		q.Limits.Steps = d.MaxSteps
	}
	if d.RetryFor != nil {
		q.RetryFor = new(time.Duration(*d.RetryFor) * time.Millisecond)
	}
	if n := d.Model.MaxTokens; n != 0 && (n < minOutputTokens || n > maxOutputTokens) {
		return nil, invalid("max_output_tokens must be between %d and %d", minOutputTokens, maxOutputTokens)
	}
	if err := s.giveTools(ctx, caller, of, rule, r, q); err != nil {
		return nil, err
	}
	skills, err := s.skills(ctx, of, d)
	if err != nil {
		return nil, err
	}
	skills.Apply(q)
	if !d.Pooled() {
		q.Copies = session.Copies(of.About.Mounts)
	}
	if err := handoff.Give(q, p.hands, p.handoffs, p.chain); err != nil {
		return nil, err
	}
	rule.govern(q)
	return q, nil
}

// giveTools gives a request the tools of an agent, with those of its MCP servers. The agent goes
// without a server that does not answer.
func (s *Service) giveTools(ctx context.Context, caller *tenant.Principal, of *session.Session, r *rule, to *run.Run, q *run.Request) error {
	remotes, err := r.tools(q, s.Web)
	if err != nil {
		return err
	}
	var servers []mcptool.Server
	for i := range remotes {
		if err := s.MCP.Check(outbound.For(ctx, caller.Tenant.ID), remotes[i].path, &remotes[i].Server); err != nil {
			return err
		}
		servers = append(servers, remotes[i].Server)
	}
	servers = append(servers, r.programs(caller, of)...)
	pool, err := s.pool(of, r.own)
	if err != nil {
		return err
	}
	if len(pool) > 0 {
		q.Tools, q.PlaceFiles = append(q.Tools, pool...), true
	}
	if err := q.CheckTools(); err != nil {
		return err
	}
	if caller.May(tenant.ScopeTools) && !q.NoWeb {
		sandboxtool.Tell(q.Tools, s.Services, func(t *run.Tool) bool { return sandboxtool.RunsCode(t) || pooltool.RunsCode(t) })
	}
	if err := s.Gate.CheckModel(ctx, caller.Tenant.ID, q.Models[0]); err != nil {
		return err
	}
	if len(servers) == 0 {
		return nil
	}
	if err := s.MCP.Prepare(ctx, to, q, servers, nil); err != nil {
		return err
	}
	return q.CheckTools()
}

func compactionOf(d *agent.Definition) *run.Compact {
	switch c := d.Compaction; {
	case c == nil:
		return &run.Compact{}
	case c.Off:
		return nil
	default:
		return &run.Compact{At: c.At}
	}
}

// Plan implements handoff.Planner.
func (s *Service) Plan(ctx context.Context, a *handoff.Ask) (*run.Request, error) {
	caller, err := s.Entrant(ctx, a.Run.Tenant, a.Run.Key, a.Run.Environment)
	if err != nil {
		return nil, err
	}
	of, err := s.Store.Get(ctx, a.Run.Tenant, session.ID(a.Run.Session))
	if err != nil {
		return nil, err
	}
	var p *part
	if a.Mode == agent.Swarm {
		var first *agent.Agent
		if first, err = s.Agents.At(ctx, of.Tenant, string(of.Agent), of.Version); err == nil {
			p, err = s.peer(ctx, first, a.To)
		}
	} else {
		p, err = s.worker(ctx, of.Tenant, a.Chain, a.To)
	}
	if fault.KindOf(err) == fault.NotFound {
		return nil, fault.New(fault.Conflict, "the agent %s was deleted", a.To.Name)
	}
	if err != nil {
		return nil, err
	}
	if err := ruleOf(&caller, p).asks(&caller); err != nil {
		return nil, err
	}
	return s.request(ctx, &caller, of, p, a.Run)
}
