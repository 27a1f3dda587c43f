package redteam

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

// handoffCases have an agent get by another one what it may not do itself.
func handoffCases() []Case {
	return []Case{
		{"handoffs/foreign", Critical, "hands on to the victim's agent, by its id and as a template", "it does not exist for the attacker", handoffForeign},
		{"handoffs/policy", Critical, "has an agent without a policy make the calls that the one which handed on may not make", "no call is made", handoffPolicy},
		{"handoffs/bounds", High, "hands on again and again, in one answer and one after the other", "no more agents begin than max_delegations says", handoffBounds},
		{"handoffs/confirmation", Critical, "has another agent make a call that waits for confirmation in the one which handed on", "the call waits", handoffConfirm},
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
	if err := alike("an agent that hands on to the victim's", real, unknown, theirs, none); err != nil {
		return err
	}
	if real.Status != http.StatusNotFound {
		return found("an agent that hands on to the victim's: %s", real)
	}
	return nil
}

// handing begins a session whose agent hands on to another one, which has the shop and no policy.
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

// handTo is a call that hands a script on.
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
		return found("an agent below made the call that is denied above: %q", sold)
	}
	prompts := t.lure.prompts(below)
	if len(prompts) <= len(calls) {
		return fmt.Errorf("the agent below was asked %d times", len(prompts))
	}
	for _, r := range resultsIn(prompts[len(prompts)-1]) {
		if strings.Contains(r, programMark) {
			return found("an agent below ran a program where that is denied above: %.300q", r)
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
		return found("%d agents began where the agent allows %d", begun, most)
	case begun == 0:
		return fmt.Errorf("nothing was handed on: %s", got.answer)
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
