package usage

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// Programs holds the calls that programs of responses make to what may be spent. Such calls
// are charged with the end of their program.
type Programs struct {
	Budget *Budget
	Prices map[string]Money // of a call, by service
	// Calls counts the calls on record of a program, by service.
	Calls func(ctx context.Context, tenant, traceID string) (map[string]int, error)

	held     Holds // by trace id
	deciding turns // by trace id
}

// ProgramCall is a call that a program is about to make.
type ProgramCall struct {
	Tenant, TraceID, Service string
	Left                     *Money // that the program's calls may cost together; nil for no bound
	Budgeted                 bool   // the tenant has a budget in money
}

// Reserve holds what a call costs until release is called. It is refused where the program
// or its tenant has less left.
func (p *Programs) Reserve(ctx context.Context, c ProgramCall) (release func(), err error) {
	price := p.Prices[c.Service]
	if price == 0 || !c.Budgeted && c.Left == nil {
		return func() {}, nil
	}
	// One at a time: what is held for one that is then refused would count against the next.
	done, err := p.deciding.wait(ctx, c.TraceID)
	if err != nil {
		return nil, err
	}
	defer done()
	// Held first: a call that ends meanwhile is held or on record, or both for a moment.
	spent, settle := p.held.Take(c.TraceID, price)
	defer func() {
		if err != nil {
			settle()
		}
	}()
	recorded := func(ctx context.Context) (m Money, err error) {
		calls, err := p.Calls(ctx, c.Tenant, c.TraceID)
		if err != nil {
			return 0, err
		}
		for service, price := range p.Prices {
			m = m.Plus(price.Times(calls[service]))
		}
		if spent := spent.Plus(m); c.Left != nil && spent.Plus(price) > *c.Left {
			return 0, fault.Limit("max_cost", time.Time{}, "a call of %s costs %s US dollars, and max_cost leaves %s for this program", c.Service, price, max(0, *c.Left-spent))
		}
		return m, nil
	}
	if !c.Budgeted {
		if _, err = recorded(ctx); err != nil {
			return nil, err
		}
		return settle, nil
	}
	reserved, err := p.Budget.reserve(ctx, c.Tenant, price, recorded)
	if err != nil {
		return nil, err
	}
	return func() { reserved(); settle() }, nil
}
