package store

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/tenant"
)

func scanTemplate(sc scanner) (t tenant.Template, err error) {
	return t, sc.Scan(&t.Tenant, &t.Name, &t.Sandbox)
}

func (s *tenants) PutTemplate(ctx context.Context, t tenant.Template, e tenant.PolicyEvent) error {
	err := s.db.write.transact(ctx, func(tx *tx) error {
		if _, err := tx.exec(ctx, `INSERT INTO templates (tenant, name, sandbox) VALUES (?, ?, ?)
			ON CONFLICT (tenant, name) DO UPDATE SET sandbox = excluded.sandbox`, t.Tenant, t.Name, string(t.Sandbox)); err != nil {
			return err
		}
		e.Tenant = t.Tenant
		return insertEvent(ctx, tx, e)
	})
	return s.db.write.wrap("put a template", err)
}

func (s *tenants) Template(ctx context.Context, tenantID tenant.ID, name string) (tenant.Template, error) {
	t, err := scanTemplate(s.db.read.row(ctx, `SELECT tenant, name, sandbox FROM templates WHERE tenant = ? AND name = ?`, tenantID, name))
	return t, s.db.read.found("get a template", err, tenant.ErrNoTemplate)
}

func (s *tenants) Templates(ctx context.Context, tenantID tenant.ID) ([]tenant.Template, error) {
	rows, err := s.db.read.rows(ctx, `SELECT tenant, name, sandbox FROM templates WHERE tenant = ? ORDER BY seq`, tenantID)
	all, err := collect(rows, err, scanTemplate)
	return all, s.db.read.wrap("list templates", err)
}

func (s *tenants) DeleteTemplate(ctx context.Context, tenantID tenant.ID, name string, e tenant.PolicyEvent) error {
	err := s.db.write.transact(ctx, func(tx *tx) error {
		if err := execOne(ctx, tx, tenant.ErrNoTemplate, `DELETE FROM templates WHERE tenant = ? AND name = ?`, tenantID, name); err != nil {
			return err
		}
		e.Tenant = tenantID
		return insertEvent(ctx, tx, e)
	})
	return s.db.write.wrap("delete a template", err)
}
