package loop

import (
	"context"
	"iter"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
	"github.com/atoll-run/atoll/test/atolltest"
)

// gated is a model that counts its requests and answers once the gate opens.
type gated struct {
	gate  chan struct{}
	mu    sync.Mutex
	asked int // guarded by mu
}

func (g *gated) Generate(ctx context.Context, _ model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		g.mu.Lock()
		g.asked++
		g.mu.Unlock()
		select {
		case <-g.gate:
		case <-ctx.Done():
			yield(model.Delta{}, context.Cause(ctx))
			return
		}
		for _, d := range say("Hello.") {
			if !yield(d, nil) {
				return
			}
		}
	}
}

func (g *gated) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.asked
}

// TestTokenCostIsReserved starts ten runs of one token at once. Its max_cost covers two expected
// answers, so the model gets two requests and the other runs end with the token's refusal.
func TestTokenCostIsReserved(t *testing.T) {
	const key = "tok_0123456789abcdef_0123456789abcdef"
	m := &gated{gate: make(chan struct{})}
	k := newKit(t, models{"m": m})
	q := request("Hello?")
	expected := cost(&model.Request{Items: q.Input, Tools: []model.Tool{addTool.Tool}}, &model.Record{Spec: model.Spec{Prices: model.Prices{Input: 1, Output: 2}}})
	spent := func(context.Context, string) (used, most model.Money, err error) {
		return 0, expected*2 + expected/2, nil
	}
	l := New(Config{Store: k.store, Models: k.models, Handlers: map[string]Handler{"add": k.adder}, Events: k.bus.RunEvents(storetest.Box(t)), Log: slog.New(slog.DiscardHandler), Holder: "a", Prices: prices, Spent: spent})
	if err := l.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Stop)
	type begun struct {
		id   run.ID
		done <-chan struct{}
	}
	var all []begun
	for range 10 {
		r := &run.Run{ID: run.NewID(), Tenant: owner, Key: key}
		done, err := l.Begin(t.Context(), r, request("Hello?"), 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, begun{r.ID, done})
	}
	refused := func() (n int) {
		for _, b := range all {
			if s := k.state(t, b.id); s.End != nil && s.End.Reason == run.Budget {
				n++
			}
		}
		return n
	}
	atolltest.Until(t, 30*time.Second, "eight runs are refused", func() bool { return refused() == 8 })
	if n := m.count(); n != 2 {
		t.Errorf("the model got %d requests, want 2", n)
	}
	close(m.gate)
	for _, b := range all {
		<-b.done
	}
	if n := refused(); n != 8 {
		t.Errorf("%d runs were refused, want 8", n)
	}
	// What the two answers held is free again.
	release, err := l.tokens.Reserve(t.Context(), key, expected*2, 0)
	if err != nil {
		t.Fatalf("the answers that ended still hold money: %v", err)
	}
	if _, err := l.tokens.Reserve(t.Context(), key, expected, 0); fault.KindOf(err) != fault.Exhausted {
		t.Errorf("got %v for more than is left", err)
	}
	release()
}
