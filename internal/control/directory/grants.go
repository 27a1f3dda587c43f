package directory

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Callers finds the holder of a key in an environment; *tenant.Authority implements it.
type Callers interface {
	Entrant(ctx context.Context, tenantID tenant.ID, keyID, environment string) (tenant.Principal, error)
}

// Grants implements sandbox.Grants from the records of keys.
type Grants struct{ Callers Callers }

// Grant implements sandbox.Grants. The environment need not be the key's own: keys with the scope
// environments work in all environments of their tenant.
func (g Grants) Grant(ctx context.Context, tenantID tenant.ID, key, environment string) (*sandbox.Grant, error) {
	p, err := g.Callers.Entrant(ctx, tenantID, key, environment)
	switch kind := fault.KindOf(err); {
	case err == nil && p.Environment.ID == environment:
		return sandbox.GrantOf(&p), nil
	case err == nil, kind == fault.Forbidden, kind == fault.NotFound:
		return nil, sandbox.ErrNoValidKey
	}
	return nil, err
}
