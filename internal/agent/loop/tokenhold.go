package loop

import (
	"cmp"
	"context"
	"errors"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/usage"
)

const (
	// answerHold names what is held for an answer among the holds of a run.
	answerHold = "answer"
	// expectedOutput is the output in tokens that is held for an answer with a larger bound or
	// none. Holding the bound itself, 64,000 tokens and more, would let a token have one answer
	// at a time.
	expectedOutput = 4096
)

// newTokenBudget holds tokens to their max_cost, with what answers under way in this process may
// cost. It is nil without spent.
func newTokenBudget(spent func(ctx context.Context, token string) (used, most model.Money, err error)) *usage.Budget {
	if spent == nil {
		return nil
	}
	return usage.NewBudget(func(ctx context.Context, token string, more, next usage.Money) error {
		used, most, err := spent(ctx, token)
		switch used := used.Plus(more); {
		case err != nil || most == 0:
			return err
		case used >= most:
			return tenant.Spent(used, most)
		case used.Plus(next) > most && more > 0:
			return tenant.Reserved(most-used, most)
		}
		return nil
	})
}

// reserveAnswer holds what an answer is expected to cost from the token that began the run, so
// that answers asked for at the same time cannot together exceed its max_cost. A single answer
// may take all that is left. over is the end of the run if too little is left.
func (d *drive) reserveAnswer(q *model.Request, rec *model.Record) (over *run.End, err error) {
	release, err := d.holdAnswer(d.ctx, d.run.Key, cost(q, rec), d.unrecorded())
	if err != nil {
		return budgetEnd(err)
	}
	if d.held.calls == nil {
		d.held.calls = map[string]hold{}
	}
	d.held.calls[answerHold] = hold{release: release}
	return nil, nil
}

// holdAnswer holds an amount of a token until release is called; more is what the token was
// charged and the ledger lacks.
func (d *drive) holdAnswer(ctx context.Context, key string, amount, more model.Money) (release func(), err error) {
	if d.loop.tokens == nil || amount == 0 || !tenant.IsToken(key) {
		return func() {}, nil
	}
	return d.loop.tokens.Reserve(ctx, key, amount, more)
}

// cost is what an answer is expected to cost.
func cost(q *model.Request, rec *model.Record) model.Money {
	output := int64(cmp.Or(q.MaxOutputTokens, expectedOutput))
	return rec.Prices.Cost(model.Usage{Input: run.RequestTokens(q), Output: min(output, expectedOutput)}).Total
}

// budgetError is the error of a model that was not asked for lack of money.
func budgetError(err error) error {
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind == fault.Exhausted {
		return model.Errorf(model.Rejected, "%s", f.Msg)
	}
	return err
}
