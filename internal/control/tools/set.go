package tools

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// Pool is the named sandboxes; a directory.Directory is.
type Pool interface {
	Ensure(ctx context.Context, p *tenant.Principal, session, name string, spec *sandbox.Spec) (sb *sandbox.Sandbox, created bool, err error)
	Use(ctx context.Context, p *tenant.Principal, session, nameOrID string) (sandbox.Handle, error)
	List(ctx context.Context, p *tenant.Principal, session string) ([]*sandbox.Sandbox, error)
	Record(ctx context.Context, p *tenant.Principal, c sandbox.Call) error
}

// Images finds images by what callers call them.
type Images interface {
	// Resolve returns the name in the image store of what was asked for.
	Resolve(asked string) (string, error)
}

// Policies say what a caller's plan and environment allow; a gateway does.
type Policies interface {
	Policy(p *tenant.Principal) execution.Policy
}

// SetConfig is what a Set is made of. All of it is required but what may be nil.
type SetConfig struct {
	Pool        Pool
	Images      Images
	Policies    Policies
	ExecuteCode *ExecuteCode
	Previews    Previews         // nil for no tool browse
	Sessions    Sessions         // nil where there are none with agents
	Files       Files            // that sessions have copies of; nil where there are none
	Skills      execution.Skills // whose folders callers have; nil where there are none
	Web         execution.Web    // makes the calls of programs; nil where they make none
	Log         *slog.Logger
}

// Set is the tools that a model can be given, ready to be called.
type Set struct {
	cfg     SetConfig
	overdue time.Duration
	mounts  mounts

	equipment equipment
	entrances entrances
}

// NewSet returns the tools.
func NewSet(cfg SetConfig) *Set { return &Set{cfg: cfg, overdue: overdue} }

// Definitions lists the tools, in the contract's order.
func (s *Set) Definitions() []Definition {
	return slices.DeleteFunc(Definitions(), func(d Definition) bool { return !s.has(d.Name) })
}

func (s *Set) has(name string) bool { return name != browseName || s.cfg.Previews != nil }

// Call calls a tool with its input as JSON, and returns its output: a pointer to
// the struct that the definition names. What the caller may be told of a failure
// is a fault.Error.
func (s *Set) Call(ctx context.Context, name string, c *Caller, input []byte) (any, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Name == name && s.has(name) {
			return all[i].call(ctx, s.callOf(c, name), input)
		}
	}
	return nil, fault.New(fault.NotFound, "tool %s not found; GET /v1/tools lists the tools", wire.Quote(name))
}
