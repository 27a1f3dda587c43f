package usage_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/atoll-run/atoll/internal/core/usage"
)

// TestBudget: what is under way counts, and calls that begin at the same moment do not pass
// a budget together.
func TestBudget(t *testing.T) {
	const budget, price = 10, 3
	var mu sync.Mutex
	spent := usage.Money(0) // what the ledger has
	b := usage.NewBudget(func(_ context.Context, _ string, more, next usage.Money) error {
		mu.Lock()
		defer mu.Unlock()
		if used := spent.Plus(more); used >= budget || used+next > budget {
			return errors.New("no budget")
		}
		return nil
	})
	var made sync.WaitGroup
	for range 8 {
		made.Go(func() {
			release, err := b.Reserve(t.Context(), "a", price, 0)
			if err != nil {
				return
			}
			mu.Lock()
			spent += price
			mu.Unlock()
			release()
			release() // a second time changes nothing
		})
	}
	made.Wait()
	if spent > budget || spent == 0 {
		t.Errorf("%d of %d spent", spent, budget)
	}
	spent = 0
	release, err := b.Reserve(t.Context(), "a", 9, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Check(t.Context(), "a", 0); err != nil {
		t.Errorf("with some left: %v", err)
	}
	if err := b.Check(t.Context(), "a", 1); err == nil {
		t.Error("what is in progress does not count")
	}
	if _, err := b.Reserve(t.Context(), "a", 2, 0); err == nil {
		t.Error("more than the budget is reserved")
	}
	if err := b.Check(t.Context(), "another", 9); err != nil {
		t.Errorf("another's: %v", err)
	}
	release()
	if _, err := b.Reserve(t.Context(), "a", 10, 0); err != nil {
		t.Errorf("after the release: %v", err)
	}
}

// TestPrograms: calls that a program makes at once stay within what its response and its
// tenant have left, with those that it has made.
func TestPrograms(t *testing.T) {
	recorded := 0
	p := usage.Programs{
		Budget: usage.NewBudget(func(_ context.Context, _ string, more, next usage.Money) error {
			if more+next > 20 {
				return errors.New("no budget")
			}
			return nil
		}),
		Prices: map[string]usage.Money{"web_search": 5},
		Calls: func(context.Context, string, string) (map[string]int, error) {
			return map[string]int{"web_search": recorded}, nil
		},
	}
	admitted := func(c usage.ProgramCall) (n int, release func()) {
		var all []func()
		for range 8 {
			if release, err := p.Reserve(t.Context(), c); err == nil {
				n, all = n+1, append(all, release)
			}
		}
		return n, func() {
			for _, release := range all {
				release()
			}
		}
	}
	search := usage.ProgramCall{Tenant: "a", TraceID: "t", Service: "web_search"}
	for name, test := range map[string]struct {
		left     *usage.Money
		budgeted bool
		recorded int
		service  string
		want     int
	}{
		"no bounds":               {want: 8},
		"of the response":         {left: new(usage.Money(14)), want: 2},
		"with those on record":    {left: new(usage.Money(14)), recorded: 1, want: 1},
		"used up":                 {left: new(usage.Money(14)), recorded: 3},
		"of the tenant":           {budgeted: true, want: 4},
		"of the tenant, recorded": {budgeted: true, recorded: 1, want: 3},
		"both":                    {left: new(usage.Money(10)), budgeted: true, want: 2},
		"free":                    {left: new(usage.Money(0)), service: "fetch_url", want: 8},
	} {
		c := search
		if c.Left, c.Budgeted, recorded = test.left, test.budgeted, test.recorded; test.service != "" {
			c.Service = test.service
		}
		n, release := admitted(c)
		if n != test.want {
			t.Errorf("%s: %d calls, want %d", name, n, test.want)
		}
		release()
	}
}

// TestRefusedDoNotCount: what was refused does not count against what is asked for meanwhile.
func TestRefusedDoNotCount(t *testing.T) {
	b := usage.NewBudget(func(_ context.Context, _ string, more, next usage.Money) error {
		if more > 9 {
			t.Errorf("%d used, with refused ones", more)
		}
		if more+next > 10 {
			return errors.New("no budget")
		}
		return nil
	})
	var reserved atomic.Int64
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			if _, err := b.Reserve(t.Context(), "a", 3, 0); err == nil {
				reserved.Add(1)
			}
		})
	}
	all.Wait()
	if reserved.Load() != 3 {
		t.Errorf("%d were reserved", reserved.Load())
	}
}

// TestBudgetWaits: a caller that gives up does not keep others of its tenant waiting, and
// nothing is left of those that have decided.
func TestBudgetWaits(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	b := usage.NewBudget(func(context.Context, string, usage.Money, usage.Money) error {
		asked <- struct{}{}
		<-answer
		return nil
	})
	var first sync.WaitGroup
	first.Go(func() {
		if _, err := b.Reserve(t.Context(), "a", 1, 0); err != nil {
			t.Error(err)
		}
	})
	<-asked
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Reserve(gone, "a", 1, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("one that gave up: %v", err)
	}
	var another sync.WaitGroup
	another.Go(func() {
		if _, err := b.Reserve(t.Context(), "b", 1, 0); err != nil {
			t.Error(err)
		}
	})
	<-asked // another tenant's does not wait
	close(answer)
	first.Wait()
	another.Wait()
}

// TestProgramCallEndsMeanwhile: a call that is recorded and released right after the calls on
// record were read still counts for the one that is decided about.
func TestProgramCallEndsMeanwhile(t *testing.T) {
	var first func()
	p := usage.Programs{
		Budget: usage.NewBudget(func(_ context.Context, _ string, more, next usage.Money) error {
			if more+next > 9 {
				return errors.New("no budget")
			}
			return nil
		}),
		Prices: map[string]usage.Money{"web_search": 5},
		Calls: func(context.Context, string, string) (map[string]int, error) {
			if first != nil {
				first()
			}
			return nil, nil
		},
	}
	search := usage.ProgramCall{Tenant: "a", TraceID: "t", Service: "web_search", Budgeted: true}
	release, err := p.Reserve(t.Context(), search)
	if err != nil {
		t.Fatal(err)
	}
	first = release
	if _, err := p.Reserve(t.Context(), search); err == nil {
		t.Error("a budget for one call has two")
	}
}
