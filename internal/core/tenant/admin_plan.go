package tenant

import (
	"context"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// Bounds of a plan of one's own.
const (
	MaxPlanCPU         = 1024
	MaxPlanMemory      = 16 << 40
	MaxPlanConcurrency = 1_000_000
	MaxPlanTimeout     = 30 * 24 * time.Hour
	MinPlanOutput      = 64 << 10
	MaxPlanOutput      = 1 << 40
	MaxPlanThreads     = 10_000_000
	MaxPlanThreadSize  = 16 << 40
	MaxPlanSandboxes   = 1_000_000
	MaxPlanLife        = 10 * 365 * 24 * time.Hour
	MaxPlanRequestRate = 1_000_000
	// MinPlanUploadRate lets a request of the largest JSON, 8 MiB, through at once.
	MinPlanUploadRate = 1 << 20
	MaxPlanUploadRate = 1 << 40
	MaxPlanTokenRate  = 1e12 // tokens a minute
)

// PutPlan makes a plan, or replaces one that is not built in. Each change is
// noted as a PolicyEvent by actor of the tenant Operator.
func (a *Admin) PutPlan(ctx context.Context, actor string, p Plan) (Plan, error) {
	defer a.changing()()
	if err := checkName("plan", p.Name); err != nil {
		return Plan{}, err
	}
	if err := p.check(); err != nil {
		return Plan{}, err
	}
	old, err := a.store.Plan(ctx, p.Name)
	switch {
	case err == nil && old.BuiltIn:
		return Plan{}, builtIn(p.Name)
	case err != nil && fault.KindOf(err) != fault.NotFound:
		return Plan{}, err
	}
	p.BuiltIn = false
	before := unset(p.policy())
	if err == nil {
		before = old.policy()
	}
	operator, err := a.find(ctx, Operator)
	if err != nil {
		return Plan{}, err
	}
	if err := a.store.PutPlan(ctx, p, events(operator.ID, actor, before, p.policy())...); err != nil {
		return Plan{}, err
	}
	return a.store.Plan(ctx, p.Name)
}

// Plan returns a plan by its name.
func (a *Admin) Plan(ctx context.Context, name string) (Plan, error) { return a.store.Plan(ctx, name) }

// Plans returns every plan.
func (a *Admin) Plans(ctx context.Context) ([]Plan, error) { return a.store.Plans(ctx) }

// DeletePlan removes a plan that is not built in and that no tenant has,
// which is noted as PutPlan does.
func (a *Admin) DeletePlan(ctx context.Context, actor, name string) error {
	defer a.changing()()
	p, err := a.store.Plan(ctx, name)
	if err != nil {
		return err
	}
	if p.BuiltIn {
		return builtIn(name)
	}
	operator, err := a.find(ctx, Operator)
	if err != nil {
		return err
	}
	return a.store.DeletePlan(ctx, name, events(operator.ID, actor, p.policy(), unset(p.policy()))...)
}

// policy is what events tell of a plan: every bound, as text.
func (p Plan) policy() [][2]string {
	field := func(name string, value any) [2]string {
		return [2]string{"plan/" + p.Name + "/" + name, fmt.Sprint(value)}
	}
	return [][2]string{
		field("max_cpu", p.MaxCPU),
		field("max_memory", p.MaxMemory),
		field("concurrency", p.Concurrency),
		field("max_timeout", p.MaxTimeout),
		field("streaming", p.Streaming),
		field("async", p.Async),
		field("key_isolation", p.KeyIsolation),
		field("max_output", p.MaxOutput),
		field("max_threads", p.MaxThreads),
		field("max_thread_size", p.MaxThreadSize),
		field("max_outputs", p.MaxOutputs),
		field("max_sandboxes", p.MaxSandboxes),
		field("max_sandbox_memory", p.MaxSandboxMemory),
		field("max_sandbox_disk", p.MaxSandboxDisk),
		field("max_sandbox_life", p.MaxSandboxLife),
		field("max_snapshots", p.MaxSnapshots),
		field("max_snapshot_size", p.MaxSnapshotSize),
		field("max_request_rate", p.MaxRequestRate),
		field("max_key_request_rate", p.MaxKeyRequestRate),
		field("max_upload_rate", p.MaxUploadRate),
		field("max_key_upload_rate", p.MaxKeyUploadRate),
		field("max_response_rate", p.MaxResponseRate),
		field("max_key_response_rate", p.MaxKeyResponseRate),
		field("max_token_rate", p.MaxTokenRate),
		field("max_key_token_rate", p.MaxKeyTokenRate),
	}
}

func builtIn(name string) error {
	return fault.New(fault.Conflict, "the plan %s is built in and cannot be changed or removed", name)
}

func (p Plan) check() error {
	switch {
	case !(p.MaxCPU >= 0 && p.MaxCPU <= MaxPlanCPU):
		return invalid("max_cpu must be between 0, for no limit, and %d cores", MaxPlanCPU)
	case p.MaxMemory < 0 || p.MaxMemory > MaxPlanMemory:
		return invalid("max_memory must be between 0, for no limit, and %d bytes", int64(MaxPlanMemory))
	case p.Concurrency < 0 || p.Concurrency > MaxPlanConcurrency:
		return invalid("concurrency must be between 0, for no limit, and %d", MaxPlanConcurrency)
	case p.MaxTimeout < 0 || p.MaxTimeout > MaxPlanTimeout:
		return invalid("max_timeout must be between 0, for the server's limit, and %d seconds", int64(MaxPlanTimeout/time.Second))
	case p.MaxOutput < MinPlanOutput || p.MaxOutput > MaxPlanOutput:
		return invalid("max_output must be %d to %d bytes", MinPlanOutput, int64(MaxPlanOutput))
	case p.MaxThreads < 0 || p.MaxThreads > MaxPlanThreads:
		return invalid("max_threads must be between 0, for no limit, and %d", MaxPlanThreads)
	case p.MaxThreadSize < 0 || p.MaxThreadSize > MaxPlanThreadSize:
		return invalid("max_thread_size must be between 0, for no limit, and %d bytes", int64(MaxPlanThreadSize))
	case p.MaxOutputs < 0 || p.MaxOutputs > MaxPlanThreadSize:
		return invalid("max_outputs must be between 0, for no limit, and %d bytes", int64(MaxPlanThreadSize))
	case p.MaxSandboxes < 0 || p.MaxSandboxes > MaxPlanSandboxes:
		return invalid("max_sandboxes must be between 0, for no limit, and %d", MaxPlanSandboxes)
	case p.MaxSandboxMemory < 0 || p.MaxSandboxMemory > MaxPlanMemory:
		return invalid("max_sandbox_memory must be between 0, for no limit, and %d bytes", int64(MaxPlanMemory))
	case p.MaxSandboxDisk < 0 || p.MaxSandboxDisk > MaxPlanThreadSize:
		return invalid("max_sandbox_disk must be between 0, for the server's limit, and %d bytes", int64(MaxPlanThreadSize))
	case p.MaxSandboxLife < 0 || p.MaxSandboxLife > MaxPlanLife:
		return invalid("max_sandbox_life must be between 0, for no limit, and %d seconds", int64(MaxPlanLife/time.Second))
	case p.MaxSnapshots < 0 || p.MaxSnapshots > MaxPlanSandboxes:
		return invalid("max_snapshots must be between 0, for no limit, and %d", MaxPlanSandboxes)
	case p.MaxSnapshotSize < 0 || p.MaxSnapshotSize > MaxPlanThreadSize:
		return invalid("max_snapshot_size must be between 0, for no limit, and %d bytes", int64(MaxPlanThreadSize))
	}
	return p.checkRates()
}

func (p Plan) checkRates() error {
	for _, r := range []struct {
		name  string
		value int64
	}{{"max_request_rate", p.MaxRequestRate}, {"max_key_request_rate", p.MaxKeyRequestRate}} {
		if r.value < 0 || r.value > MaxPlanRequestRate {
			return invalid("%s must be between 0, for no limit, and %d requests per second", r.name, MaxPlanRequestRate)
		}
	}
	for _, r := range []struct {
		name        string
		value, most int64
		what        string
	}{
		{"max_response_rate", p.MaxResponseRate, MaxPlanRequestRate, "responses"}, {"max_key_response_rate", p.MaxKeyResponseRate, MaxPlanRequestRate, "responses"},
		{"max_token_rate", p.MaxTokenRate, MaxPlanTokenRate, "tokens"}, {"max_key_token_rate", p.MaxKeyTokenRate, MaxPlanTokenRate, "tokens"},
	} {
		if r.value < 0 || r.value > r.most {
			return invalid("%s must be between 0, for no limit, and %d %s per minute", r.name, r.most, r.what)
		}
	}
	for _, r := range []struct {
		name  string
		value int64
	}{{"max_upload_rate", p.MaxUploadRate}, {"max_key_upload_rate", p.MaxKeyUploadRate}} {
		if r.value != 0 && (r.value < MinPlanUploadRate || r.value > MaxPlanUploadRate) {
			return invalid("%s must be 0, for no limit, or between %d and %d bytes per second", r.name, MinPlanUploadRate, int64(MaxPlanUploadRate))
		}
	}
	return nil
}

// fitsAll reports an environment of a tenant that is above a plan.
func (a *Admin) fitsAll(ctx context.Context, p Plan, id ID) error {
	all, err := a.store.Environments(ctx, id)
	if err != nil {
		return err
	}
	for i := range all {
		if err := p.Allows(&all[i]); err != nil {
			return err
		}
	}
	return nil
}
