package usage

import (
	"context"
	"sync"
)

// Holds are amounts that are spent for certain or may be, and that the ledger does not have
// yet: those of this process. The zero Holds is ready for use.
type Holds struct {
	mu   sync.Mutex
	held map[string]Money // guarded by mu
}

// Take holds an amount under a name until release is called. It returns what was held under
// it before.
func (h *Holds) Take(name string, m Money) (before Money, release func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held == nil {
		h.held = map[string]Money{}
	}
	before = h.held[name]
	h.held[name] = before.Plus(m)
	return before, sync.OnceFunc(func() { h.give(name, m) })
}

func (h *Holds) give(name string, m Money) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held[name] -= m; h.held[name] <= 0 {
		delete(h.held, name)
	}
}

// Of is what is held under a name.
func (h *Holds) Of(name string) Money {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.held[name]
}

// Budget holds tenants to their budgets in money, with what is under way in this process.
type Budget struct {
	check    func(ctx context.Context, tenant string, more, next Money) error
	holds    Holds
	deciding turns // of tenants
}

// NewBudget returns a Budget by what the ledger says; check is as Store.CheckCost.
func NewBudget(check func(ctx context.Context, tenant string, more, next Money) error) *Budget {
	return &Budget{check: check}
}

// Check refuses a tenant whose budget is used up, with some money more that the ledger does
// not have.
func (b *Budget) Check(ctx context.Context, tenant string, more Money) error {
	return b.check(ctx, tenant, b.holds.Of(tenant).Plus(more), 0)
}

// Reserve holds what something costs that is about to be done, until release is called: then
// the ledger has it, or it was not done. It is refused where a budget has not so much left.
func (b *Budget) Reserve(ctx context.Context, tenant string, cost, more Money) (release func(), err error) {
	return b.reserve(ctx, tenant, cost, func(context.Context) (Money, error) { return more, nil })
}

// reserve asks for more when cost is held: what ends meanwhile is held, or a part of more, or
// both for a moment.
func (b *Budget) reserve(ctx context.Context, tenant string, cost Money, more func(context.Context) (Money, error)) (release func(), err error) {
	if cost > 0 {
		// One at a time: what is held for one that is then refused would count against the next.
		done, err := b.deciding.wait(ctx, tenant)
		if err != nil {
			return nil, err
		}
		defer done()
	}
	before, release := b.holds.Take(tenant, cost)
	if cost > 0 {
		beside, err := more(ctx)
		if err == nil {
			err = b.check(ctx, tenant, before.Plus(beside), cost)
		}
		if err != nil {
			release()
			return nil, err
		}
	}
	return release, nil
}

// Hold holds what something costs that has begun.
func (b *Budget) Hold(tenant string, cost Money) (release func()) {
	_, release = b.holds.Take(tenant, cost)
	return release
}
