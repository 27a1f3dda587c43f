package store

import (
	"context"
	"encoding/json"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Models is the store of models.
func (db *DB) Models() model.Store { return &models{db} }

type models struct{ db *DB }

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
var modelTable = newTable("models",
	col("id", fixed, func(r *modelRow) any { return &r.ID }),
	col("name", fixed, func(r *modelRow) any { return &r.Name }),
	col("provider", fixed, func(r *modelRow) any { return &r.Provider }),
	col("upstream", all, func(r *modelRow) any { return &r.Upstream }),
	col("base_url", all, func(r *modelRow) any { return &r.BaseURL }),
	col("api_key", all, func(r *modelRow) any { return &r.sealed }),
	col("prices", all, func(r *modelRow) any { return pricesAt(&r.Prices) }),
	col("context", all, func(r *modelRow) any { return &r.Context }),
	col("max_output", all, func(r *modelRow) any { return &r.MaxOutput }),
	col("capabilities", all, func(r *modelRow) any { return textsAt(&r.Capabilities) }),
	col("all_tenants", all, func(r *modelRow) any { return &r.AllTenants }),
	col("tenants", all, func(r *modelRow) any { return textsAt(&r.Tenants) }),
	col("plans", all, func(r *modelRow) any { return textsAt(&r.Plans) }),
	col("created_at", fixed, func(r *modelRow) any { return timeAt(&r.CreatedAt) }),
	col("updated_at", all, func(r *modelRow) any { return timeAt(&r.UpdatedAt) }),
)

// pricesAt is prices, as JSON.
func pricesAt(p *model.Prices) codec {
	read := func(text string) (model.Prices, error) {
		var row pricesRow
		err := json.Unmarshal([]byte(text), &row)
		return model.Prices(row), err
	}
	return coded[model.Prices, string]{p, read, func(p model.Prices) (any, error) { return jsonOf(pricesRow(p), false) }}
}

// textsAt is a list of texts of a type of their own, as JSON; "" for none.
func textsAt[T ~string](l *[]T) codec {
	read := func(text string) (l []T, err error) {
		if text != "" {
			err = json.Unmarshal([]byte(text), &l)
		}
		return l, err
	}
	return coded[[]T, string]{l, read, func(l []T) (any, error) { return jsonOf(l, len(l) == 0) }}
}

func (s *models) scan(sc scanner) (model.Record, error) {
	var r modelRow
	if err := modelTable.scan(sc, &r); err != nil {
		return model.Record{}, err
	}
	key, err := s.db.openText(r.sealed, modelKeyPlace(r.ID))
	r.Key = key
	return r.Record, about(err, "the key", r.ID)
}

func (s *models) sealed(r model.Record) *modelRow {
	return &modelRow{r, s.db.sealText(r.Key, modelKeyPlace(r.ID))}
}

func (s *models) CreateModel(ctx context.Context, r model.Record, events ...tenant.PolicyEvent) error {
	err := s.db.write.transact(ctx, func(t *tx) error {
		values, err := modelTable.values(insert, s.sealed(r))
		if err != nil {
			return err
		}
		if _, err := t.exec(ctx, modelTable.insert, values...); err != nil {
			return err
		}
		return insertEvents(ctx, t, events)
	})
	return s.db.write.named("create a model", err, "model", r.Name)
}

func (s *models) UpdateModel(ctx context.Context, r model.Record, events ...tenant.PolicyEvent) error {
	err := s.db.write.transact(ctx, func(t *tx) error {
		values, err := modelTable.values(update, s.sealed(r), r.ID)
		if err != nil {
			return err
		}
		if err := execOne(ctx, t, model.ErrNotFound, `UPDATE models SET `+modelTable.set+` WHERE id = ?`, values...); err != nil {
			return err
		}
		return insertEvents(ctx, t, events)
	})
	return s.db.write.wrap("update a model", err)
}

func (s *models) Model(ctx context.Context, idOrName string) (model.Record, error) {
	r, err := s.scan(s.db.read.row(ctx, `SELECT `+modelTable.selected+` FROM models WHERE id = ? OR name = ?`, idOrName, idOrName))
	return r, s.db.read.found("get a model", err, model.ErrNotFound)
}

func (s *models) Models(ctx context.Context) ([]model.Record, error) {
	rows, err := s.db.read.rows(ctx, `SELECT `+modelTable.selected+` FROM models ORDER BY seq`)
	all, err := collect(rows, err, s.scan)
	return all, s.db.read.wrap("list models", err)
}

func (s *models) DeleteModel(ctx context.Context, id string, events ...tenant.PolicyEvent) error {
	err := s.db.write.transact(ctx, func(t *tx) error {
		if err := execOne(ctx, t, model.ErrNotFound, `DELETE FROM models WHERE id = ?`, id); err != nil {
			return err
		}
		if _, err := t.exec(ctx, `DELETE FROM model_keys WHERE model = ?`, id); err != nil {
			return err
		}
		return insertEvents(ctx, t, events)
	})
	return s.db.write.wrap("delete a model", err)
}
