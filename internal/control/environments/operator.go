package environments

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/tenant"
)

// CreateIn creates an environment in a tenant that an operator names, by id or name. actor is the
// id of the operator's key.
func (s *Service) CreateIn(ctx context.Context, actor, tenantName, name string, c tenant.EnvironmentChange) (Environment, error) {
	e, err := s.Tenants.CreateEnvironment(ctx, actor, tenantName, name, c)
	return s.built(ctx, e, err)
}

// GetIn returns an environment of a tenant that an operator names.
func (s *Service) GetIn(ctx context.Context, tenantName, idOrName string) (Environment, error) {
	e, err := s.Tenants.Environment(ctx, tenantName, idOrName)
	return s.built(ctx, e, err)
}

// ChangeIn changes an environment of a tenant that an operator names. If c changes permissions,
// restart is the number of named sandboxes that a restart would give more of the network.
func (s *Service) ChangeIn(ctx context.Context, tenantName, idOrName string, c tenant.EnvironmentChange) (out Environment, restart int, err error) {
	e, err := s.Tenants.ChangeEnvironment(ctx, tenantName, idOrName, c)
	if out, err = s.built(ctx, e, err); err != nil || c.Permissions == (tenant.PermissionsChange{}) {
		return out, 0, err
	}
	t, err := s.Tenants.Tenant(ctx, tenantName)
	if err != nil {
		return out, 0, err
	}
	restart, err = s.Sandboxes.LackNetwork(ctx, e.Tenant, e.ID, t.Permitted(e.Permissions).Network)
	return out, restart, err
}
