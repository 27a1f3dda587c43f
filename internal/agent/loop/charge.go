package loop

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/usage"
)

// uses are what a call is charged for. out is nil for a call without an outcome, which may
// have been made.
func (d *drive) uses(p *run.Pending, out *Outcome) (used []run.Use) {
	if out != nil && out.Refused {
		return nil
	}
	if !p.Tool.Uncounted {
		used = append(used, d.priced(counted(p.Tool), 1))
	}
	if out == nil {
		return used
	}
	for _, name := range slices.Sorted(maps.Keys(out.Uses)) {
		if n := out.Uses[name]; n > 0 {
			used = append(used, d.priced(name, n))
		}
	}
	if n := out.Windows; n > 0 {
		used = append(used, run.Use{Kind: usage.Window, Calls: n, Cost: d.loop.cfg.Prices.Window.Times(n)})
	}
	return used
}

// counted is what calls of a tool are counted as.
func counted(t *run.Tool) string { return cmp.Or(t.Counted, t.Handler) }

func (d *drive) priced(name string, calls int) run.Use {
	return run.Use{Kind: usage.Tool, Name: name, Calls: calls, Cost: d.loop.cfg.Prices.Tools[name].Times(calls)}
}

// cutOff notes what is known of a call that was ended with its run.
func (d *drive) cutOff(c *Call, out *Outcome) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cut == nil {
		d.cut = map[int]*Outcome{}
	}
	d.cut[c.Number] = out
}

// notMade notes that a call which is on record is not made, so that the run is not charged for it.
func (d *drive) notMade(number int) {
	d.cutOff(&Call{Number: number}, &Outcome{Refused: true})
}

// settle adds to the end of a run what the calls are charged for that it cuts short.
func (d *drive) settle(e *run.End) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.state.Cut() {
		if p.Unclaimed {
			continue
		}
		c := &Call{Run: &d.run, Number: p.Number, Call: *p.Call, Begun: true, Request: d.state.Request, Tool: p.Tool}
		if _, err := d.show(&p, c); err != nil {
			continue // it was not made
		}
		out := d.cut[p.Number]
		e.Used = append(e.Used, d.uses(&p, out)...)
		if out != nil {
			e.Below = e.Below.Plus(out.Below)
		}
	}
}

// allot bounds a run that a token begins by what the token leaves.
func (d *drive) allot(ctx context.Context, q *run.Request) error {
	left, err := d.allowance(ctx)
	if err == nil && left > 0 && (q.Limits.Cost == 0 || left < q.Limits.Cost) {
		q.Limits.Cost = left
	}
	return err
}

// allowance is what the token that began the run leaves; 0 is no bound. It is an Exhausted
// fault where nothing is left.
func (d *drive) allowance(ctx context.Context) (left model.Money, err error) {
	if d.loop.cfg.Spent == nil || !tenant.IsToken(d.run.Key) {
		return 0, nil
	}
	used, most, err := d.loop.cfg.Spent(ctx, d.run.Key)
	if err != nil || most == 0 {
		return 0, err
	}
	for i := range d.left.Charges { // the ledger does not have them yet
		used = used.Plus(d.left.Charges[i].Cost)
	}
	if used >= most {
		return 0, tenant.Spent(used, most)
	}
	return most - used, nil
}

// overBudget is the end of a run whose tenant, or token, has used up its budget, nil for none.
func (d *drive) overBudget() (*run.End, error) {
	if _, err := d.allowance(d.ctx); err != nil {
		return budgetEnd(err)
	}
	if d.loop.cfg.Budget == nil {
		return nil, nil
	}
	return budgetEnd(d.loop.cfg.Budget.Check(d.ctx, d.run.Tenant, d.unrecorded()))
}

// unrecorded is what the ledger does not have of the run, beside what is held of it.
func (d *drive) unrecorded() (cost model.Money) {
	for i := range d.left.Charges {
		cost = cost.Plus(d.left.Charges[i].Cost)
	}
	return cost.Plus(-d.held.settled)
}

func budgetEnd(err error) (*run.End, error) {
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind == fault.Exhausted {
		return &run.End{Status: run.Failed, Reason: run.Budget, Message: f.Msg}, nil
	}
	return nil, err
}
