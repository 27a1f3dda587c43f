package upgrade_test

import (
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/upgrade"
)

// TestUpgrade reads what callers are told who ask for more than their plan has.
func TestUpgrade(t *testing.T) {
	free, pro, enterprise := tenant.Plans()[0], tenant.Plans()[1], tenant.Plans()[2]
	own := tenant.Plan{Name: "own", MaxCPU: 8, Concurrency: 200, MaxTimeout: 2 * time.Minute}
	env := func(cpu float64, memory int64) *tenant.Environment {
		return &tenant.Environment{Name: "e", Limits: runtime.Limits{CPU: cpu, Memory: memory}}
	}
	timeout := func(p tenant.Plan, asked, longest time.Duration) error {
		return (&tenant.Principal{Plan: p}).Policy(longest).Check(execution.Request{Code: "x", Language: execution.Python, Timeout: asked})
	}
	full := func(p tenant.Plan) error {
		return execution.Admission{Concurrency: p.Concurrency, Cause: &tenant.PlanLimit{Plan: p, Dimension: tenant.DimensionConcurrency}}.Full(p.Concurrency)
	}
	kept := func(p tenant.Plan) error {
		return execution.OutputQuota{Max: p.MaxOutputs, Cause: &tenant.PlanLimit{Plan: p, Dimension: tenant.DimensionOutputs}}.Full(p.MaxOutputs+1<<30, time.Time{})
	}
	for _, c := range []struct {
		err             error
		dimension, says string
	}{
		{full(free), "concurrency", "concurrent execution limit reached (5/5). Your plan is free; upgrade to pro for 100 concurrent executions, or wait for one to end."},
		{full(pro), "concurrency", "(100/100). Your plan is pro; upgrade to enterprise for any number of concurrent executions, or wait"},
		{full(own), "concurrency", "(200/200). Your plan is own; upgrade to enterprise for any number of concurrent executions, or wait"},
		{kept(free), "outputs", "stored outputs use 11 GiB of 10 GiB (max_outputs). Delete executions and responses that you do not need, or wait until the oldest expire. Your plan is free; upgrade to pro for 500 GiB of kept outputs."},
		{kept(pro), "outputs", "Your plan is pro; upgrade to enterprise for any amount of kept outputs."},
		{free.RefuseStreaming(), "streaming", "Streaming execution requires a plan with streaming, such as pro or enterprise. Your plan is free; upgrade to pro."},
		{own.RefuseAsync(), "async", "Webhook delivery requires a plan with asynchronous delivery, such as pro or enterprise. Your plan is own; upgrade to pro."},
		{timeout(free, 61*time.Second, time.Hour), "timeout", "timeout exceeds your plan's maximum of 60 seconds; ask for 60 or less. Your plan is free; upgrade to pro for 3600 seconds."},
		{timeout(free, time.Hour, 2*time.Hour), "timeout", "Your plan is free; upgrade to pro for 3600 seconds."},
		{timeout(free, 61*time.Minute, 2*time.Hour), "timeout", "Your plan is free; upgrade to enterprise for 7200 seconds."},
		{timeout(own, 3*time.Minute, 10*time.Minute), "timeout", "Your plan is own; upgrade to pro for 600 seconds."},
		{timeout(free, 2*time.Hour, time.Hour), "timeout", "Your plan is free; this server runs nothing for longer than 3600 seconds (max_timeout)."},
		{timeout(enterprise, 2*time.Hour, time.Hour), "timeout", "Your plan is enterprise; this server runs nothing for longer than 3600 seconds (max_timeout)."},
		{free.Allows(env(2, 1)), "cpu", "environment e: cpu of 2 exceeds the free plan's maximum of 1; upgrade to pro for 4 cores, or use a smaller environment"},
		{free.Allows(env(5, 1)), "cpu", "upgrade to enterprise for any number of cores"},
		{own.Allows(env(9, 1)), "cpu", "exceeds the own plan's maximum of 8; upgrade to enterprise for"},
		{free.Allows(env(1, 2<<30)), "memory", "environment e: memory of 2 GiB exceeds the free plan's maximum of 1 GiB; upgrade to pro for 4 GiB, or use a smaller environment"},
		{free.Allows(env(1, 5<<30)), "memory", "upgrade to enterprise for any amount of memory"},
	} {
		f, ok := c.err.(*fault.Error) //nolint:errorlint // they are made here
		if !ok || f.Kind != fault.Exhausted || f.Dimension != c.dimension || !strings.Contains(f.Msg+upgrade.Advice(f), c.says) {
			t.Errorf("got  %v\nwant %q", c.err, c.says)
		}
	}
	for _, err := range []error{free.Allows(env(1, 1<<30)), enterprise.Allows(env(1000, 1<<40)), timeout(free, time.Minute, time.Hour), timeout(enterprise, time.Hour, time.Hour)} {
		if err != nil {
			t.Errorf("refused: %v", err)
		}
	}
}
