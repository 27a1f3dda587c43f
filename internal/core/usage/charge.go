package usage

import (
	"strconv"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// Charge is a ledger line with the cost, in money, of a step of a run. The store writes it in one
// transaction with the log entry that caused it.
type Charge struct {
	ID          string // unique in the tenant's ledger: the run, the log entry, and a number
	Tenant, Key string
	// Agent and Session are the ids of the agent and its session; "" for a response.
	Agent, Session string
	Kind           Kind
	Name           string // name of the model or tool; "" for a window
	Calls          int64
	Tokens         Tokens
	Cost           Money
	At             time.Time
}

// Kind says what a Charge is for. In a Day it is the Source.
type Kind string

// Kinds of charges.
const (
	Model  Kind = "model"          // a model's answer
	Tool   Kind = "tool"           // a tool call that the server ran
	Window Kind = "sandbox_window" // a billing window of a conversation's sandbox
)

// Tokens counts the tokens of a model's answers. CacheRead and CacheWrite are parts of Input,
// Reasoning is part of Output. Estimated is the part of Input and Output that the provider did
// not count.
type Tokens struct{ Input, CacheRead, CacheWrite, Output, Reasoning, Estimated int64 }

// Plus returns the sum of t and o.
func (t Tokens) Plus(o Tokens) Tokens {
	return Tokens{
		Input: t.Input + o.Input, CacheRead: t.CacheRead + o.CacheRead, CacheWrite: t.CacheWrite + o.CacheWrite,
		Output: t.Output + o.Output, Reasoning: t.Reasoning + o.Reasoning, Estimated: t.Estimated + o.Estimated,
	}
}

// DimensionCost names the monthly budget in money in Exhausted faults.
const DimensionCost = "monthly_cost"

// OverBudget returns the fault for a tenant that has used up its money budget or cannot pay for the
// next step. The budget resets at resets.
func OverBudget(used, next Money, budget float64, resets time.Time) error {
	if used < MoneyOf(budget) {
		return fault.Limit(DimensionCost, resets, "monthly budget too small for the next step, which costs %s US dollars (%s of %s used); it resets at %s. Ask the operator to raise it, or wait until then.",
			next, used, strconv.FormatFloat(budget, 'f', -1, 64), resets.UTC().Format(time.RFC3339))
	}
	return fault.Limit(DimensionCost, resets, "monthly budget used up (%s of %s US dollars); it resets at %s. Ask the operator to raise it, or wait until then.",
		used, strconv.FormatFloat(budget, 'f', -1, 64), resets.UTC().Format(time.RFC3339))
}

// OverCredits returns the fault for a tenant that has used up its budget in credits. The budget
// resets at resets.
func OverCredits(used, budget float64, resets time.Time) error {
	return fault.Limit("monthly_credits", resets, "monthly budget used up (%.4f of %s credits). Ask the operator to raise it, or wait for the next month.",
		used, strconv.FormatFloat(budget, 'f', -1, 64))
}
