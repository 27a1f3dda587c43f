package tenant

import (
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
)

// PlanLimit is the cause of a rejection by a plan's limit. It carries the data to say which plan
// would suffice.
type PlanLimit struct {
	Plan      Plan // the caller's
	Dimension string

	Limits  runtime.Limits // of the environment, for the dimensions cpu and memory
	Timeout time.Duration  // the requested timeout, for the dimension timeout
	Longest time.Duration  // the server's limit on timeouts, for every plan
}

// Dimensions of a plan's limits.
const (
	DimensionConcurrency = "concurrency"
	DimensionStreaming   = "streaming"
	DimensionAsync       = "async"
	DimensionTimeout     = "timeout"
	DimensionCPU         = "cpu"
	DimensionMemory      = "memory"
	DimensionOutputs     = execution.DimensionOutputs
)

func (l *PlanLimit) Error() string { return "the " + l.Dimension + " of plan " + l.Plan.Name }

// refuse returns the Exhausted fault with l as its cause.
func (l *PlanLimit) refuse(format string, args ...any) error {
	f := fault.Limit(l.Dimension, time.Time{}, format, args...)
	f.Err = l
	return f
}

// RefuseStreaming returns the fault for a plan without streaming.
func (p *Plan) RefuseStreaming() error {
	return p.refuseDelivery(DimensionStreaming, "Streaming execution requires a plan with streaming", func(o Plan) bool { return o.Streaming })
}

// RefuseAsync returns the fault for a plan without asynchronous delivery.
func (p *Plan) RefuseAsync() error {
	return p.refuseDelivery(DimensionAsync, "Webhook delivery requires a plan with asynchronous delivery", func(o Plan) bool { return o.Async })
}

func (p *Plan) refuseDelivery(dimension, requires string, has func(Plan) bool) error {
	var with []string
	for _, o := range Plans() {
		if has(o) {
			with = append(with, o.Name)
		}
	}
	return (&PlanLimit{Plan: *p, Dimension: dimension}).refuse("%s, such as %s.", requires, strings.Join(with, " or "))
}

// Allows returns an Exhausted fault for the first limit of an environment that exceeds the plan.
func (p *Plan) Allows(e *Environment) error {
	l := e.Limits
	limit := &PlanLimit{Plan: *p, Limits: l}
	switch {
	case p.MaxCPU > 0 && l.CPU > p.MaxCPU:
		limit.Dimension = DimensionCPU
		return limit.refuse("environment %s: cpu of %g exceeds the %s plan's maximum of %g", e.Name, l.CPU, p.Name, p.MaxCPU)
	case p.MaxMemory > 0 && l.Memory > p.MaxMemory:
		limit.Dimension = DimensionMemory
		return limit.refuse("environment %s: memory of %s exceeds the %s plan's maximum of %s", e.Name, runtime.FormatBytes(l.Memory), p.Name, runtime.FormatBytes(p.MaxMemory))
	}
	return nil
}
