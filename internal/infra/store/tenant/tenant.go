// Package tenant stores tenants with their environments, keys, tokens, plans, connections and templates.
package tenant

import (
	"context"
	"database/sql"

	"github.com/atoll-run/atoll/internal/core/tenant"
	policydb "github.com/atoll-run/atoll/internal/infra/store/policy"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

// Store implements tenant.Store.
type Store struct{ db *sqldb.DB }

// New returns the store in a database.
func New(db *sqldb.DB) *Store { return &Store{db} }

var _ tenant.Store = (*Store)(nil)

// tenantTable is the table of tenants.
var tenantTable = sqldb.NewTable("tenants",
	sqldb.Col("id", sqldb.Fixed, func(t *tenant.Tenant) any { return &t.ID }),
	sqldb.Col("name", sqldb.All, func(t *tenant.Tenant) any { return &t.Name }),
	sqldb.Col("plan", sqldb.All, func(t *tenant.Tenant) any { return &t.Plan }),
	sqldb.Col("sandbox_enabled", sqldb.All, func(t *tenant.Tenant) any { return &t.SandboxEnabled }),
	sqldb.Col("network_enabled", sqldb.All, func(t *tenant.Tenant) any { return &t.NetworkEnabled }),
	sqldb.Col("key_isolation_enabled", sqldb.All, func(t *tenant.Tenant) any { return &t.KeyIsolationEnabled }),
	sqldb.Col("root_enabled", sqldb.All, func(t *tenant.Tenant) any { return &t.RootEnabled }),
	sqldb.Col("tier", sqldb.All, func(t *tenant.Tenant) any { return &t.Tier }),
	sqldb.Col("monthly_credits", sqldb.All, func(t *tenant.Tenant) any { return &t.MonthlyCredits }),
	sqldb.Col("monthly_cost", sqldb.All, func(t *tenant.Tenant) any { return &t.MonthlyCost }),
	sqldb.Col("redaction_off", sqldb.All, func(t *tenant.Tenant) any { return sqldb.ListAt(&t.RedactionOff) }),
	sqldb.Col("audit_days", sqldb.All, func(t *tenant.Tenant) any { return &t.AuditDays }),
	sqldb.Col("audit_text", sqldb.All, func(t *tenant.Tenant) any { return &t.AuditText }),
	sqldb.Col("daily_cap", sqldb.All, func(t *tenant.Tenant) any { return &t.DailyCap }),
	sqldb.Col("hourly_cap", sqldb.All, func(t *tenant.Tenant) any { return &t.HourlyCap }),
	sqldb.Col("created_at", sqldb.Fixed, func(t *tenant.Tenant) any { return sqldb.TimeAt(&t.CreatedAt) }),
	sqldb.Col("disabled_at", sqldb.All, func(t *tenant.Tenant) any { return sqldb.MaybeTimeAt(&t.DisabledAt) }),
	sqldb.Col("deleted_at", sqldb.Read, func(t *tenant.Tenant) any { return sqldb.MaybeTimeAt(&t.DeletedAt) }),
	sqldb.Col("erased_at", sqldb.Read, func(t *tenant.Tenant) any { return sqldb.MaybeTimeAt(&t.ErasedAt) }),
)

func (s *Store) CreateTenant(ctx context.Context, t tenant.Tenant, events ...tenant.PolicyEvent) error {
	err := s.db.Write.Transact(ctx, func(tx *sqldb.Tx) error {
		if err := insertTenant(ctx, tx, t); err != nil {
			return err
		}
		return policydb.Insert(ctx, tx, events...)
	})
	return s.db.Write.Named("create a tenant", err, "tenant", t.Name)
}

func (s *Store) CreateTenantWithEnvironment(ctx context.Context, t tenant.Tenant, e tenant.Environment, events ...tenant.PolicyEvent) error {
	row, err := s.sealEnvironment(e)
	if err != nil {
		return s.db.Write.Wrap("create an environment", err)
	}
	err = s.db.Write.Transact(ctx, func(tx *sqldb.Tx) error {
		if err := insertTenant(ctx, tx, t); err != nil {
			return err
		}
		if err := insertEnvironment(ctx, tx, row); err != nil {
			return err
		}
		return policydb.Insert(ctx, tx, events...)
	})
	return s.db.Write.Named("create a tenant", err, "tenant", t.Name)
}

func insertTenant(ctx context.Context, tx *sqldb.Tx, t tenant.Tenant) error {
	if err := tx.OrNow(ctx, &t.CreatedAt); err != nil {
		return err
	}
	return tenantTable.Add(ctx, tx, &t)
}

func (s *Store) Tenant(ctx context.Context, idOrName string) (tenant.Tenant, error) {
	t, err := tenantTable.Row(s.db.Read.Row(ctx, `SELECT `+tenantTable.Selected+` FROM tenants WHERE id = ? OR name = ? ORDER BY CASE WHEN id = ? THEN 0 ELSE 1 END LIMIT 1`,
		idOrName, idOrName, idOrName))
	return t, s.db.Read.Found("get a tenant", err, tenant.ErrNotFound)
}

func (s *Store) Tenants(ctx context.Context) ([]tenant.Tenant, error) {
	all, err := sqldb.Select(ctx, s.db.Read, tenantTable.Row, `SELECT `+tenantTable.Selected+` FROM tenants WHERE erased_at IS NULL ORDER BY seq`)
	return all, s.db.Read.Wrap("list tenants", err)
}

func (s *Store) ChangeTenant(ctx context.Context, id tenant.ID, change func(*tenant.Tenant) ([]tenant.PolicyEvent, error)) (tenant.Tenant, error) {
	var t tenant.Tenant
	err := s.db.Write.Transact(ctx, func(tx *sqldb.Tx) (err error) {
		if t, err = tenantTable.Row(tx.Row(ctx, `SELECT `+tenantTable.Selected+` FROM tenants WHERE id = ?`+tx.Pool.ForUpdate(), id)); err != nil {
			return err
		}
		events, err := change(&t)
		if err != nil {
			return err
		}
		values, err := tenantTable.Values(sqldb.Update, &t, id)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE tenants SET `+tenantTable.Set+` WHERE id = ?`, values...); err != nil {
			return err
		}
		for i := range events {
			events[i].Tenant = id
		}
		return policydb.Insert(ctx, tx, events...)
	})
	if err == sql.ErrNoRows {
		return tenant.Tenant{}, s.db.Write.Found("change a tenant", err, tenant.ErrNotFound)
	}
	if err != nil {
		return tenant.Tenant{}, s.db.Write.Named("change a tenant", err, "tenant", t.Name)
	}
	t.ID = id
	return t, nil
}

func (s *Store) PolicyEvents(ctx context.Context, id tenant.ID) ([]tenant.PolicyEvent, error) {
	return policydb.List(ctx, s.db.Read, id)
}

// byIDOrName finds the row of a tenant whose id or else whose name is given:
// tenant, and three times the latter.
const byIDOrName = ` WHERE tenant = ? AND (id = ? OR name = ?) ORDER BY CASE WHEN id = ? THEN 0 ELSE 1 END LIMIT 1`
