// Package upload stores the records of uploaded files.
package upload

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/upload"
	policydb "github.com/atoll-run/atoll/internal/infra/store/policy"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

// Store implements upload.Store.
type Store struct{ db *sqldb.DB }

// New returns the store in a database.
func New(db *sqldb.DB) *Store { return &Store{db} }

// States of files.
const (
	fileUploading = "uploading"
	fileThere     = "there"
	fileDeleted   = "deleted"
)

func filePlace(id upload.ID) string { return "files/about/" + string(id) }

// fileAbout is the encrypted part of a file's record.
type fileAbout struct{ Name, MediaType string }

// fileRow is a file with its place in lists and its sealed name.
type fileRow struct {
	upload.File
	seq    int64
	sealed []byte
}

var fileTable = sqldb.NewTable("files",
	sqldb.Col("seq", sqldb.Read, func(r *fileRow) any { return &r.seq }),
	sqldb.Col("id", sqldb.Read, func(r *fileRow) any { return &r.ID }),
	sqldb.Col("tenant", sqldb.Read, func(r *fileRow) any { return &r.Tenant }),
	sqldb.Col("about", sqldb.Read, func(r *fileRow) any { return &r.sealed }),
	sqldb.Col("bytes", sqldb.Read, func(r *fileRow) any { return &r.Size }),
	sqldb.Col("created_at", sqldb.Read, func(r *fileRow) any { return sqldb.TimeAt(&r.CreatedAt) }),
	sqldb.Col("expires_at", sqldb.Read, func(r *fileRow) any { return sqldb.ZeroTimeAt(&r.ExpiresAt) }),
)

var fileColumns = fileTable.Of("f")

func (s *Store) scan(sc sqldb.Scanner) (fileRow, error) {
	r, err := fileTable.Row(sc)
	if err != nil {
		return r, err
	}
	var a fileAbout
	err = s.db.OpenJSON(r.Tenant, r.sealed, filePlace(r.ID), &a)
	r.Name, r.MediaType = a.Name, a.MediaType
	return r, sqldb.About(err, "the name", string(r.ID))
}

// transact runs do while the tenant's files do not become more.
func (s *Store) transact(ctx context.Context, of tenant.ID, do func(t *sqldb.Tx, now time.Time) error) error {
	return s.db.Write.TransactLocked(ctx, "files", of, func(t *sqldb.Tx) error {
		now, err := t.Clock(ctx)
		if err != nil {
			return err
		}
		return do(t, now)
	})
}

// room rejects f if it exceeds the tenant's limits. Deleted files count until their bytes are deleted.
func (s *Store) room(ctx context.Context, t *sqldb.Tx, f *upload.File, most upload.Limits) error {
	var all int
	var bytes int64
	err := t.Row(ctx, `SELECT COUNT(*), CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM files WHERE tenant = ? AND id <> ?`, f.Tenant, string(f.ID)).Scan(&all, &bytes)
	if err != nil {
		return err
	}
	return most.Room(all, bytes, f.Size)
}

func (s *Store) Begin(ctx context.Context, f *upload.File, most upload.Limits) error {
	sealed, err := s.db.SealJSON(f.Tenant, fileAbout{f.Name, f.MediaType}, filePlace(f.ID))
	if err != nil {
		return err
	}
	err = s.transact(ctx, f.Tenant, func(t *sqldb.Tx, now time.Time) error {
		if err := s.room(ctx, t, f, most); err != nil {
			return err
		}
		_, err := t.Exec(ctx, `INSERT INTO files (id, tenant, about, bytes, state, created_at) VALUES (?, ?, ?, ?, ?, ?)`,
			string(f.ID), f.Tenant, sealed, f.Size, fileUploading, sqldb.Micros(now))
		return err
	})
	return s.db.Write.Wrap("begin a file", err)
}

func (s *Store) Finish(ctx context.Context, f *upload.File, most upload.Limits, life time.Duration, events ...tenant.PolicyEvent) error {
	err := s.transact(ctx, f.Tenant, func(t *sqldb.Tx, now time.Time) error {
		if err := s.room(ctx, t, f, most); err != nil {
			return err
		}
		f.CreatedAt, f.ExpiresAt = now, time.Time{}
		if life > 0 {
			f.ExpiresAt = now.Add(life)
		}
		n, err := t.Exec(ctx, `UPDATE files SET bytes = ?, state = ?, created_at = ?, expires_at = ? WHERE tenant = ? AND id = ? AND state = ?`,
			f.Size, fileThere, sqldb.Micros(now), sqldb.MaybeMicros(&f.ExpiresAt), f.Tenant, string(f.ID), fileUploading)
		switch {
		case err != nil:
			return err
		case n == 0:
			return upload.ErrTooSlow
		}
		return policydb.Insert(ctx, t, events...)
	})
	return s.db.Write.Wrap("finish a file", err)
}

