package tenant

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/tenant"
	policydb "github.com/atoll-run/atoll/internal/infra/store/policy"
	sandboxdb "github.com/atoll-run/atoll/internal/infra/store/sandbox"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

// environmentRow is an environment with what of it is stored sealed.
type environmentRow struct {
	tenant.Environment
	secrets, bound []byte
}

// environmentTable is the table of environments. An outer join may find none:
// then its ID is empty.
var environmentTable = sqldb.NewTable("environments",
	sqldb.Col("id", sqldb.Fixed, func(r *environmentRow) any { return sqldb.NullAt(&r.ID) }),
	sqldb.Col("tenant", sqldb.Fixed, func(r *environmentRow) any { return sqldb.NullAt(&r.Tenant) }),
	sqldb.Col("name", sqldb.All, func(r *environmentRow) any { return sqldb.NullAt(&r.Name) }),
	sqldb.Col("image", sqldb.All, func(r *environmentRow) any { return sqldb.NullAt(&r.Image) }),
	sqldb.Col("limits", sqldb.All, func(r *environmentRow) any { return sqldb.LimitsAt(&r.Limits) }),
	sqldb.Col("env", sqldb.All, func(r *environmentRow) any { return sqldb.MapAt(&r.Env) }),
	sqldb.Col("secrets", sqldb.All, func(r *environmentRow) any { return &r.secrets }),
	sqldb.Col("bound", sqldb.All, func(r *environmentRow) any { return &r.bound }),
	sqldb.Col("permissions", sqldb.All, func(r *environmentRow) any { return sqldb.PermissionsAt(&r.Permissions) }),
	sqldb.Col("profile", sqldb.All, func(r *environmentRow) any { return sqldb.NullAt(&r.Profile) }),
	sqldb.Col("base_template", sqldb.All, func(r *environmentRow) any { return sqldb.NullAt(&r.Template) }),
	sqldb.Col("timeout", sqldb.All, func(r *environmentRow) any { return sqldb.DurationAt(&r.Timeout) }),
	sqldb.Col("packages", sqldb.All, func(r *environmentRow) any { return sqldb.PackagesAt(&r.Packages) }),
	sqldb.Col("isolation", sqldb.All, func(r *environmentRow) any { return sqldb.NullAt(&r.Isolation) }),
	sqldb.Col("allow_mcp", sqldb.All, func(r *environmentRow) any { return sqldb.NullAt(&r.AllowMCP) }),
	sqldb.Col("created_at", sqldb.Fixed, func(r *environmentRow) any { return sqldb.TimeAt(&r.CreatedAt) }),
)

// openEnvironment opens what of a row is sealed.
func (s *Store) openEnvironment(r *environmentRow) (e tenant.Environment, err error) {
	e = r.Environment
	e.Secrets, e.Bound, err = s.openSecrets(r.secrets, r.bound, SecretsPlace(e.ID))
	return e, sqldb.About(err, "variables", e.ID)
}

// sealEnvironment is the way back.
func (s *Store) sealEnvironment(e tenant.Environment) (r environmentRow, err error) {
	r.Environment = e
	r.secrets, r.bound, err = s.sealSecrets(e.Secrets, e.Bound, SecretsPlace(e.ID))
	return r, err
}

// SecretsPlace is the place that an environment's secret variables are sealed for.
func SecretsPlace(id string) string { return "environments/secrets/" + id }

func (s *Store) scanEnvironment(sc sqldb.Scanner) (tenant.Environment, error) {
	var r environmentRow
	if err := environmentTable.Scan(sc, &r); err != nil {
		return tenant.Environment{}, err
	}
	return s.openEnvironment(&r)
}

func (s *Store) CreateEnvironment(ctx context.Context, e tenant.Environment, events ...tenant.PolicyEvent) error {
	row, err := s.sealEnvironment(e)
	if err != nil {
		return s.db.Write.Wrap("create an environment", err)
	}
	err = s.db.Write.Transact(ctx, func(t *sqldb.Tx) error {
		if err := insertEnvironment(ctx, t, row); err != nil {
			return err
		}
		return policydb.Insert(ctx, t, events...)
	})
	return s.db.Write.Named("create an environment", err, "environment", e.Name)
}

func insertEnvironment(ctx context.Context, t *sqldb.Tx, row environmentRow) error {
	if err := t.OrNow(ctx, &row.CreatedAt); err != nil {
		return err
	}
	return environmentTable.Add(ctx, t, &row)
}

func (s *Store) UpdateEnvironment(ctx context.Context, e tenant.Environment) error {
	row, err := s.sealEnvironment(e)
	if err != nil {
		return s.db.Write.Wrap("update an environment", err)
	}
	values, err := environmentTable.Values(sqldb.Update, &row, e.ID, e.Tenant)
	if err != nil {
		return s.db.Write.Wrap("update an environment", err)
	}
	err = sqldb.ExecOne(ctx, s.db.Write, tenant.ErrNoEnvironment, `UPDATE environments SET `+environmentTable.Set+` WHERE id = ? AND tenant = ?`, values...)
	return s.db.Write.Named("update an environment", err, "environment", e.Name)
}

func (s *Store) Environment(ctx context.Context, id tenant.ID, idOrName string) (tenant.Environment, error) {
	e, err := s.scanEnvironment(s.db.Read.Row(ctx, `SELECT `+environmentTable.Selected+` FROM environments`+byIDOrName, id, idOrName, idOrName, idOrName))
	return e, s.db.Read.Found("get an environment", err, tenant.ErrNoEnvironment)
}

func (s *Store) Environments(ctx context.Context, id tenant.ID) ([]tenant.Environment, error) {
	all, err := sqldb.Select(ctx, s.db.Read, s.scanEnvironment, `SELECT `+environmentTable.Selected+` FROM environments WHERE tenant = ? ORDER BY seq`, id)
	return all, s.db.Read.Wrap("list environments", err)
}

// DeleteEnvironment revokes the expired keys that are bound to it as well, so
// that a later expiry cannot bring one back without its environment.
func (s *Store) DeleteEnvironment(ctx context.Context, tenantID tenant.ID, id string, events ...tenant.PolicyEvent) error {
	err := s.db.Write.Transact(ctx, func(t *sqldb.Tx) error {
		if err := t.Row(ctx, `SELECT id FROM environments WHERE id = ? AND tenant = ?`+t.Pool.LockRow(), id, tenantID).Scan(&id); err != nil {
			return err
		}
		now, err := t.Clock(ctx)
		if err != nil {
			return err
		}
		var living int
		if err := t.Row(ctx, `SELECT count(*) FROM keys WHERE environment = ? AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)`,
			id, sqldb.Micros(now)).Scan(&living); err != nil {
			return err
		}
		if living > 0 {
			return tenant.KeysBound(living)
		}
		if _, err := t.Exec(ctx, `UPDATE keys SET revoked_at = ? WHERE environment = ? AND revoked_at IS NULL`, sqldb.Micros(now), id); err != nil {
			return err
		}
		if err := sandboxdb.DeleteSnapshotsOf(ctx, t, tenantID, id); err != nil {
			return err
		}
		if _, err := t.Exec(ctx, `UPDATE sandboxes SET bereft = TRUE WHERE tenant = ? AND environment = ? AND state <> 'destroyed'`, tenantID, id); err != nil {
			return err
		}
		if _, err = t.Exec(ctx, `DELETE FROM environments WHERE id = ?`, id); err != nil {
			return err
		}
		return policydb.Insert(ctx, t, events...)
	})
	return s.db.Write.Found("delete an environment", err, tenant.ErrNoEnvironment)
}
