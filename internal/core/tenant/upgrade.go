package tenant

import (
	"fmt"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
)

// Refusals for a plan's limit say which plan it is and which of the contract's
// would do, so that whoever reads one knows what to ask for. Plans of an
// operator's own are not named: they need not be for everybody.

// upgrade names the first of the contract's plans that gives what is missing.
// give tells what that is, and "" of a plan that does not have it.
func (p *Plan) upgrade(give func(Plan) string) string {
	for _, larger := range Plans() {
		if more := give(larger); more != "" && larger.Name != p.Name {
			return fmt.Sprintf("upgrade to %s for %s", larger.Name, more)
		}
	}
	return "no plan gives more"
}

func (p *Plan) yours() string { return "Your plan is " + p.Name + "; " }

// RefuseStreaming says that p has no streaming.
func (p *Plan) RefuseStreaming() error {
	return p.refuseDelivery("streaming", "Streaming execution requires a plan with streaming", func(o Plan) bool { return o.Streaming })
}

// RefuseAsync says that p has no asynchronous delivery.
func (p *Plan) RefuseAsync() error {
	return p.refuseDelivery("async", "Webhook delivery requires a plan with asynchronous delivery", func(o Plan) bool { return o.Async })
}

func (p *Plan) refuseDelivery(dimension, requires string, has func(Plan) bool) error {
	var with []string
	for _, o := range Plans() {
		if has(o) {
			with = append(with, o.Name)
		}
	}
	return fault.Limit(dimension, time.Time{}, "%s, such as %s. %supgrade to %s.", requires, strings.Join(with, " or "), p.yours(), with[0])
}

// UpgradeConcurrency says what lifts p's bound on executions at the same time.
func (p *Plan) UpgradeConcurrency() string {
	return p.yours() + p.upgrade(func(o Plan) string {
		switch {
		case o.Concurrency == 0:
			return "any number of concurrent executions"
		case o.Concurrency > p.Concurrency:
			return fmt.Sprintf("%d concurrent executions", o.Concurrency)
		}
		return ""
	}) + ", or wait for one to end."
}

// upgradeTimeout says what lifts p's bound on a timeout; longest is the
// server's own, which holds for every plan.
func (p *Plan) upgradeTimeout(asked, longest time.Duration) string {
	if p.MaxTimeout == 0 || p.MaxTimeout >= longest || asked > longest {
		return p.yours() + fmt.Sprintf("this server runs nothing for longer than %d seconds (max_timeout).", longest/time.Second)
	}
	return p.yours() + p.upgrade(func(o Plan) string {
		most := longest
		if o.MaxTimeout > 0 {
			most = min(most, o.MaxTimeout)
		}
		if most < asked {
			return ""
		}
		return fmt.Sprintf("%d seconds", most/time.Second)
	}) + "."
}

// Allows reports, as an Exhausted fault, the first limit of an environment that
// is above the plan.
func (p *Plan) Allows(e *Environment) error {
	l := e.Limits
	switch {
	case p.MaxCPU > 0 && l.CPU > p.MaxCPU:
		return fault.Limit("cpu", time.Time{}, "environment %s: cpu of %g exceeds the %s plan's maximum of %g; %s, or use a smaller environment", e.Name, l.CPU, p.Name, p.MaxCPU,
			p.upgrade(func(o Plan) string {
				if o.MaxCPU > 0 && o.MaxCPU < l.CPU {
					return ""
				}
				return bound(o.MaxCPU, fmt.Sprintf("%g cores", o.MaxCPU), "any number of cores")
			}))
	case p.MaxMemory > 0 && l.Memory > p.MaxMemory:
		return fault.Limit("memory", time.Time{}, "environment %s: memory of %s exceeds the %s plan's maximum of %s; %s, or use a smaller environment", e.Name, runtime.FormatBytes(l.Memory), p.Name, runtime.FormatBytes(p.MaxMemory),
			p.upgrade(func(o Plan) string {
				if o.MaxMemory > 0 && o.MaxMemory < l.Memory {
					return ""
				}
				return bound(float64(o.MaxMemory), runtime.FormatBytes(o.MaxMemory), "any amount of memory")
			}))
	}
	return nil
}

// bound is how a plan's bound reads, of which 0 means none.
func bound(most float64, is, none string) string {
	if most == 0 {
		return none
	}
	return is
}
