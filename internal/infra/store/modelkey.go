package store

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/tenant"
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
var ownKeyTable = newTable("model_keys",
	col("id", fixed, func(r *ownKeyRow) any { return &r.ID }),
	col("tenant", fixed, func(r *ownKeyRow) any { return &r.Tenant }),
	col("model", fixed, func(r *ownKeyRow) any { return &r.Model }),
	col("base_url", fixed, func(r *ownKeyRow) any { return &r.BaseURL }),
	col("api_key", fixed, func(r *ownKeyRow) any { return &r.sealed }),
	col("created_at", fixed, func(r *ownKeyRow) any { return timeAt(&r.CreatedAt) }),
)

func (s *models) scanOwn(sc scanner) (model.OwnKey, error) {
	var r ownKeyRow
	if err := ownKeyTable.scan(sc, &r); err != nil {
		return model.OwnKey{}, err
	}
	key, err := s.db.openText(r.sealed, ownKeyPlace(r.Tenant, r.ID))
	r.Key = key
	return r.OwnKey, about(err, "the key", r.ID)
}

func (s *models) SetOwnKey(ctx context.Context, k model.OwnKey, events ...tenant.PolicyEvent) error {
	err := s.db.write.transact(ctx, func(t *tx) error {
		values, err := ownKeyTable.values(insert, &ownKeyRow{k, s.db.sealText(k.Key, ownKeyPlace(k.Tenant, k.ID))})
		if err != nil {
			return err
		}
		if _, err := t.exec(ctx, `DELETE FROM model_keys WHERE tenant = ? AND model = ?`, k.Tenant, k.Model); err != nil {
			return err
		}
		if _, err := t.exec(ctx, ownKeyTable.insert, values...); err != nil {
			return err
		}
		return insertEvents(ctx, t, events)
	})
	return s.db.write.wrap("set a tenant's key for a model", err)
}

func (s *models) OwnKey(ctx context.Context, id tenant.ID, of string) (model.OwnKey, error) {
	k, err := s.scanOwn(s.db.read.row(ctx, `SELECT `+ownKeyTable.selected+` FROM model_keys WHERE tenant = ? AND model = ?`, id, of))
	return k, s.db.read.found("get a tenant's key for a model", err, model.ErrNoKey)
}

func (s *models) OwnKeys(ctx context.Context, id tenant.ID) ([]model.OwnKey, error) {
	rows, err := s.db.read.rows(ctx, `SELECT `+ownKeyTable.selected+` FROM model_keys WHERE tenant = ? ORDER BY seq`, id)
	all, err := collect(rows, err, s.scanOwn)
	return all, s.db.read.wrap("list a tenant's keys for models", err)
}

func (s *models) DeleteOwnKey(ctx context.Context, id tenant.ID, of string, events ...tenant.PolicyEvent) error {
	err := s.db.write.transact(ctx, func(t *tx) error {
		if err := execOne(ctx, t, model.ErrNoOwnKey, `DELETE FROM model_keys WHERE tenant = ? AND model = ?`, id, of); err != nil {
			return err
		}
		return insertEvents(ctx, t, events)
	})
	return s.db.write.wrap("delete a tenant's key for a model", err)
}
