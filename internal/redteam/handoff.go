package redteam

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

// handoffCases have one agent do through another what its own policy denies.
func handoffCases() []Case {
	return []Case{
		{"handoffs/foreign", Critical, "hands off to the victim's agent, by its id and as a template", "the attacker gets the same 404 as for an unknown agent", handoffForeign},
		{"handoffs/policy", Critical, "has an agent without a policy make calls that the delegating agent's policy denies", "the server makes no call", handoffPolicy},
		{"handoffs/bounds", High, "hands off repeatedly, in one answer and in consecutive answers", "the server starts at most max_delegations agents", handoffBounds},
		{"handoffs/confirmation", Critical, "has another agent make a call that needs confirmation in the delegating agent", "the call waits", handoffConfirm},
	}
}

func handoffForeign(ctx context.Context, a *arena) error {
	it, err := a.theActor(ctx)
	if err != nil {
		return err
	}
	theirs, err := a.agent(ctx, a.victim, it, map[string]any{"name": "Prey", "system": preyText})
	if err != nil {
		return err
	}
	ask := func(id string) (*answer, error) {
		return a.plain.do(ctx, http.MethodPost, "/v1/agents", map[string]any{"name": "Thief", "model": map[string]any{"name": it.model}, "handoffs": []any{map[string]any{"agent_id": id}}})
	}
	none := never(theirs)
	real, err := ask(theirs)
	if err != nil {
		return err
	}
	unknown, err := ask(none)
	if err != nil {
		return err
	}
	if err := alike("an agent that hands off to the victim's", real, unknown, theirs, none); err != nil {
		return err
	}
	if real.Status != http.StatusNotFound {
		return found("an agent that hands off to the victim's: %s", real)
	}
	return nil
}

// handing starts a session whose agent hands off to an agent with the shop and without a policy.
func (a *arena) handing(ctx context.Context, s *shop, policy, more map[string]any) (talk, error) {
	it, err := a.theActor(ctx)
	if err != nil {
		return talk{}, err
	}
	url := it.lure.open("handing-"+token(4), s)
	below := shopAgent(url, map[string]any{})
	below["name"] = "Below"
	id, err := a.agent(ctx, a.plain, it, below)
	if err != nil {
		return talk{}, shopOpen(err)
	}
	above := shopAgent(url, policy)
	above["handoffs"] = []any{map[string]any{"agent_id": id, "name": "Below"}}
	multi := map[string]any{"mode": "orchestrator", "context_sharing": "full", "timeout_per_handoff_ms": 30_000}
	for k, v := range more {
		multi[k] = v
	}
	above["multiagent"] = multi
	return a.converse(ctx, a.plain, above, nil)
}

// handTo returns a call that hands a script off to the agent below.
func handTo(s *script) toolCall { return toolCall{"handoff_to_below", map[string]any{"task": s.id}} }

func handoffPolicy(ctx context.Context, a *arena) error {
	s := &shop{tools: []string{"order", "refund"}}
	t, err := a.handing(ctx, s, map[string]any{"deny_list": []string{"code", "shop/refund"}}, nil)
	if err != nil {
		return err
	}
	defer func() { _ = t.end(ctx) }()
	calls := append(codeCalls(), toolCall{"shop__refund", map[string]any{}}, toolCall{"refund", map[string]any{}})
	below := t.lure.play(steps(calls...))
	if _, err := t.play(ctx, handTo(below)); err != nil {
		return err
	}
	if sold := t.lure.sold(s); len(sold) > 0 {
		return found("the agent below made a call that the agent above denies: %q", sold)
	}
	prompts := t.lure.prompts(below)
	if len(prompts) <= len(calls) {
		return fmt.Errorf("the server called the model of the agent below only %d times", len(prompts))
	}
	for _, r := range resultsIn(prompts[len(prompts)-1]) {
		if strings.Contains(r, programMark) {
			return found("the agent below ran a program, which the agent above denies: %.300q", r)
		}
	}
	return nil
}

func handoffBounds(ctx context.Context, a *arena) error {
	const most = 2
	s := &shop{}
	t, err := a.handing(ctx, s, map[string]any{}, map[string]any{"max_delegations": most, "parallel": true})
	if err != nil {
		return err
	}
	defer func() { _ = t.end(ctx) }()
	below := t.lure.play(steps())
	got, err := t.send(ctx, message(t.lure.play(func(turn int) reply {
		if turn < 3 {
			return reply{Calls: []toolCall{handTo(below), handTo(below), handTo(below)}}
		}
		return reply{Text: "done"}
	})))
	if err != nil {
		return err
	}
	switch begun := len(t.lure.prompts(below)); {
	case begun > most:
		return found("the server started %d agents, but the agent allows %d", begun, most)
	case begun == 0:
		return fmt.Errorf("the server started no agent: %s", got.answer)
	}
	return nil
}

func handoffConfirm(ctx context.Context, a *arena) error {
	s := &shop{tools: []string{"order"}}
	t, err := a.handing(ctx, s, map[string]any{"require_confirmation": []string{"shop/order"}}, nil)
	if err != nil {
		return err
	}
	defer func() { _ = t.end(ctx) }()
	_, err = t.waits(ctx, s, handTo(t.lure.play(steps(order))))
	return err
}
