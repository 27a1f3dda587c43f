package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/vault"
)

// Vaults is the store of vaults.
func (db *DB) Vaults() vault.Store { return &vaults{db} }

type vaults struct{ db *DB }

const vaultColumns = `seq, id, tenant, about, created_at, updated_at, archived_at`

func vaultPlace(id vault.ID) string { return "vaults/about/" + string(id) }

// vaultRow is a vault with its place in lists.
type vaultRow struct {
	vault.Vault
	seq int64
}

func (s *vaults) scan(sc scanner) (r vaultRow, err error) {
	var sealed []byte
	var created, updated int64
	var archived sql.NullInt64
	v := &r.Vault
	if err := sc.Scan(&r.seq, &v.ID, &v.Tenant, &sealed, &created, &updated, &archived); err != nil {
		return r, err
	}
	v.CreatedAt, v.UpdatedAt = instant(created), instant(updated)
	if archived.Valid {
		v.ArchivedAt = instant(archived.Int64)
	}
	return r, about(s.open(v.Tenant, sealed, vaultPlace(v.ID), &v.About), "the description of vault", string(v.ID))
}

func (s *vaults) open(t tenant.ID, sealed []byte, place string, into any) error {
	plain, err := s.db.seal.OpenFor(t, sealed, place)
	if err != nil {
		return err
	}
	return json.Unmarshal(plain, into)
}

func (s *vaults) seal(t tenant.ID, of any, place string) ([]byte, error) {
	plain, err := json.Marshal(of)
	if err != nil {
		return nil, err
	}
	return s.db.seal.SealFor(t, plain, place), nil
}

// transact runs do while nothing else changes the tenant's vaults.
func (s *vaults) transact(ctx context.Context, step string, of tenant.ID, do func(t *tx, now time.Time) error) error {
	return s.db.write.wrap(step, s.db.write.transact(ctx, func(t *tx) error {
		if t.pool.postgres {
			if _, err := t.exec(ctx, `SELECT pg_advisory_xact_lock(?)`, lockOf("vaults", of)); err != nil {
				return err
			}
		}
		now, err := t.pool.clock(ctx, t)
		if err != nil {
			return err
		}
		return do(t, now)
	}))
}

func (s *vaults) Create(ctx context.Context, v *vault.Vault, most int, events ...tenant.PolicyEvent) error {
	sealed, err := s.seal(v.Tenant, v.About, vaultPlace(v.ID))
	if err != nil {
		return err
	}
	return s.transact(ctx, "create a vault", v.Tenant, func(t *tx, now time.Time) error {
		var has int
		if err := t.row(ctx, `SELECT COUNT(*) FROM vaults WHERE tenant = ?`, v.Tenant).Scan(&has); err != nil {
			return err
		}
		if err := vault.Room(has, most); err != nil {
			return err
		}
		v.CreatedAt, v.UpdatedAt, v.ArchivedAt = now, now, time.Time{}
		if _, err := t.exec(ctx, `INSERT INTO vaults (id, tenant, about, created_at, updated_at) VALUES (?, ?, ?, ?, ?)`, string(v.ID), v.Tenant, sealed, micros(now), micros(now)); err != nil {
			return err
		}
		return insertEvents(ctx, t, events)
	})
}

func (s *vaults) Get(ctx context.Context, t tenant.ID, id vault.ID) (*vault.Vault, error) {
	v, err := s.get(ctx, s.db.read, t, id)
	return v, s.db.read.wrap("get a vault", err)
}

func (s *vaults) get(ctx context.Context, q querier, t tenant.ID, id vault.ID) (*vault.Vault, error) {
	r, err := s.scan(q.row(ctx, `SELECT `+vaultColumns+` FROM vaults WHERE tenant = ? AND id = ?`, t, string(id)))
	if err == sql.ErrNoRows {
		return nil, vault.ErrNotFound
	}
	return &r.Vault, err
}

func (s *vaults) List(ctx context.Context, t tenant.ID, f vault.Filter) (page []vault.Vault, next string, err error) {
	query := `SELECT ` + vaultColumns + ` FROM vaults WHERE tenant = ?`
	if !f.Archived {
		query += ` AND archived_at IS NULL`
	}
	all, next, err := pageOf(ctx, s.db, skill.Page(f.Page), "vaults/"+t, query, "seq", []any{t}, s.scan, func(r *vaultRow) int64 { return r.seq })
	for i := range all {
		page = append(page, all[i].Vault)
	}
	return page, next, s.db.read.wrap("list vaults", err)
}

func (s *vaults) Update(ctx context.Context, t tenant.ID, id vault.ID, a vault.About, events ...tenant.PolicyEvent) (v *vault.Vault, err error) {
	sealed, err := s.seal(t, a, vaultPlace(id))
	if err != nil {
		return nil, err
	}
	err = s.transact(ctx, "change a vault", t, func(tx *tx, now time.Time) error {
		if v, err = s.get(ctx, tx, t, id); err != nil {
			return err
		}
		if v.Archived() {
			return vault.ErrArchived
		}
		v.About, v.UpdatedAt = a, now
		if _, err := tx.exec(ctx, `UPDATE vaults SET about = ?, updated_at = ? WHERE id = ?`, sealed, micros(now), string(id)); err != nil {
			return err
		}
		return insertEvents(ctx, tx, events)
	})
	return v, err
}

func (s *vaults) Archive(ctx context.Context, t tenant.ID, id vault.ID, events ...tenant.PolicyEvent) (v *vault.Vault, err error) {
	err = s.transact(ctx, "archive a vault", t, func(tx *tx, now time.Time) error {
		if v, err = s.get(ctx, tx, t, id); err != nil || v.Archived() {
			return err
		}
		v.ArchivedAt, v.UpdatedAt = now, now
		if _, err := tx.exec(ctx, `UPDATE vaults SET archived_at = ?, updated_at = ? WHERE id = ?`, micros(now), micros(now), string(id)); err != nil {
			return err
		}
		if _, err := tx.exec(ctx, `UPDATE vault_credentials SET archived_at = ?, updated_at = ?, secret = NULL, version = version + 1 WHERE vault = ? AND archived_at IS NULL`, micros(now), micros(now), string(id)); err != nil {
			return err
		}
		return insertEvents(ctx, tx, events)
	})
	return v, err
}

func (s *vaults) Delete(ctx context.Context, t tenant.ID, id vault.ID, events ...tenant.PolicyEvent) error {
	return s.transact(ctx, "delete a vault", t, func(tx *tx, _ time.Time) error {
		n, err := tx.exec(ctx, `DELETE FROM vaults WHERE tenant = ? AND id = ?`, t, string(id))
		switch {
		case err != nil:
			return err
		case n == 0:
			return vault.ErrNotFound
		}
		return insertEvents(ctx, tx, events)
	})
}
