// Package vault stores vaults and their credentials.
package vault

import (
	"context"
	"database/sql"
	"time"

	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/vault"
	policydb "github.com/atoll-run/atoll/internal/infra/store/policy"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

// Store implements vault.Store.
type Store struct{ db *sqldb.DB }

// New returns the store in a database.
func New(db *sqldb.DB) *Store { return &Store{db} }

func vaultPlace(id vault.ID) string { return "vaults/about/" + string(id) }

// vaultRow is a vault with its place in lists and its sealed description.
type vaultRow struct {
	vault.Vault
	seq    int64
	sealed []byte
}

var vaultTable = sqldb.NewTable("vaults",
	sqldb.Col("seq", sqldb.Read, func(r *vaultRow) any { return &r.seq }),
	sqldb.Col("id", sqldb.Read, func(r *vaultRow) any { return &r.ID }),
	sqldb.Col("tenant", sqldb.Read, func(r *vaultRow) any { return &r.Tenant }),
	sqldb.Col("about", sqldb.Read, func(r *vaultRow) any { return &r.sealed }),
	sqldb.Col("created_at", sqldb.Read, func(r *vaultRow) any { return sqldb.TimeAt(&r.CreatedAt) }),
	sqldb.Col("updated_at", sqldb.Read, func(r *vaultRow) any { return sqldb.TimeAt(&r.UpdatedAt) }),
	sqldb.Col("archived_at", sqldb.Read, func(r *vaultRow) any { return sqldb.ZeroTimeAt(&r.ArchivedAt) }),
)

func (s *Store) scan(sc sqldb.Scanner) (vaultRow, error) {
	r, err := vaultTable.Row(sc)
	if err != nil {
		return r, err
	}
	return r, sqldb.About(s.db.OpenJSON(r.Tenant, r.sealed, vaultPlace(r.ID), &r.About), "the description of vault", string(r.ID))
}

// transact runs do while nothing else changes the tenant's vaults.
func (s *Store) transact(ctx context.Context, step string, of tenant.ID, do func(t *sqldb.Tx, now time.Time) error) error {
	return s.db.Write.Wrap(step, s.db.Write.TransactLocked(ctx, "vaults", of, func(t *sqldb.Tx) error {
		now, err := t.Clock(ctx)
		if err != nil {
			return err
		}
		return do(t, now)
	}))
}

func (s *Store) Create(ctx context.Context, v *vault.Vault, most int, events ...tenant.PolicyEvent) error {
	sealed, err := s.db.SealJSON(v.Tenant, v.About, vaultPlace(v.ID))
	if err != nil {
		return err
	}
	return s.transact(ctx, "create a vault", v.Tenant, func(t *sqldb.Tx, now time.Time) error {
		var has int
		if err := t.Row(ctx, `SELECT COUNT(*) FROM vaults WHERE tenant = ?`, v.Tenant).Scan(&has); err != nil {
			return err
		}
		if err := vault.Room(has, most); err != nil {
			return err
		}
		v.CreatedAt, v.UpdatedAt, v.ArchivedAt = now, now, time.Time{}
		if _, err := t.Exec(ctx, `INSERT INTO vaults (id, tenant, about, created_at, updated_at) VALUES (?, ?, ?, ?, ?)`, string(v.ID), v.Tenant, sealed, sqldb.Micros(now), sqldb.Micros(now)); err != nil {
			return err
		}
		return policydb.Insert(ctx, t, events...)
	})
}

func (s *Store) Get(ctx context.Context, t tenant.ID, id vault.ID) (*vault.Vault, error) {
	v, err := s.get(ctx, s.db.Read, t, id)
	return v, s.db.Read.Wrap("get a vault", err)
}

func (s *Store) get(ctx context.Context, q sqldb.Querier, t tenant.ID, id vault.ID) (*vault.Vault, error) {
	r, err := s.scan(q.Row(ctx, `SELECT `+vaultTable.Selected+` FROM vaults WHERE tenant = ? AND id = ?`, t, string(id)))
	if err == sql.ErrNoRows {
		return nil, vault.ErrNotFound
	}
	return &r.Vault, err
}

func (s *Store) List(ctx context.Context, t tenant.ID, f vault.Filter) (page []vault.Vault, next string, err error) {
	query := `SELECT ` + vaultTable.Selected + ` FROM vaults WHERE tenant = ?`
	if !f.Archived {
		query += ` AND archived_at IS NULL`
	}
	all, next, err := sqldb.PageOf(ctx, s.db, sqldb.Page(f.Page), "vaults/"+t, query, "seq", []any{t}, s.scan, func(r *vaultRow) int64 { return r.seq })
	for i := range all {
		page = append(page, all[i].Vault)
	}
	return page, next, s.db.Read.Wrap("list vaults", err)
}

func (s *Store) Update(ctx context.Context, t tenant.ID, id vault.ID, a vault.About, events ...tenant.PolicyEvent) (v *vault.Vault, err error) {
	sealed, err := s.db.SealJSON(t, a, vaultPlace(id))
	if err != nil {
		return nil, err
	}
	err = s.transact(ctx, "change a vault", t, func(tx *sqldb.Tx, now time.Time) error {
		if v, err = s.get(ctx, tx, t, id); err != nil {
			return err
		}
		if v.Archived() {
			return vault.ErrArchived
		}
		v.About, v.UpdatedAt = a, now
		if _, err := tx.Exec(ctx, `UPDATE vaults SET about = ?, updated_at = ? WHERE id = ?`, sealed, sqldb.Micros(now), string(id)); err != nil {
			return err
		}
		return policydb.Insert(ctx, tx, events...)
	})
	return v, err
}

func (s *Store) Archive(ctx context.Context, t tenant.ID, id vault.ID, events ...tenant.PolicyEvent) (v *vault.Vault, err error) {
	err = s.transact(ctx, "archive a vault", t, func(tx *sqldb.Tx, now time.Time) error {
		if v, err = s.get(ctx, tx, t, id); err != nil || v.Archived() {
			return err
		}
		v.ArchivedAt, v.UpdatedAt = now, now
		if _, err := tx.Exec(ctx, `UPDATE vaults SET archived_at = ?, updated_at = ? WHERE id = ?`, sqldb.Micros(now), sqldb.Micros(now), string(id)); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE vault_credentials SET archived_at = ?, updated_at = ?, secret = NULL, version = version + 1 WHERE vault = ? AND archived_at IS NULL`, sqldb.Micros(now), sqldb.Micros(now), string(id)); err != nil {
			return err
		}
		return policydb.Insert(ctx, tx, events...)
	})
	return v, err
}

func (s *Store) Delete(ctx context.Context, t tenant.ID, id vault.ID, events ...tenant.PolicyEvent) error {
	return s.transact(ctx, "delete a vault", t, func(tx *sqldb.Tx, _ time.Time) error {
		n, err := tx.Exec(ctx, `DELETE FROM vaults WHERE tenant = ? AND id = ?`, t, string(id))
		switch {
		case err != nil:
			return err
		case n == 0:
			return vault.ErrNotFound
		}
		return policydb.Insert(ctx, tx, events...)
	})
}
