package store

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/preview"
	"github.com/atoll-run/atoll/internal/core/runtime"
)

// previews is the preview.Store.
type previews struct{ db *DB }

var _ preview.Store = (*previews)(nil)

// Previews is the store of previews.
func (db *DB) Previews() preview.Store { return &previews{db} }

// previewTable is the table of previews. Nothing of one is ever changed.
var previewTable = newTable("previews",
	col("sandbox", fixed, func(r *preview.Record) any { return &r.Sandbox }),
	col("port", fixed, func(r *preview.Record) any { return &r.Port }),
	col("seed", fixed, func(r *preview.Record) any { return &r.Seed }),
	col("hash", fixed, func(r *preview.Record) any { return &r.Hash }),
	col("created_at", fixed, func(r *preview.Record) any { return timeAt(&r.CreatedAt) }),
)

func scanPreview(s scanner) (*preview.Record, error) {
	r := &preview.Record{}
	return r, previewTable.scan(s, r)
}

// Open counts the sandbox's previews in the transaction that adds one.
func (s *previews) Open(ctx context.Context, r preview.Record) (there *preview.Record, err error) {
	err = s.db.write.transact(ctx, func(t *tx) error {
		if t.pool.postgres {
			if _, err := t.exec(ctx, `SELECT pg_advisory_xact_lock(?)`, lockOf("previews", string(r.Sandbox))); err != nil {
				return err
			}
		}
		if err := t.orNow(ctx, &r.CreatedAt); err != nil {
			return err
		}
		values, err := previewTable.values(insert, &r)
		if err != nil {
			return err
		}
		_, err = t.exec(ctx, previewTable.insert+` ON CONFLICT (sandbox, port) DO NOTHING`, values...)
		if err != nil {
			return err
		}
		var n int
		if err := t.row(ctx, `SELECT count(*) FROM previews WHERE sandbox = ?`, string(r.Sandbox)).Scan(&n); err != nil {
			return err
		}
		if n > preview.MaxPreviews {
			return preview.ErrTooMany
		}
		there, err = scanPreview(t.row(ctx, `SELECT `+previewTable.selected+` FROM previews WHERE sandbox = ? AND port = ?`, string(r.Sandbox), r.Port))
		return err
	})
	return there, s.db.write.wrap("open a preview", err)
}

func (s *previews) Find(ctx context.Context, hash []byte) (*preview.Record, error) {
	r, err := scanPreview(s.db.read.row(ctx, `SELECT `+previewTable.selected+` FROM previews WHERE hash = ?`, hash))
	return r, s.db.read.found("find a preview", err, preview.ErrNotOpen)
}

func (s *previews) List(ctx context.Context, id runtime.ID) ([]*preview.Record, error) {
	rows, err := s.db.read.rows(ctx, `SELECT `+previewTable.selected+` FROM previews WHERE sandbox = ? ORDER BY port`, string(id))
	all, err := collect(rows, err, scanPreview)
	return all, s.db.read.wrap("list previews", err)
}

func (s *previews) Close(ctx context.Context, id runtime.ID, port uint16) error {
	n, err := s.db.write.exec(ctx, `DELETE FROM previews WHERE sandbox = ? AND port = ?`, string(id), port)
	if err == nil && n == 0 {
		return preview.ErrNotOpen
	}
	return s.db.write.wrap("close a preview", err)
}
