package store

import (
	"context"
	"database/sql"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// tenants is the tenant.Store.
type tenants struct{ db *DB }

var _ tenant.Store = (*tenants)(nil)

// tenantTable is the table of tenants.
var tenantTable = newTable("tenants",
	col("id", fixed, func(t *tenant.Tenant) any { return &t.ID }),
	col("name", all, func(t *tenant.Tenant) any { return &t.Name }),
	col("plan", all, func(t *tenant.Tenant) any { return &t.Plan }),
	col("sandbox_enabled", all, func(t *tenant.Tenant) any { return &t.SandboxEnabled }),
	col("network_enabled", all, func(t *tenant.Tenant) any { return &t.NetworkEnabled }),
	col("key_isolation_enabled", all, func(t *tenant.Tenant) any { return &t.KeyIsolationEnabled }),
	col("root_enabled", all, func(t *tenant.Tenant) any { return &t.RootEnabled }),
	col("tier", all, func(t *tenant.Tenant) any { return &t.Tier }),
	col("monthly_credits", all, func(t *tenant.Tenant) any { return &t.MonthlyCredits }),
	col("monthly_cost", all, func(t *tenant.Tenant) any { return &t.MonthlyCost }),
	col("redaction_off", all, func(t *tenant.Tenant) any { return listAt(&t.RedactionOff) }),
	col("audit_days", all, func(t *tenant.Tenant) any { return &t.AuditDays }),
	col("audit_text", all, func(t *tenant.Tenant) any { return &t.AuditText }),
	col("daily_cap", all, func(t *tenant.Tenant) any { return &t.DailyCap }),
	col("hourly_cap", all, func(t *tenant.Tenant) any { return &t.HourlyCap }),
	col("created_at", fixed, func(t *tenant.Tenant) any { return timeAt(&t.CreatedAt) }),
	col("disabled_at", all, func(t *tenant.Tenant) any { return maybeTimeAt(&t.DisabledAt) }),
	col("deleted_at", read, func(t *tenant.Tenant) any { return maybeTimeAt(&t.DeletedAt) }),
	col("erased_at", read, func(t *tenant.Tenant) any { return maybeTimeAt(&t.ErasedAt) }),
)

func scanTenant(sc scanner) (t tenant.Tenant, err error) { return t, tenantTable.scan(sc, &t) }

func (s *tenants) CreateTenant(ctx context.Context, t tenant.Tenant, events ...tenant.PolicyEvent) error {
	err := s.db.write.transact(ctx, func(tx *tx) error {
		if err := insertTenant(ctx, tx, t); err != nil {
			return err
		}
		return insertEvents(ctx, tx, events)
	})
	return s.db.write.named("create a tenant", err, "tenant", t.Name)
}

func (s *tenants) CreateTenantWithEnvironment(ctx context.Context, t tenant.Tenant, e tenant.Environment, events ...tenant.PolicyEvent) error {
	row, err := s.sealEnvironment(e)
	if err != nil {
		return s.db.write.wrap("create an environment", err)
	}
	err = s.db.write.transact(ctx, func(tx *tx) error {
		if err := insertTenant(ctx, tx, t); err != nil {
			return err
		}
		if err := insertEnvironment(ctx, tx, row); err != nil {
			return err
		}
		return insertEvents(ctx, tx, events)
	})
	return s.db.write.named("create a tenant", err, "tenant", t.Name)
}

func insertTenant(ctx context.Context, tx *tx, t tenant.Tenant) error {
	if err := tx.orNow(ctx, &t.CreatedAt); err != nil {
		return err
	}
	values, err := tenantTable.values(insert, &t)
	if err != nil {
		return err
	}
	_, err = tx.exec(ctx, tenantTable.insert, values...)
	return err
}

// listOf is a list of text as it is stored.
func listOf(list []string) (string, error) {
	args := make([]any, len(list))
	for i, s := range list {
		args[i] = s
	}
	if err := checkText(args); err != nil {
		return "", err
	}
	return jsonOf(list, len(list) == 0)
}

// named says which name was taken.
func (p *pool) named(step string, err error, kind, name string) error {
	switch {
	case violates(err, unique):
		return fault.Wrap(fault.Conflict, err, kind+" "+name+" exists already")
	default:
		return p.wrap(step, err)
	}
}

func (s *tenants) Tenant(ctx context.Context, idOrName string) (tenant.Tenant, error) {
	t, err := scanTenant(s.db.read.row(ctx, `SELECT `+tenantTable.selected+` FROM tenants WHERE id = ? OR name = ? ORDER BY CASE WHEN id = ? THEN 0 ELSE 1 END LIMIT 1`,
		idOrName, idOrName, idOrName))
	return t, s.db.read.found("get a tenant", err, tenant.ErrNotFound)
}

func (s *tenants) Tenants(ctx context.Context) ([]tenant.Tenant, error) {
	rows, err := s.db.read.rows(ctx, `SELECT `+tenantTable.selected+` FROM tenants WHERE erased_at IS NULL ORDER BY seq`)
	all, err := collect(rows, err, scanTenant)
	return all, s.db.read.wrap("list tenants", err)
}

func (s *tenants) ChangeTenant(ctx context.Context, id tenant.ID, change func(*tenant.Tenant) ([]tenant.PolicyEvent, error)) (tenant.Tenant, error) {
	var t tenant.Tenant
	err := s.db.write.transact(ctx, func(tx *tx) (err error) {
		if t, err = scanTenant(tx.row(ctx, `SELECT `+tenantTable.selected+` FROM tenants WHERE id = ?`+tx.pool.forUpdate(), id)); err != nil {
			return err
		}
		events, err := change(&t)
		if err != nil {
			return err
		}
		values, err := tenantTable.values(update, &t, id)
		if err != nil {
			return err
		}
		if _, err := tx.exec(ctx, `UPDATE tenants SET `+tenantTable.set+` WHERE id = ?`, values...); err != nil {
			return err
		}
		for i := range events {
			events[i].Tenant = id
		}
		return insertEvents(ctx, tx, events)
	})
	if err == sql.ErrNoRows {
		return tenant.Tenant{}, s.db.write.found("change a tenant", err, tenant.ErrNotFound)
	}
	if err != nil {
		return tenant.Tenant{}, s.db.write.named("change a tenant", err, "tenant", t.Name)
	}
	t.ID = id
	return t, nil
}

// forUpdate locks the rows a transaction has read. Rows that refer to them can
// still be written.
func (p *pool) forUpdate() string {
	if p.postgres {
		return ` FOR NO KEY UPDATE`
	}
	return ``
}

func insertEvent(ctx context.Context, tx *tx, e tenant.PolicyEvent) error {
	if err := tx.orNow(ctx, &e.CreatedAt); err != nil {
		return err
	}
	_, err := tx.exec(ctx, `INSERT INTO policy_events (tenant, actor, field, old_value, new_value, created_at) VALUES (?, ?, ?, ?, ?, ?)`,
		e.Tenant, e.Actor, e.Field, e.Old, e.New, micros(e.CreatedAt))
	return err
}

func insertEvents(ctx context.Context, tx *tx, events []tenant.PolicyEvent) error {
	for _, e := range events {
		if err := insertEvent(ctx, tx, e); err != nil {
			return err
		}
	}
	return nil
}

func (s *tenants) PolicyEvents(ctx context.Context, id tenant.ID) ([]tenant.PolicyEvent, error) {
	rows, err := s.db.read.rows(ctx, `SELECT id, tenant, actor, field, old_value, new_value, created_at FROM policy_events WHERE tenant = ? ORDER BY id`, id)
	all, err := collect(rows, err, func(sc scanner) (e tenant.PolicyEvent, err error) {
		var created int64
		err = sc.Scan(&e.ID, &e.Tenant, &e.Actor, &e.Field, &e.Old, &e.New, &created)
		e.CreatedAt = instant(created)
		return e, err
	})
	return all, s.db.read.wrap("list policy events", err)
}
