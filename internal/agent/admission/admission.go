// Package admission decides whether a caller may start a run: a response, or a turn of a session.
package admission

import (
	"context"
	"fmt"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/ratelimit"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Models are the models that requests may name.
type Models interface {
	Use(ctx context.Context, t tenant.ID, name string) (model.Model, *model.Record, error)
}

// Caller starts runs.
type Caller struct {
	*tenant.Principal
	// Rated receives the rates of the run's model, and the error if they reject the run. It may be
	// nil.
	Rated func(left ratelimit.Rates, refused error)

	counted map[string]bool // models whose rates have counted the run; nil to count each run
}

// In returns the caller as another principal.
func (c *Caller) In(p *tenant.Principal) *Caller {
	return &Caller{Principal: p, Rated: c.Rated, counted: c.counted}
}

// Once returns the caller of one run that may need several tries. They count once against its rates.
func (c *Caller) Once() *Caller {
	return &Caller{Principal: c.Principal, Rated: c.Rated, counted: map[string]bool{}}
}

// Gate admits runs. Every field but Models is optional.
type Gate struct {
	Models Models
	// Rates are the rates of plans.
	Rates *ratelimit.Models
	// Budget rejects a tenant that has no money left for more.
	Budget func(ctx context.Context, t tenant.ID, more model.Money) error
	// Space rejects a response if the disk or the plan has no space for it.
	Space func(ctx context.Context, p *tenant.Principal, kept bool) error
	// Stopping returns an error while the server shuts down.
	Stopping func() error
}

// CheckModel rejects the name of an unknown model.
func (g *Gate) CheckModel(ctx context.Context, t tenant.ID, name string) error {
	_, _, err := g.Models.Use(ctx, t, name)
	if fault.KindOf(err) == fault.NotFound {
		return fault.Wrap(fault.NotFound, err, fmt.Sprintf("there is no model %q; GET /v1/models lists what there is", name))
	}
	return err
}

// Open rejects new runs while the server shuts down.
func (g *Gate) Open() error {
	if g.Stopping == nil {
		return nil
	}
	return g.Stopping()
}

// CheckSpace rejects a response, kept or not, that nothing has space for.
func (g *Gate) CheckSpace(ctx context.Context, p *tenant.Principal, kept bool) error {
	if g.Space == nil {
		return nil
	}
	return g.Space(ctx, p, kept)
}

// Admit counts a run of a model against the caller's rates, and rejects it above them or if the
// tenant's budget is used up.
func (g *Gate) Admit(ctx context.Context, c *Caller, model string) error {
	if g.Rates != nil && !c.counted[model] {
		err := g.Rates.Begin(c.Principal, model)
		if c.Rated != nil {
			c.Rated(g.Rates.Left(c.Principal, model), err)
		}
		if err != nil {
			return err
		}
		if c.counted != nil {
			c.counted[model] = true
		}
	}
	if g.Budget == nil || c.Tenant.MonthlyCost <= 0 {
		return nil
	}
	return g.Budget(ctx, c.Tenant.ID, 0)
}

// Left returns what a principal has left of the rates of a model.
func (g *Gate) Left(p *tenant.Principal, model string) (left ratelimit.Rates) {
	if g.Rates != nil {
		left = g.Rates.Left(p, model)
	}
	return left
}
