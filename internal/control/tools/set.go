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

// Pool manages the named sandboxes; *directory.Directory implements it.
type Pool interface {
	Ensure(ctx context.Context, p *tenant.Principal, session, name string, spec *sandbox.Spec) (sb *sandbox.Sandbox, created bool, err error)
	Use(ctx context.Context, p *tenant.Principal, session, nameOrID string) (sandbox.Handle, error)
	List(ctx context.Context, p *tenant.Principal, session string) ([]*sandbox.Sandbox, error)
	Record(ctx context.Context, p *tenant.Principal, c sandbox.Call) error
}

// Images finds images by the names that callers use.
type Images interface {
	// Resolve returns an image's name in the image store, an Invalid fault if it has none, and an
	// Unavailable fault if that is unknown.
	Resolve(ctx context.Context, asked string) (string, error)
}

// Policies returns the limits of a caller's plan and environment; *gateway.Gateway implements it.
type Policies interface {
	Policy(p *tenant.Principal) execution.Policy
}

// SetConfig configures a Set. Fields are required unless their comment allows nil.
type SetConfig struct {
	Pool        Pool
	Images      Images
	Policies    Policies
	ExecuteCode *ExecuteCode
	Previews    Previews         // nil disables the tool browse
	Sessions    Sessions         // nil if the server has no sessions with agents
	Files       Files            // copied into sessions' sandboxes; nil if the server stores no files
	Skills      execution.Skills // with the folders for callers' sandboxes; nil if the server has no skills
	Web         execution.Web    // makes the web calls of programs; nil disables them
	Log         *slog.Logger
}

// Set calls the tools that models can use.
type Set struct {
	cfg     SetConfig
	overdue time.Duration
	mounts  mounts

	equipment equipment
	entrances entrances
}

// NewSet returns a Set.
func NewSet(cfg SetConfig) *Set { return &Set{cfg: cfg, overdue: overdue} }

// Definitions lists the tools that this server offers, in the order of the contract.
func (s *Set) Definitions() []Definition {
	return slices.DeleteFunc(Definitions(), func(d Definition) bool { return !s.has(d.Name) })
}

func (s *Set) has(name string) bool { return name != browseName || s.cfg.Previews != nil }

// Call calls a tool with JSON input. It returns a pointer to the struct that
// Definition.Out names. An error that the caller may see is a *fault.Error.
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
