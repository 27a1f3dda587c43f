package redteam

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// budgetCases try to spend more than a budget allows.
func budgetCases() []Case {
	return []Case{
		{"budgets/session", High, "has a model call tools endlessly in a session with a token budget, and sends messages after the budget is used up", "the server calls the model at most once above the budget, and rejects later messages", budgetSession},
		{"budgets/session-cost", High, "has a model call tools endlessly in a session with a cost budget, and sends messages after the budget is used up", "the server calls the model at most once above the budget, and rejects later messages", budgetSessionCost},
		{"budgets/lowered", Medium, "lowers, removes and raises a session's budget, also with keys that lack the right", "the server rejects each change, or keeps the budget in force", budgetChanged},
		{"budgets/response", High, "has a model call tools endlessly in a response with max_total_tokens and max_cost", "the server calls the model at most once above the limit", budgetResponse},
		{"budgets/tenant", Critical, "spends the rest of its tenant's budget in concurrent responses, and asks for more", "the server calls the model at most once for each response, and rejects later ones", budgetTenant},
	}
}

// spends returns a provider's usage with these token counts.
func spends(input, output int) map[string]any {
	return map[string]any{"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output}
}

// endless returns a script that always calls a tool and always reports the same usage. The
// arguments differ, because a repeated call that fails ends a turn.
func endless(usage any) func(int) reply {
	return func(turn int) reply {
		return reply{Calls: []toolCall{{"read_file", map[string]any{"file_path": fmt.Sprintf("none-%d", turn)}}}, Usage: usage}
	}
}

func budgetSession(ctx context.Context, a *arena) error {
	return a.bounded(ctx, map[string]any{"tokens": 1000}, spends(300, 100), 4)
}

func budgetSessionCost(ctx context.Context, a *arena) error {
	return a.bounded(ctx, map[string]any{"cost_usd": 0.01}, spends(1000, 300), 4) // each answer costs $0.004
}

// bounded checks that the server stops a session with a budget: it calls the model at most "most"
// times, and rejects later messages.
func (a *arena) bounded(ctx context.Context, budget map[string]any, usage any, most int) error {
	t, err := a.converse(ctx, a.plain, map[string]any{"tools": []any{map[string]any{"type": "sandbox"}}, "max_steps": 20}, map[string]any{"budget": budget})
	if err != nil {
		return err
	}
	defer func() { _ = t.end(ctx) }()
	s := t.lure.play(endless(usage))
	got, err := t.send(ctx, message(s))
	if err != nil {
		return err
	}
	asked := len(t.lure.prompts(s))
	if asked > most {
		return found("the server called the model %d times within a budget of %v; each answer used %v", asked, budget, usage)
	}
	if asked < 2 {
		return fmt.Errorf("the server called the model only %d times: %s", asked, got.answer)
	}
	for range 3 {
		later, err := t.by.once(ctx, http.MethodPost, t.path+"/events", message(s))
		if err != nil {
			return err
		}
		if later.Status != http.StatusTooManyRequests || len(t.lure.prompts(s)) > asked {
			return found("the server accepted a message after the budget was used up: %s", later)
		}
	}
	return nil
}

func budgetChanged(ctx context.Context, a *arena) error {
	t, err := a.converse(ctx, a.plain, nil, map[string]any{"budget": map[string]any{"tokens": 1000}})
	if err != nil {
		return err
	}
	defer func() { _ = t.end(ctx) }()
	reader, err := a.key(ctx, attackerTenant, envPlain, "read")
	if err != nil {
		return err
	}
	for what, try := range map[string]struct {
		by   caller
		body string
	}{
		"lowered": {t.by, `{"budget":{"tokens":10}}`}, "negative": {t.by, `{"budget":{"tokens":-1}}`}, "huge": {t.by, `{"budget":{"tokens":1e400}}`},
		"raised by a key that reads": {reader, `{"budget":{"tokens":100000}}`}, "raised by another tenant": {a.victim, `{"budget":{"tokens":100000}}`},
		"removed": {t.by, `{"budget":null}`}, "emptied": {t.by, `{"budget":{}}`}, "without a key": {a.stranger, `{"budget":{"tokens":100000}}`},
	} {
		got, err := try.by.do(ctx, http.MethodPatch, t.path, []byte(try.body), "Content-Type", "application/json")
		if err != nil {
			return err
		}
		var now struct{ Budget *struct{ Tokens int64 } }
		if err := t.by.must(ctx, http.MethodGet, t.path, nil, &now); err != nil {
			return err
		}
		if got.Status >= 500 || now.Budget == nil || now.Budget.Tokens != 1000 {
			return found("a budget that is %s: the server answered %s, and the budget is now %+v", what, got, now.Budget)
		}
	}
	return nil
}

// respond creates a response that plays a script.
func (it actor) respond(ctx context.Context, by caller, s *script, more map[string]any) (*answer, error) {
	body := map[string]any{"model": it.model, "input": s.id, "tools": []any{map[string]any{"type": "sandbox"}}}
	for k, v := range more {
		body[k] = v
	}
	return by.once(ctx, http.MethodPost, "/v1/responses", body)
}

func budgetResponse(ctx context.Context, a *arena) error {
	it, err := a.theActor(ctx)
	if err != nil {
		return err
	}
	for bound, value := range map[string]any{"max_total_tokens": 1000, "max_cost": 0.003} {
		s := it.lure.play(endless(spends(300, 100))) // each answer costs $0.0013
		got, err := it.respond(ctx, a.plain, s, map[string]any{bound: value, "max_steps": 20})
		if err != nil {
			return err
		}
		asked := len(it.lure.prompts(s))
		if asked > 4 {
			return found("the server called the model %d times with a %s of %v", asked, bound, value)
		}
		if asked < 2 {
			return fmt.Errorf("the server called the model only %d times: %s", asked, got)
		}
	}
	return nil
}

// spenders is the number of responses that spend a budget concurrently.
const spenders = 4

// budgetTenant lowers the victim's budget, so it holds a.spend to delay the victim's other responses.
func budgetTenant(ctx context.Context, a *arena) (err error) {
	it, err := a.theActor(ctx)
	if err != nil {
		return err
	}
	a.spend.Lock()
	defer a.spend.Unlock()
	var usage struct{ Month struct{ Cost float64 } }
	if err := a.victim.must(ctx, http.MethodGet, "/v1/usage", nil, &usage); err != nil {
		return err
	}
	at := "/v1/admin/tenants/" + victimTenant
	if err := a.admin.must(ctx, http.MethodPatch, at, map[string]any{"monthly_cost": usage.Month.Cost + 0.001}, nil); err != nil {
		return err
	}
	defer func() {
		if restored := a.admin.must(context.WithoutCancel(ctx), http.MethodPatch, at, map[string]any{"monthly_cost": 0}, nil); err == nil {
			err = restored
		}
	}()
	scripts, answers, errs := [spenders]*script{}, [spenders]*answer{}, [spenders]error{}
	var wg sync.WaitGroup
	for i := range spenders {
		scripts[i] = it.lure.play(endless(spends(1000, 1000)))
		wg.Go(func() {
			answers[i], errs[i] = it.respond(ctx, a.victim, scripts[i], map[string]any{"max_steps": 10})
		})
	}
	wg.Wait()
	asked := 0
	for i := range spenders {
		if errs[i] != nil {
			return errs[i]
		}
		n := len(it.lure.prompts(scripts[i]))
		if n > 1 {
			return found("the server called the model %d times for one response after the budget was used up: %s", n, answers[i])
		}
		asked += n
	}
	if asked == 0 {
		return fmt.Errorf("the model answered no response: %s", answers[0])
	}
	later := it.lure.play(endless(spends(1000, 1000)))
	got, err := it.respond(ctx, a.victim, later, nil)
	if err != nil {
		return err
	}
	if got.Status != http.StatusTooManyRequests || len(it.lure.prompts(later)) > 0 {
		return found("the server accepted a response after the budget was used up: %s", got)
	}
	return nil
}

// costCases have a provider report wrong token counts.
func costCases() []Case {
	never := "the token counts and costs of the turn, session and ledger never fall and are never negative"
	return []Case{
		{"tokencosts/negative", High, "has a provider report negative token counts", never, billed(map[string]any{"prompt_tokens": -1_000_000, "completion_tokens": -1_000_000, "total_tokens": -2_000_000})},
		{"tokencosts/absurd", High, "has a provider report token counts that overflow, are fractions or have the wrong type", never, absurdCounts},
		{"tokencosts/cached", High, "has a provider report more cached tokens than tokens in total", never, billed(map[string]any{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, "prompt_tokens_details": map[string]any{"cached_tokens": 9_000_000}})},
		{"tokencosts/none", High, "has a provider report no token counts", "the server estimates the tokens and charges for them", billed(noUsage{})},
		{"tokencosts/cut", High, "has a provider break off each answer before it reports token counts", "the server estimates the tokens that it received and charges for them", billedCut},
	}
}

// bill runs a turn of one answer, and checks that the server charges for it.
func (a *arena) bill(ctx context.Context, answer reply) error {
	t, err := a.converse(ctx, a.plain, map[string]any{"retry_for_ms": 0}, nil)
	if err != nil {
		return err
	}
	defer func() { _ = t.end(ctx) }()
	var before, after struct{ Month struct{ Cost float64 } }
	if err := t.by.must(ctx, http.MethodGet, "/v1/usage", nil, &before); err != nil {
		return err
	}
	answer.Text = strings.Repeat("the words of one answer ", 40)
	got, err := t.post(ctx, message(t.lure.play(func(int) reply { return answer })))
	if err != nil {
		return err
	}
	if got.Status >= 500 {
		return found("the server answered the turn with %s", got)
	}
	var of struct{ Usage turnUsage }
	var raw json.RawMessage
	if err := t.by.must(ctx, http.MethodGet, t.path, nil, &raw); err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &of); err != nil {
		return found("the session's usage cannot be read: %s", raw)
	}
	if err := t.by.must(ctx, http.MethodGet, "/v1/usage", nil, &after); err != nil {
		return err
	}
	if u := of.Usage; u.Input <= 0 || u.Output <= 0 || u.Cost <= 0 {
		return found("the server charges an answer with the usage %v as %+v", answer.Usage, u)
	}
	if after.Month.Cost < before.Month.Cost {
		return found("the ledger fell from %v to %v", before.Month.Cost, after.Month.Cost)
	}
	return nil
}

func billed(usage any) func(context.Context, *arena) error {
	return func(ctx context.Context, a *arena) error { return a.bill(ctx, reply{Usage: usage}) }
}

func billedCut(ctx context.Context, a *arena) error { return a.bill(ctx, reply{Cut: true}) }

func absurdCounts(ctx context.Context, a *arena) error {
	for _, n := range []any{json.Number("1e30"), json.Number("9223372036854775807"), 0.5, "1000", []any{}} {
		if err := a.bill(ctx, reply{Usage: map[string]any{"prompt_tokens": n, "completion_tokens": n, "total_tokens": n}}); err != nil {
			return err
		}
	}
	return nil
}
