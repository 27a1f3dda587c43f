package redteam

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// confirmCases go around the confirmation that a call of a tool waits for.
func confirmCases() []Case {
	return []Case{
		{"confirmations/around", Critical, "answers a call that waits by keys without the right, of other tenants and environments, with other ids, results and messages", "each is refused, and the call is not made", confirmAround},
		{"confirmations/race", Critical, "approves and denies a call at once, many times", "one decision counts, and the call is made at most once", confirmRace},
		{"confirmations/replay", Critical, "approves a call twice, and has the model repeat it to the letter", "it is made once, and the repeated call waits again", confirmReplay},
		{"confirmations/beside", Critical, "has the model make a call that waits beside others in one answer, and again after it was denied", "no call is made that was not approved", confirmBeside},
	}
}

// guarded begins a session whose calls of the shop's tool order wait for confirmation.
func (a *arena) guarded(ctx context.Context, s *shop) (talk, error) {
	it, err := a.theActor(ctx)
	if err != nil {
		return talk{}, err
	}
	t, err := a.converse(ctx, a.plain, shopAgent(it.lure.open("guarded-"+token(4), s), map[string]any{"require_confirmation": []string{"shop/order"}}), nil)
	return t, shopOpen(err)
}

// order is the call that waits.
var order = toolCall{"shop__order", map[string]any{"item": 1}}

// waits has the model make the call, and returns its id.
func (t talk) waits(ctx context.Context, s *shop, calls ...toolCall) (string, error) {
	got, err := t.play(ctx, calls...)
	if err != nil {
		return "", err
	}
	if sold := t.lure.sold(s); len(sold) > 0 {
		return "", found("a call was made that nobody had approved: %q", sold)
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
		return found("the call was made: %q", sold)
	}
	return nil
}

// deciders is how many decide at once.
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
			return found("two decisions over one call were taken: %s and %s", answers[won], got)
		case got.Status == http.StatusOK:
			won = i
		case got.Status != http.StatusConflict:
			return found("a decision beside another one: %s", got)
		}
	}
	sold := t.lure.sold(s)
	if won < 0 {
		return fmt.Errorf("none of %d decisions was taken: %s", deciders, answers[0])
	}
	if approved := won%2 == 0; len(sold) > 1 || approved != (len(sold) == 1) {
		return found("the call was made %d times where the decision that was taken approves: %v", len(sold), approved)
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
	id, err := t.waits(ctx, s, order, order) // of which the second one waits, too
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
		return found("one approval made %d calls", len(sold))
	case len(sold) == 0:
		return fmt.Errorf("the approved call was not made: %s", after.answer)
	case again.Status < 400:
		return found("a second approval of one call is answered with %s", again)
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
			return found("a call was made that nobody had approved: %q", sold)
		}
		if len(got.Waiting) != 1 {
			return fmt.Errorf("%d calls wait: %s", len(got.Waiting), got.answer)
		}
		if got, err = t.send(ctx, confirm(got.Waiting[0].ID, false)); err != nil {
			return err
		}
	}
	if sold := strings.Join(t.lure.sold(s), " "); strings.Contains(sold, "order") {
		return found("a call was made that was denied: %q", sold)
	}
	return nil
}
