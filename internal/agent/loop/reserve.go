package loop

import (
	"sync"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
)

// price is what a call of a tool costs at least.
func (d *drive) price(t *run.Tool) model.Money {
	if t.Handler == "" || t.Uncounted {
		return 0
	}
	return d.loop.cfg.Prices.Tools[counted(t)]
}

// holds are what the tenant's budget holds for calls of a run until their charges are on
// record. They belong to the goroutine of drive.
type holds struct {
	calls   map[string]hold // under way, by the calls' ids
	done    []hold          // ended, and not on record
	settled model.Money     // of done
}

type hold struct {
	cost    model.Money
	release func()
}

// ended says that a call's charges are among the entries to record.
func (h *holds) ended(call string) {
	if one, ok := h.calls[call]; ok {
		delete(h.calls, call)
		h.done, h.settled = append(h.done, one), h.settled.Plus(one.cost)
	}
}

// recorded says that the ledger has the charges of the calls that have ended.
func (h *holds) recorded() {
	for _, one := range h.done {
		one.release()
	}
	h.done, h.settled = nil, 0
}

// release gives up all that is held, as this process no longer runs this run.
func (h *holds) release() {
	h.recorded()
	for _, one := range h.calls {
		one.release()
	}
	h.calls = nil
}

// reserve holds what calls cost. Those that the tenant's budget has no money for are left
// out, with those after them; over is the end of the run when no call is left.
func (d *drive) reserve(calls []run.Pending) (affordable []run.Pending, over *run.End, err error) {
	if d.loop.cfg.Budget == nil {
		return calls, nil, nil
	}
	for i := range calls {
		p := &calls[i]
		if _, held := d.held.calls[p.Call.ID]; held || p.Cost == 0 {
			continue
		}
		release, err := d.hold(p)
		if err != nil {
			if over, err = budgetEnd(err); err != nil {
				return nil, nil, err
			}
			if calls = run.Affordable(calls, i); len(calls) > 0 {
				over = nil // the next step says it
			}
			return calls, over, nil
		}
		if d.held.calls == nil {
			d.held.calls = map[string]hold{}
		}
		d.held.calls[p.Call.ID] = hold{p.Cost, release}
	}
	return calls, nil, nil
}

// hold holds what a call costs. One that has begun is not refused.
func (d *drive) hold(p *run.Pending) (release func(), err error) {
	budget := d.loop.cfg.Budget
	if p.Begun {
		return budget.Hold(d.run.Tenant, p.Cost), nil
	}
	return budget.Reserve(d.ctx, d.run.Tenant, p.Cost, d.unrecorded())
}

// purse is what a run may still spend on calls that its calls make.
type purse struct {
	mu     sync.Mutex
	rest   *model.Money // guarded by mu; nil for no bound
	tokens *int64       // guarded by mu; nil for no bound
}

// purse returns what the run's limits leave beside what the calls themselves cost.
func (d *drive) purse(calls []run.Pending) *purse {
	p := &purse{rest: d.state.Money(), tokens: d.state.Tokens()}
	if p.rest != nil {
		for i := range calls {
			*p.rest -= calls[i].Cost
		}
	}
	return p
}

func (p *purse) left() (rest *model.Money, tokens *int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rest != nil {
		rest = new(max(0, *p.rest))
	}
	if p.tokens != nil {
		tokens = new(max(0, *p.tokens))
	}
	return rest, tokens
}

// pay takes what a call was charged for beyond what was held for it.
func (p *purse) pay(c *run.Called, held model.Money) {
	if c == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rest != nil {
		*p.rest += held
		for _, u := range c.Used {
			*p.rest -= u.Cost
		}
		*p.rest -= c.Below.Cost
	}
	if p.tokens != nil {
		*p.tokens -= c.Below.Usage.Input + c.Below.Usage.Output
	}
}