// there returns the query for files of a tenant that are there now.
func (s *Store) there(ctx context.Context, q sqldb.Querier, t tenant.ID) (where string, args []any, err error) {
	now, err := s.db.Read.Clock(ctx, q)
	return ` FROM files f WHERE f.tenant = ? AND f.state = '` + fileThere + `' AND (f.expires_at IS NULL OR f.expires_at > ?)`, []any{t, sqldb.Micros(now)}, err
}

func (s *Store) Get(ctx context.Context, t tenant.ID, id upload.ID) (*upload.File, error) {
	where, args, err := s.there(ctx, s.db.Read, t)
	if err != nil {
		return nil, s.db.Read.Wrap("get a file", err)
	}
	r, err := s.scan(s.db.Read.Row(ctx, `SELECT `+fileColumns+where+` AND f.id = ?`, append(args, string(id))...))
	if err == sql.ErrNoRows {
		return nil, upload.ErrNotFound
	}
	return &r.File, s.db.Read.Wrap("get a file", err)
}

func (s *Store) List(ctx context.Context, t tenant.ID, p upload.Page) (page []upload.File, next string, err error) {
	where, args, err := s.there(ctx, s.db.Read, t)
	if err == nil {
		var all []fileRow
		all, next, err = sqldb.PageOf(ctx, s.db, sqldb.Page(p), "files/"+t, `SELECT `+fileColumns+where, "f.seq", args, s.scan, func(r *fileRow) int64 { return r.seq })
		page = filesOf(all)
	}
	return page, next, s.db.Read.Wrap("list files", err)
}

func filesOf(all []fileRow) (out []upload.File) {
	for i := range all {
		out = append(out, all[i].File)
	}
	return out
}

func (s *Store) Find(ctx context.Context, t tenant.ID, ids []upload.ID) ([]upload.File, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	where, args, err := s.there(ctx, s.db.Read, t)
	if err != nil {
		return nil, s.db.Read.Wrap("find files", err)
	}
	for _, id := range ids {
		args = append(args, string(id))
	}
	all, err := sqldb.Select(ctx, s.db.Read, s.scan, `SELECT `+fileColumns+where+` AND f.id IN (?`+strings.Repeat(`, ?`, len(ids)-1)+`) ORDER BY f.seq DESC`, args...)
	return filesOf(all), s.db.Read.Wrap("find files", err)
}

func (s *Store) Delete(ctx context.Context, t tenant.ID, id upload.ID, events ...tenant.PolicyEvent) error {
	return s.db.Transact(ctx, "delete a file", func(tx *sqldb.Tx) error {
		n, err := tx.Exec(ctx, `UPDATE files SET state = ? WHERE tenant = ? AND id = ? AND state = ?`, fileDeleted, t, string(id), fileThere)
		switch {
		case err != nil:
			return err
		case n == 0:
			return upload.ErrNotFound
		}
		return policydb.Insert(ctx, tx, events...)
	})
}

func (s *Store) Drop(ctx context.Context, id upload.ID) error {
	return s.db.Exec(ctx, "drop a file", `UPDATE files SET state = ? WHERE id = ?`, fileDeleted, string(id))
}

// Both queries of Gone say what SQLite has to know to use the partial indexes.
var (
	endFiles  = `UPDATE files SET state = ? WHERE state <> '` + fileThere + `' AND state = ? AND created_at <= ? OR state = ? AND expires_at <= ?`
	goneFiles = `SELECT ` + fileColumns + ` FROM files f WHERE f.state <> '` + fileThere + `' AND f.state = ? ORDER BY f.seq LIMIT ?`
)

func (s *Store) Gone(ctx context.Context, stale time.Duration, most int) (gone []upload.File, err error) {
	err = s.db.Write.Transact(ctx, func(t *sqldb.Tx) error {
		now, err := t.Clock(ctx)
		if err != nil {
			return err
		}
		if _, err := t.Exec(ctx, endFiles, fileDeleted, fileUploading, sqldb.Micros(now.Add(-stale)), fileThere, sqldb.Micros(now)); err != nil {
			return err
		}
		all, err := sqldb.Select(ctx, t, s.scan, goneFiles, fileDeleted, most)
		gone = filesOf(all)
		return err
	})
	return gone, s.db.Write.Wrap("find files that are gone", err)
}

func (s *Store) Forget(ctx context.Context, id upload.ID) error {
	return s.db.Exec(ctx, "forget a file", `DELETE FROM files WHERE id = ? AND state = ?`, string(id), fileDeleted)
}
