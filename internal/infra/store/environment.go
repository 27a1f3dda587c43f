package store

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/tenant"
)

// environmentRow is an environment with what of it is stored sealed.
type environmentRow struct {
	tenant.Environment
	secrets, bound []byte
}

// environmentTable is the table of environments. An outer join may find none:
// then its ID is empty.
var environmentTable = newTable("environments",
	col("id", fixed, func(r *environmentRow) any { return textAt(&r.ID) }),
	col("tenant", fixed, func(r *environmentRow) any { return textAt(&r.Tenant) }),
	col("name", all, func(r *environmentRow) any { return textAt(&r.Name) }),
	col("image", all, func(r *environmentRow) any { return textAt(&r.Image) }),
	col("limits", all, func(r *environmentRow) any { return limitsAt(&r.Limits) }),
	col("env", all, func(r *environmentRow) any { return mapAt(&r.Env) }),
	col("secrets", all, func(r *environmentRow) any { return &r.secrets }),
	col("bound", all, func(r *environmentRow) any { return &r.bound }),
	col("permissions", all, func(r *environmentRow) any { return permissionsAt(&r.Permissions) }),
	col("profile", all, func(r *environmentRow) any { return textAt(&r.Profile) }),
	col("base_template", all, func(r *environmentRow) any { return textAt(&r.Template) }),
	col("timeout", all, func(r *environmentRow) any { return durationAt(&r.Timeout) }),
	col("packages", all, func(r *environmentRow) any { return packagesAt(&r.Packages) }),
	col("isolation", all, func(r *environmentRow) any { return textAt(&r.Isolation) }),
	col("allow_mcp", all, func(r *environmentRow) any { return boolAt(&r.AllowMCP) }),
	col("created_at", fixed, func(r *environmentRow) any { return timeAt(&r.CreatedAt) }),
)

// openEnvironment opens what of a row is sealed.
func (s *tenants) openEnvironment(r *environmentRow) (e tenant.Environment, err error) {
	e = r.Environment
	e.Secrets, e.Bound, err = s.db.openSecrets(r.secrets, r.bound, secretsPlace(e.ID))
	return e, about(err, "variables", e.ID)
}

// sealEnvironment is the way back.
func (s *tenants) sealEnvironment(e tenant.Environment) (r environmentRow, err error) {
	r.Environment = e
	r.secrets, r.bound, err = s.db.sealSecrets(e.Secrets, e.Bound, secretsPlace(e.ID))
	return r, err
}

func secretsPlace(id string) string { return "environments/secrets/" + id }

func (s *tenants) scanEnvironment(sc scanner) (tenant.Environment, error) {
	var r environmentRow
	if err := environmentTable.scan(sc, &r); err != nil {
		return tenant.Environment{}, err
	}
	return s.openEnvironment(&r)
}

func (s *tenants) CreateEnvironment(ctx context.Context, e tenant.Environment, events ...tenant.PolicyEvent) error {
	row, err := s.sealEnvironment(e)
	if err != nil {
		return s.db.write.wrap("create an environment", err)
	}
	err = s.db.write.transact(ctx, func(t *tx) error {
		if err := insertEnvironment(ctx, t, row); err != nil {
			return err
		}
		return insertEvents(ctx, t, events)
	})
	return s.db.write.named("create an environment", err, "environment", e.Name)
}

func insertEnvironment(ctx context.Context, t *tx, row environmentRow) error {
	if err := t.orNow(ctx, &row.CreatedAt); err != nil {
		return err
	}
	values, err := environmentTable.values(insert, &row)
	if err != nil {
		return err
	}
	_, err = t.exec(ctx, environmentTable.insert, values...)
	return err
}

func (s *tenants) UpdateEnvironment(ctx context.Context, e tenant.Environment) error {
	row, err := s.sealEnvironment(e)
	if err != nil {
		return s.db.write.wrap("update an environment", err)
	}
	values, err := environmentTable.values(update, &row, e.ID, e.Tenant)
	if err != nil {
		return s.db.write.wrap("update an environment", err)
	}
	err = execOne(ctx, s.db.write, tenant.ErrNoEnvironment, `UPDATE environments SET `+environmentTable.set+` WHERE id = ? AND tenant = ?`, values...)
	return s.db.write.named("update an environment", err, "environment", e.Name)
}

func (s *tenants) Environment(ctx context.Context, id tenant.ID, idOrName string) (tenant.Environment, error) {
	e, err := s.scanEnvironment(s.db.read.row(ctx, `SELECT `+environmentTable.selected+` FROM environments`+byIDOrName, id, idOrName, idOrName, idOrName))
	return e, s.db.read.found("get an environment", err, tenant.ErrNoEnvironment)
}

func (s *tenants) Environments(ctx context.Context, id tenant.ID) ([]tenant.Environment, error) {
	rows, err := s.db.read.rows(ctx, `SELECT `+environmentTable.selected+` FROM environments WHERE tenant = ? ORDER BY seq`, id)
	all, err := collect(rows, err, s.scanEnvironment)
	return all, s.db.read.wrap("list environments", err)
}

// DeleteEnvironment revokes the expired keys that are bound to it as well, so
// that a later expiry cannot bring one back without its environment.
func (s *tenants) DeleteEnvironment(ctx context.Context, tenantID tenant.ID, id string, events ...tenant.PolicyEvent) error {
	err := s.db.write.transact(ctx, func(t *tx) error {
		if err := t.row(ctx, `SELECT id FROM environments WHERE id = ? AND tenant = ?`+lockRow(t.pool), id, tenantID).Scan(&id); err != nil {
			return err
		}
		now, err := t.pool.clock(ctx, t)
		if err != nil {
			return err
		}
		var living int
		if err := t.row(ctx, `SELECT count(*) FROM keys WHERE environment = ? AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)`,
			id, micros(now)).Scan(&living); err != nil {
			return err
		}
		if living > 0 {
			return tenant.KeysBound(living)
		}
		if _, err := t.exec(ctx, `UPDATE keys SET revoked_at = ? WHERE environment = ? AND revoked_at IS NULL`, micros(now), id); err != nil {
			return err
		}
		if err := deleteSnapshotsOf(ctx, t, tenantID, id); err != nil {
			return err
		}
		if _, err := t.exec(ctx, `UPDATE sandboxes SET bereft = TRUE WHERE tenant = ? AND environment = ? AND state <> 'destroyed'`, tenantID, id); err != nil {
			return err
		}
		if _, err = t.exec(ctx, `DELETE FROM environments WHERE id = ?`, id); err != nil {
			return err
		}
		return insertEvents(ctx, t, events)
	})
	return s.db.write.found("delete an environment", err, tenant.ErrNoEnvironment)
}

// lockRow locks what was read against everything, also against rows that would
// refer to it.
func lockRow(p *pool) string {
	if p.postgres {
		return ` FOR UPDATE`
	}
	return ``
}
