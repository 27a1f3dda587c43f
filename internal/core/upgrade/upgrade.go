// Package upgrade says, after a refusal for a plan's limit, which plan would do.
package upgrade

import (
	"errors"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Advice is what follows the message of a refusal: the caller's plan and the first of the
// built-in plans that would do. It is empty for an error that no plan caused. Plans that an
// operator has made are not named: they need not be for every tenant.
func Advice(err error) string {
	l, ok := errors.AsType[*tenant.PlanLimit](err)
	if !ok {
		return ""
	}
	yours := " Your plan is " + l.Plan.Name + "; "
	switch l.Dimension {
	case tenant.DimensionStreaming:
		return yours + larger(l, func(o tenant.Plan) string { return only(o.Streaming) }) + "."
	case tenant.DimensionAsync:
		return yours + larger(l, func(o tenant.Plan) string { return only(o.Async) }) + "."
	case tenant.DimensionConcurrency:
		return yours + larger(l, func(o tenant.Plan) string {
			return above(int64(o.Concurrency), int64(l.Plan.Concurrency)+1, fmt.Sprintf("%d concurrent executions", o.Concurrency), "any number of concurrent executions")
		}) + ", or wait for one to end."
	case tenant.DimensionOutputs:
		return yours + larger(l, func(o tenant.Plan) string {
			return above(o.MaxOutputs, l.Plan.MaxOutputs+1, runtime.FormatBytes(o.MaxOutputs)+" of kept outputs", "any amount of kept outputs")
		}) + "."
	case tenant.DimensionTimeout:
		return yours + timeout(l) + "."
	case tenant.DimensionCPU:
		return "; " + larger(l, func(o tenant.Plan) string {
			return above(o.MaxCPU, l.Limits.CPU, fmt.Sprintf("%g cores", o.MaxCPU), "any number of cores")
		}) + ", or use a smaller environment"
	case tenant.DimensionMemory:
		return "; " + larger(l, func(o tenant.Plan) string {
			return above(o.MaxMemory, l.Limits.Memory, runtime.FormatBytes(o.MaxMemory), "any amount of memory")
		}) + ", or use a smaller environment"
	}
	return ""
}

// larger names the first of the built-in plans that gives what is missing. give tells
// what that is, and "" of a plan that does not have it.
func larger(l *tenant.PlanLimit, give func(tenant.Plan) string) string {
	for _, o := range tenant.Plans() {
		switch more := give(o); {
		case more == "" || o.Name == l.Plan.Name:
		case more == has:
			return "upgrade to " + o.Name
		default:
			return fmt.Sprintf("upgrade to %s for %s", o.Name, more)
		}
	}
	return "no plan gives more"
}

// has is what a plan gives that has what is missing, without a number.
const has = "it"

func only(ok bool) string {
	if ok {
		return has
	}
	return ""
}

// above is how a plan's bound reads if it is at least what is needed; 0 is no bound.
func above[N int64 | float64](bound, needed N, is, none string) string {
	switch {
	case bound == 0:
		return none
	case bound >= needed:
		return is
	}
	return ""
}

func timeout(l *tenant.PlanLimit) string {
	if l.Plan.MaxTimeout == 0 || l.Plan.MaxTimeout >= l.Longest || l.Timeout > l.Longest {
		return fmt.Sprintf("this server runs nothing for longer than %d seconds (max_timeout)", l.Longest/time.Second)
	}
	return larger(l, func(o tenant.Plan) string {
		bound := l.Longest
		if o.MaxTimeout > 0 {
			bound = min(bound, o.MaxTimeout)
		}
		if bound < l.Timeout {
			return ""
		}
		return fmt.Sprintf("%d seconds", bound/time.Second)
	})
}
