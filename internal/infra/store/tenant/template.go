package tenant

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/tenant"
	policydb "github.com/atoll-run/atoll/internal/infra/store/policy"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

var templateTable = sqldb.NewTable("templates",
	sqldb.Col("tenant", sqldb.Fixed, func(t *tenant.Template) any { return &t.Tenant }),
	sqldb.Col("name", sqldb.Fixed, func(t *tenant.Template) any { return &t.Name }),
	sqldb.Col("sandbox", sqldb.All, func(t *tenant.Template) any { return &t.Sandbox }),
)

func (s *Store) PutTemplate(ctx context.Context, t tenant.Template, e tenant.PolicyEvent) error {
	return s.db.Transact(ctx, "put a template", func(tx *sqldb.Tx) error {
		values, err := templateTable.Values(sqldb.Insert, &t)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, templateTable.Insert+` ON CONFLICT (tenant, name) DO UPDATE SET `+templateTable.Excluded(), values...); err != nil {
			return err
		}
		e.Tenant = t.Tenant
		return policydb.Insert(ctx, tx, e)
	})
}

func (s *Store) Template(ctx context.Context, tenantID tenant.ID, name string) (tenant.Template, error) {
	t, err := templateTable.Row(s.db.Read.Row(ctx, `SELECT `+templateTable.Selected+` FROM templates WHERE tenant = ? AND name = ?`, tenantID, name))
	return t, s.db.Read.Found("get a template", err, tenant.ErrNoTemplate)
}

func (s *Store) Templates(ctx context.Context, tenantID tenant.ID) ([]tenant.Template, error) {
	all, err := sqldb.Select(ctx, s.db.Read, templateTable.Row, `SELECT `+templateTable.Selected+` FROM templates WHERE tenant = ? ORDER BY seq`, tenantID)
	return all, s.db.Read.Wrap("list templates", err)
}

func (s *Store) DeleteTemplate(ctx context.Context, tenantID tenant.ID, name string, e tenant.PolicyEvent) error {
	return s.db.Transact(ctx, "delete a template", func(tx *sqldb.Tx) error {
		if err := sqldb.ExecOne(ctx, tx, tenant.ErrNoTemplate, `DELETE FROM templates WHERE tenant = ? AND name = ?`, tenantID, name); err != nil {
			return err
		}
		e.Tenant = tenantID
		return policydb.Insert(ctx, tx, e)
	})
}
