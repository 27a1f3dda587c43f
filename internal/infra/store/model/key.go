package model

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/tenant"
	policydb "github.com/atoll-run/atoll/internal/infra/store/policy"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

func ownKeyPlace(tenantID tenant.ID, id string) string {
	return "model_keys/api_key/" + tenantID + "/" + id
}

// ownKeyRow is a tenant's own key for a model as it is stored, sealed.
type ownKeyRow struct {
	model.OwnKey
	sealed []byte
}

// ownKeyTable is the table of tenants' own keys.
var ownKeyTable = sqldb.NewTable("model_keys",
	sqldb.Col("id", sqldb.Fixed, func(r *ownKeyRow) any { return &r.ID }),
	sqldb.Col("tenant", sqldb.Fixed, func(r *ownKeyRow) any { return &r.Tenant }),
	sqldb.Col("model", sqldb.Fixed, func(r *ownKeyRow) any { return &r.Model }),
	sqldb.Col("base_url", sqldb.Fixed, func(r *ownKeyRow) any { return &r.BaseURL }),
	sqldb.Col("api_key", sqldb.Fixed, func(r *ownKeyRow) any { return &r.sealed }),
	sqldb.Col("created_at", sqldb.Fixed, func(r *ownKeyRow) any { return sqldb.TimeAt(&r.CreatedAt) }),
)

func (s *Store) scanOwn(sc sqldb.Scanner) (model.OwnKey, error) {
	var r ownKeyRow
	if err := ownKeyTable.Scan(sc, &r); err != nil {
		return model.OwnKey{}, err
	}
	key, err := s.db.OpenText(r.sealed, ownKeyPlace(r.Tenant, r.ID))
	r.Key = key
	return r.OwnKey, sqldb.About(err, "the key", r.ID)
}

func (s *Store) SetOwnKey(ctx context.Context, k model.OwnKey, events ...tenant.PolicyEvent) error {
	return s.db.Transact(ctx, "set a tenant's key for a model", func(t *sqldb.Tx) error {
		values, err := ownKeyTable.Values(sqldb.Insert, &ownKeyRow{k, s.db.SealText(k.Key, ownKeyPlace(k.Tenant, k.ID))})
		if err != nil {
			return err
		}
		if _, err := t.Exec(ctx, `DELETE FROM model_keys WHERE tenant = ? AND model = ?`, k.Tenant, k.Model); err != nil {
			return err
		}
		if _, err := t.Exec(ctx, ownKeyTable.Insert, values...); err != nil {
			return err
		}
		return policydb.Insert(ctx, t, events...)
	})
}

func (s *Store) OwnKey(ctx context.Context, id tenant.ID, of string) (model.OwnKey, error) {
	k, err := s.scanOwn(s.db.Read.Row(ctx, `SELECT `+ownKeyTable.Selected+` FROM model_keys WHERE tenant = ? AND model = ?`, id, of))
	return k, s.db.Read.Found("get a tenant's key for a model", err, model.ErrNoKey)
}

func (s *Store) OwnKeys(ctx context.Context, id tenant.ID) ([]model.OwnKey, error) {
	all, err := sqldb.Select(ctx, s.db.Read, s.scanOwn, `SELECT `+ownKeyTable.Selected+` FROM model_keys WHERE tenant = ? ORDER BY seq`, id)
	return all, s.db.Read.Wrap("list a tenant's keys for models", err)
}

func (s *Store) DeleteOwnKey(ctx context.Context, id tenant.ID, of string, events ...tenant.PolicyEvent) error {
	return s.db.Transact(ctx, "delete a tenant's key for a model", func(t *sqldb.Tx) error {
		if err := sqldb.ExecOne(ctx, t, model.ErrNoOwnKey, `DELETE FROM model_keys WHERE tenant = ? AND model = ?`, id, of); err != nil {
			return err
		}
		return policydb.Insert(ctx, t, events...)
	})
}
