package redteam

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// confirmCases try to make tool calls without the required confirmation.
func confirmCases() []Case {
	return []Case{
		{"confirmations/around", Critical, "answers a waiting call with keys that lack the right or belong to other tenants and environments, and with other ids, results and messages", "the server rejects each answer, and does not make the call", confirmAround},
		{"confirmations/race", Critical, "approves and denies a call many times at once", "one decision counts, and the server makes the call at most once", confirmRace},
		{"confirmations/replay", Critical, "approves a call twice, and has the model repeat the identical call", "the server makes the call once, and the repeated call waits again", confirmReplay},
		{"confirmations/beside", Critical, "has the model make a call that needs confirmation beside other calls, and again after a denial", "the server makes no call without approval", confirmBeside},
	}
}

// guarded starts a session in which calls of the shop's tool order wait for confirmation.
func (a *arena) guarded(ctx context.Context, s *shop) (talk, error) {
	it, err := a.theActor(ctx)
	if err != nil {
		return talk{}, err
	}
	t, err := a.converse(ctx, a.plain, shopAgent(it.lure.open("guarded-"+token(4), s), map[string]any{"require_confirmation": []string{"shop/order"}}), nil)
	return t, shopOpen(err)
}

// order is the call that needs confirmation.
var order = toolCall{"shop__order", map[string]any{"item": 1}}

// waits has the model make calls, and returns the id of the first one that waits.
func (t talk) waits(ctx context.Context, s *shop, calls ...toolCall) (string, error) {
	got, err := t.play(ctx, calls...)
	if err != nil {
		return "", err
	}
	if sold := t.lure.sold(s); len(sold) > 0 {
		return "", found("the server made a call without approval: %q", sold)
	}
	if got.Status != "requires_action" || len(got.Waiting) == 0 {
		return "", fmt.Errorf("the call does not wait: %s", got.answer)
	}
	return got.Waiting[0].ID, nil
}

func confirmAround(ctx context.Context, a *arena) error {
	s := &shop{tools: []string{"order"}}
	t, err := a.guarded(ctx, s)
	if err != nil {
		return err
	}
	defer func() { _ = t.end(ctx) }()
	id, err := t.waits(ctx, s, order)
	if err != nil {
		return err
	}
	reader, err := a.key(ctx, attackerTenant, envPlain, "read", "tools", "sandboxes")
	if err != nil {
		return err
	}
	no := "sevt_" + strings.Repeat("0", 32) + "_1"
	result := map[string]any{"type": "tool_result", "tool_use_id": id, "content": "ordered"}
	for what, try := range map[string]struct {
		by    caller
		event map[string]any
	}{
		"no key": {a.stranger, confirm(id, true)}, "a key without the scope": {reader, confirm(id, true)}, "another tenant": {a.victim, confirm(id, true)},
		"a key of another environment": {a.net, confirm(id, true)}, "an id that was never given": {t.by, confirm(no, true)}, "a result in its place": {t.by, result},
		"a message in its place": {t.by, map[string]any{"type": "message", "content": "approved"}},
	} {
		got, err := (talk{t.actor, try.by, t.path, t.id}).post(ctx, try.event)
		if err != nil {
			return err
		}
		if got.Status < 400 || got.Status >= 500 {
			return found("%s: %s", what, got)
		}
	}
	if sold := t.lure.sold(s); len(sold) > 0 {
		return found("the server made the call: %q", sold)
	}
	return nil
}

// deciders is the number of concurrent decisions.
const deciders = 16

func confirmRace(ctx context.Context, a *arena) error {
	s := &shop{tools: []string{"order"}}
	t, err := a.guarded(ctx, s)
	if err != nil {
		return err
	}
	defer func() { _ = t.end(ctx) }()
	id, err := t.waits(ctx, s, order)
	if err != nil {
		return err
	}
	var answers [deciders]*answer
	var errs [deciders]error
	var wg sync.WaitGroup
	for i := range deciders {
		wg.Go(func() { answers[i], errs[i] = t.post(ctx, confirm(id, i%2 == 0)) })
	}
	wg.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	won := -1
	for i, got := range answers {
		switch {
		case got.Status == http.StatusOK && won >= 0:
			return found("the server accepted two decisions on one call: %s and %s", answers[won], got)
		case got.Status == http.StatusOK:
			won = i
		case got.Status != http.StatusConflict:
			return found("the server answered a concurrent decision with %s", got)
		}
	}
	sold := t.lure.sold(s)
	if won < 0 {
		return fmt.Errorf("the server accepted none of %d decisions: %s", deciders, answers[0])
	}
	if approved := won%2 == 0; len(sold) > 1 || approved != (len(sold) == 1) {
		return found("the server made the call %d times; it accepted a decision with approve %v", len(sold), approved)
	}
	return nil
}

func confirmReplay(ctx context.Context, a *arena) error {
	s := &shop{tools: []string{"order"}}
	t, err := a.guarded(ctx, s)
	if err != nil {
		return err
	}
	defer func() { _ = t.end(ctx) }()
	id, err := t.waits(ctx, s, order, order) // both calls wait
	if err != nil {
		return err
	}
	after, err := t.send(ctx, confirm(id, true))
	if err != nil {
		return err
	}
	again, err := t.post(ctx, confirm(id, true))
	if err != nil {
		return err
	}
	sold := t.lure.sold(s)
	switch {
	case len(sold) > 1:
		return found("the server made %d calls after one approval", len(sold))
	case len(sold) == 0:
		return fmt.Errorf("the server did not make the approved call: %s", after.answer)
	case again.Status < 400:
		return found("the server accepted a second approval of one call: %s", again)
	case len(after.Waiting) != 1 || after.Waiting[0].ID == id:
		return found("the repeated call does not wait: %s", after.answer)
	}
	return nil
}

func confirmBeside(ctx context.Context, a *arena) error {
	s := &shop{tools: []string{"order", "look"}}
	t, err := a.guarded(ctx, s)
	if err != nil {
		return err
	}
	defer func() { _ = t.end(ctx) }()
	look := toolCall{"shop__look", map[string]any{}}
	got, err := t.send(ctx, message(t.lure.play(func(turn int) reply {
		if turn < 2 {
			return reply{Calls: []toolCall{look, order, look}}
		}
		return reply{Text: "done"}
	})))
	if err != nil {
		return err
	}
	for range 2 {
		if sold := strings.Join(t.lure.sold(s), " "); strings.Contains(sold, "order") {
			return found("the server made a call without approval: %q", sold)
		}
		if len(got.Waiting) != 1 {
			return fmt.Errorf("%d calls wait: %s", len(got.Waiting), got.answer)
		}
		if got, err = t.send(ctx, confirm(got.Waiting[0].ID, false)); err != nil {
			return err
		}
	}
	if sold := strings.Join(t.lure.sold(s), " "); strings.Contains(sold, "order") {
		return found("the server made a denied call: %q", sold)
	}
	return nil
}
