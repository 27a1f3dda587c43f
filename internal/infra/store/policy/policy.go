// Package policy stores the trail of changes that administrators make.
package policy

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

var eventTable = sqldb.NewTable("policy_events",
	sqldb.Col("id", sqldb.Read, func(e *tenant.PolicyEvent) any { return &e.ID }),
	sqldb.Col("tenant", sqldb.Fixed, func(e *tenant.PolicyEvent) any { return &e.Tenant }),
	sqldb.Col("actor", sqldb.Fixed, func(e *tenant.PolicyEvent) any { return &e.Actor }),
	sqldb.Col("field", sqldb.Fixed, func(e *tenant.PolicyEvent) any { return &e.Field }),
	sqldb.Col("old_value", sqldb.Fixed, func(e *tenant.PolicyEvent) any { return &e.Old }),
	sqldb.Col("new_value", sqldb.Fixed, func(e *tenant.PolicyEvent) any { return &e.New }),
	sqldb.Col("created_at", sqldb.Fixed, func(e *tenant.PolicyEvent) any { return sqldb.TimeAt(&e.CreatedAt) }),
)

// Insert records changes of policies. The database sets times that are zero.
func Insert(ctx context.Context, tx *sqldb.Tx, events ...tenant.PolicyEvent) error {
	for _, e := range events {
		if err := tx.OrNow(ctx, &e.CreatedAt); err != nil {
			return err
		}
		if err := eventTable.Add(ctx, tx, &e); err != nil {
			return err
		}
	}
	return nil
}

// List returns the changes of a tenant's policies, oldest first.
func List(ctx context.Context, p *sqldb.Pool, id tenant.ID) ([]tenant.PolicyEvent, error) {
	all, err := sqldb.Select(ctx, p, eventTable.Row, `SELECT `+eventTable.Selected+` FROM policy_events WHERE tenant = ? ORDER BY id`, id)
	return all, p.Wrap("list policy events", err)
}
