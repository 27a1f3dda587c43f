package session

import (
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/usage"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// SessionBudget bounds what the turns of a session use together.
type SessionBudget struct {
	Tokens  *int64   `json:"tokens,omitzero" minimum:"1" maximum:"1000000000000" doc:"Of all requests to models and of their answers."`
	CostUSD *float64 `json:"cost_usd,omitzero" maximum:"1000000" doc:"US dollars, at least 0.000001: of models, tools and the sandbox."`
}

// domain reads a budget; limits that are omitted are 0.
func (in *SessionBudget) domain() (b session.Budget, err error) {
	if in == nil {
		return b, nil
	}
	if in.Tokens != nil {
		if *in.Tokens < 1 || *in.Tokens > 1e12 {
			return b, httpapi.Invalid("budget.tokens must be between 1 and 1000000000000")
		}
		b.Tokens = *in.Tokens
	}
	if in.CostUSD != nil {
		if !(*in.CostUSD >= 0.000001 && *in.CostUSD <= 1e6) {
			return b, httpapi.Invalid("budget.cost_usd must be between 0.000001 and 1000000")
		}
		b.Cost = usage.MoneyOf(*in.CostUSD)
	}
	return b, nil
}

// budgetOf renders a budget; nil for none.
func budgetOf(b session.Budget) *SessionBudget {
	if b == (session.Budget{}) {
		return nil
	}
	out := &SessionBudget{}
	if b.Tokens > 0 {
		out.Tokens = &b.Tokens
	}
	if b.Cost > 0 {
		out.CostUSD = new(b.Cost.Dollars())
	}
	return out
}
