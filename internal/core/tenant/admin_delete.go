package tenant

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// find returns a tenant unless it is erased.
func (a *Admin) find(ctx context.Context, idOrName string) (Tenant, error) {
	t, err := a.store.Tenant(ctx, idOrName)
	if err == nil && t.ErasedAt != nil {
		return Tenant{}, ErrNotFound
	}
	return t, err
}

func errDeleted(t *Tenant) error {
	return fault.New(fault.Conflict, "the tenant %s is being deleted, so nothing in it can be created or changed", t.Name)
}

// Changeable is Tenant for callers that create or change a tenant's resources. It returns a Conflict
// while the tenant is being deleted.
func (a *Admin) Changeable(ctx context.Context, idOrName string) (Tenant, error) {
	t, err := a.find(ctx, idOrName)
	if err == nil && t.DeletedAt != nil {
		return Tenant{}, errDeleted(&t)
	}
	return t, err
}

// DeleteTenant starts deleting a tenant. This process rejects the tenant's keys at once; other
// processes follow when their key caches expire. AdminConfig.Deleted deletes the tenant's data.
// A repeated call changes nothing. DeleteTenant appends PolicyEvents by actor to the tenant and
// to the tenant Operator.
func (a *Admin) DeleteTenant(ctx context.Context, actor, idOrName string) (Tenant, error) {
	defer a.changing()()
	t, err := a.find(ctx, idOrName)
	if err != nil {
		return Tenant{}, err
	}
	if t.Name == Operator {
		return Tenant{}, fault.New(fault.Conflict, "the tenant %s cannot be deleted: its keys administer the others", Operator)
	}
	operator, err := a.store.Tenant(ctx, Operator)
	if err != nil {
		return Tenant{}, err
	}
	at := now()
	t, err = a.store.DeleteTenant(ctx, t.ID,
		PolicyEvent{Tenant: t.ID, Actor: actor, Field: "tenant", Old: t.Name, New: "deleted", CreatedAt: at},
		PolicyEvent{Tenant: operator.ID, Actor: actor, Field: "tenant/" + t.Name, Old: t.ID, New: "deleted", CreatedAt: at})
	if err == nil && a.cfg.Deleted != nil {
		a.cfg.Deleted(t.ID)
	}
	return t, err
}
