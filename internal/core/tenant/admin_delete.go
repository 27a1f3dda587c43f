package tenant

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// find returns a tenant that was not erased.
func (a *Admin) find(ctx context.Context, idOrName string) (Tenant, error) {
	t, err := a.store.Tenant(ctx, idOrName)
	if err == nil && t.ErasedAt != nil {
		return Tenant{}, fault.New(fault.NotFound, "no such tenant")
	}
	return t, err
}

func errDeleted(t *Tenant) error {
	return fault.New(fault.Conflict, "the tenant %s is being deleted; nothing of it can be created or changed", t.Name)
}

// Changeable is Tenant for what creates or changes something of a tenant: a Conflict while it is
// being deleted.
func (a *Admin) Changeable(ctx context.Context, idOrName string) (Tenant, error) {
	t, err := a.find(ctx, idOrName)
	if err == nil && t.DeletedAt != nil {
		return Tenant{}, errDeleted(&t)
	}
	return t, err
}

// DeleteTenant begins the deletion of a tenant: its keys are refused from now on, here at once.
// AdminConfig.Deleted is told, and has everything of it deleted. Asking again changes nothing.
// The deletion is noted as PolicyEvents by actor, of the tenant and of the tenant Operator.
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
