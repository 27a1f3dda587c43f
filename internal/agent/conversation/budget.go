package conversation

import (
	"strconv"

	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/usage"
)

// NewBudget returns the budget that a client of Anthropic's API gives: a limit of an amount in cents.
func NewBudget(kind, currency, amount string) (b session.Budget, err error) {
	cents, err := strconv.ParseInt(amount, 10, 64)
	switch {
	case kind != "limit":
		return b, invalid("budget.type must be limit")
	case currency != "USD":
		return b, invalid("budget.max_list_cost.currency must be USD")
	case err != nil || cents < 1 || cents > 100_000_000:
		return b, invalid("budget.max_list_cost.amount must be cents from 1 to 100000000, as a string")
	}
	return session.Budget{Cost: usage.MoneyOf(float64(cents) / 100)}, nil
}
