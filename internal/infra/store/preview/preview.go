// Package preview stores the open ports of sandboxes.
package preview

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/preview"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

// Store implements preview.Store.
type Store struct{ db *sqldb.DB }

var _ preview.Store = (*Store)(nil)

// New returns the store in a database.
func New(db *sqldb.DB) *Store { return &Store{db} }

// previewTable is the table of previews. No column changes after the insert.
var previewTable = sqldb.NewTable("previews",
	sqldb.Col("sandbox", sqldb.Fixed, func(r *preview.Record) any { return &r.Sandbox }),
	sqldb.Col("port", sqldb.Fixed, func(r *preview.Record) any { return &r.Port }),
	sqldb.Col("seed", sqldb.Fixed, func(r *preview.Record) any { return &r.Seed }),
	sqldb.Col("hash", sqldb.Fixed, func(r *preview.Record) any { return &r.Hash }),
	sqldb.Col("created_at", sqldb.Fixed, func(r *preview.Record) any { return sqldb.TimeAt(&r.CreatedAt) }),
)

// Open counts the sandbox's previews in the transaction that adds one.
func (s *Store) Open(ctx context.Context, r preview.Record) (there *preview.Record, err error) {
	err = s.db.Write.TransactLocked(ctx, "previews", string(r.Sandbox), func(t *sqldb.Tx) error {
		if err := t.OrNow(ctx, &r.CreatedAt); err != nil {
			return err
		}
		values, err := previewTable.Values(sqldb.Insert, &r)
		if err != nil {
			return err
		}
		_, err = t.Exec(ctx, previewTable.Insert+` ON CONFLICT (sandbox, port) DO NOTHING`, values...)
		if err != nil {
			return err
		}
		var n int
		if err := t.Row(ctx, `SELECT count(*) FROM previews WHERE sandbox = ?`, string(r.Sandbox)).Scan(&n); err != nil {
			return err
		}
		if n > preview.MaxPreviews {
			return preview.ErrTooMany
		}
		there, err = previewTable.Pointer(t.Row(ctx, `SELECT `+previewTable.Selected+` FROM previews WHERE sandbox = ? AND port = ?`, string(r.Sandbox), r.Port))
		return err
	})
	return there, s.db.Write.Wrap("open a preview", err)
}

func (s *Store) Find(ctx context.Context, hash []byte) (*preview.Record, error) {
	r, err := previewTable.Pointer(s.db.Read.Row(ctx, `SELECT `+previewTable.Selected+` FROM previews WHERE hash = ?`, hash))
	return r, s.db.Read.Found("find a preview", err, preview.ErrNotOpen)
}

func (s *Store) List(ctx context.Context, id runtime.ID) ([]*preview.Record, error) {
	all, err := sqldb.Select(ctx, s.db.Read, previewTable.Pointer, `SELECT `+previewTable.Selected+` FROM previews WHERE sandbox = ? ORDER BY port`, string(id))
	return all, s.db.Read.Wrap("list previews", err)
}

func (s *Store) Close(ctx context.Context, id runtime.ID, port uint16) error {
	n, err := s.db.Write.Exec(ctx, `DELETE FROM previews WHERE sandbox = ? AND port = ?`, string(id), port)
	if err == nil && n == 0 {
		return preview.ErrNotOpen
	}
	return s.db.Write.Wrap("close a preview", err)
}
