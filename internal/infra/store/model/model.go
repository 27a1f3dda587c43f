// Package model stores models and the keys of tenants for them.
package model

import (
	"context"
	"encoding/json"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/tenant"
	policydb "github.com/atoll-run/atoll/internal/infra/store/policy"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

// Store implements model.Store.
type Store struct{ db *sqldb.DB }

// New returns the store in a database.
func New(db *sqldb.DB) *Store { return &Store{db} }

// pricesRow is how prices are stored. A name is never given another meaning.
type pricesRow struct {
	Input      model.Price `json:"input,omitempty"`
	Output     model.Price `json:"output,omitempty"`
	CacheRead  model.Price `json:"cache_read,omitempty"`
	CacheWrite model.Price `json:"cache_write,omitempty"`
}

func modelKeyPlace(id string) string { return "models/api_key/" + id }

// modelRow is a model with its key as it is stored, sealed.
type modelRow struct {
	model.Record
	sealed []byte
}

// modelTable is the table of models.
var modelTable = sqldb.NewTable("models",
	sqldb.Col("id", sqldb.Fixed, func(r *modelRow) any { return &r.ID }),
	sqldb.Col("name", sqldb.Fixed, func(r *modelRow) any { return &r.Name }),
	sqldb.Col("provider", sqldb.Fixed, func(r *modelRow) any { return &r.Provider }),
	sqldb.Col("upstream", sqldb.All, func(r *modelRow) any { return &r.Upstream }),
	sqldb.Col("base_url", sqldb.All, func(r *modelRow) any { return &r.BaseURL }),
	sqldb.Col("api_key", sqldb.All, func(r *modelRow) any { return &r.sealed }),
	sqldb.Col("prices", sqldb.All, func(r *modelRow) any { return pricesAt(&r.Prices) }),
	sqldb.Col("context", sqldb.All, func(r *modelRow) any { return &r.Context }),
	sqldb.Col("max_output", sqldb.All, func(r *modelRow) any { return &r.MaxOutput }),
	sqldb.Col("capabilities", sqldb.All, func(r *modelRow) any { return sqldb.TextsAt(&r.Capabilities) }),
	sqldb.Col("all_tenants", sqldb.All, func(r *modelRow) any { return &r.AllTenants }),
	sqldb.Col("tenants", sqldb.All, func(r *modelRow) any { return sqldb.TextsAt(&r.Tenants) }),
	sqldb.Col("plans", sqldb.All, func(r *modelRow) any { return sqldb.TextsAt(&r.Plans) }),
	sqldb.Col("created_at", sqldb.Fixed, func(r *modelRow) any { return sqldb.TimeAt(&r.CreatedAt) }),
	sqldb.Col("updated_at", sqldb.All, func(r *modelRow) any { return sqldb.TimeAt(&r.UpdatedAt) }),
)

// pricesAt is prices, as JSON.
func pricesAt(p *model.Prices) sqldb.Codec {
	read := func(text string) (model.Prices, error) {
		var row pricesRow
		err := json.Unmarshal([]byte(text), &row)
		return model.Prices(row), err
	}
	return sqldb.Coded(p, read, func(p model.Prices) (any, error) { return sqldb.JSONOf(pricesRow(p), false) })
}

func (s *Store) scan(sc sqldb.Scanner) (model.Record, error) {
	var r modelRow
	if err := modelTable.Scan(sc, &r); err != nil {
		return model.Record{}, err
	}
	key, err := s.db.OpenText(r.sealed, modelKeyPlace(r.ID))
	r.Key = key
	return r.Record, sqldb.About(err, "the key", r.ID)
}

func (s *Store) sealed(r model.Record) *modelRow {
	return &modelRow{r, s.db.SealText(r.Key, modelKeyPlace(r.ID))}
}

func (s *Store) CreateModel(ctx context.Context, r model.Record, events ...tenant.PolicyEvent) error {
	err := s.db.Write.Transact(ctx, func(t *sqldb.Tx) error {
		if err := modelTable.Add(ctx, t, s.sealed(r)); err != nil {
			return err
		}
		return policydb.Insert(ctx, t, events...)
	})
	return s.db.Write.Named("create a model", err, "model", r.Name)
}

func (s *Store) UpdateModel(ctx context.Context, r model.Record, events ...tenant.PolicyEvent) error {
	return s.db.Transact(ctx, "update a model", func(t *sqldb.Tx) error {
		values, err := modelTable.Values(sqldb.Update, s.sealed(r), r.ID)
		if err != nil {
			return err
		}
		if err := sqldb.ExecOne(ctx, t, model.ErrNotFound, `UPDATE models SET `+modelTable.Set+` WHERE id = ?`, values...); err != nil {
			return err
		}
		return policydb.Insert(ctx, t, events...)
	})
}

func (s *Store) Model(ctx context.Context, idOrName string) (model.Record, error) {
	r, err := s.scan(s.db.Read.Row(ctx, `SELECT `+modelTable.Selected+` FROM models WHERE id = ? OR name = ?`, idOrName, idOrName))
	return r, s.db.Read.Found("get a model", err, model.ErrNotFound)
}

func (s *Store) Models(ctx context.Context) ([]model.Record, error) {
	all, err := sqldb.Select(ctx, s.db.Read, s.scan, `SELECT `+modelTable.Selected+` FROM models ORDER BY seq`)
	return all, s.db.Read.Wrap("list models", err)
}

func (s *Store) DeleteModel(ctx context.Context, id string, events ...tenant.PolicyEvent) error {
	return s.db.Transact(ctx, "delete a model", func(t *sqldb.Tx) error {
		if err := sqldb.ExecOne(ctx, t, model.ErrNotFound, `DELETE FROM models WHERE id = ?`, id); err != nil {
			return err
		}
		if _, err := t.Exec(ctx, `DELETE FROM model_keys WHERE model = ?`, id); err != nil {
			return err
		}
		return policydb.Insert(ctx, t, events...)
	})
}
