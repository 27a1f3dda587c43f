package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/upload"
)

// Files is the store of the records of uploaded files.
func (db *DB) Files() upload.Store { return &files{db} }

type files struct{ db *DB }

const fileColumns = `f.seq, f.id, f.tenant, f.about, f.bytes, f.created_at, f.expires_at`

// States of files.
const (
	fileUploading = "uploading"
	fileThere     = "there"
	fileDeleted   = "deleted"
)

func filePlace(id upload.ID) string { return "files/about/" + string(id) }

// fileAbout is what is encrypted of a file's record.
type fileAbout struct{ Name, MediaType string }

// fileRow is a file with its place in lists.
type fileRow struct {
	upload.File
	seq int64
}

func (s *files) scan(sc scanner) (r fileRow, err error) {
	var sealed []byte
	var created int64
	var expires sql.NullInt64
	f := &r.File
	if err := sc.Scan(&r.seq, &f.ID, &f.Tenant, &sealed, &f.Size, &created, &expires); err != nil {
		return r, err
	}
	f.CreatedAt = instant(created)
	if expires.Valid {
		f.ExpiresAt = instant(expires.Int64)
	}
	plain, err := s.db.seal.OpenFor(f.Tenant, sealed, filePlace(f.ID))
	var a fileAbout
	if err == nil {
		err = json.Unmarshal(plain, &a)
	}
	f.Name, f.MediaType = a.Name, a.MediaType
	return r, about(err, "the name", string(f.ID))
}

// transact runs do while the tenant's files do not become more.
func (s *files) transact(ctx context.Context, of tenant.ID, do func(t *tx, now time.Time) error) error {
	return s.db.write.transact(ctx, func(t *tx) error {
		if t.pool.postgres {
			if _, err := t.exec(ctx, `SELECT pg_advisory_xact_lock(?)`, lockOf("files", of)); err != nil {
				return err
			}
		}
		now, err := t.pool.clock(ctx, t)
		if err != nil {
			return err
		}
		return do(t, now)
	})
}

// room refuses f beside the tenant's other files. Those that are deleted count until their bytes
// are gone.
func (s *files) room(ctx context.Context, t *tx, f *upload.File, most upload.Limits) error {
	var all int
	var bytes int64
	err := t.row(ctx, `SELECT COUNT(*), CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM files WHERE tenant = ? AND id <> ?`, f.Tenant, string(f.ID)).Scan(&all, &bytes)
	if err != nil {
		return err
	}
	return most.Room(all, bytes, f.Size)
}

func (s *files) Begin(ctx context.Context, f *upload.File, most upload.Limits) error {
	plain, err := json.Marshal(fileAbout{f.Name, f.MediaType})
	if err != nil {
		return err
	}
	err = s.transact(ctx, f.Tenant, func(t *tx, now time.Time) error {
		if err := s.room(ctx, t, f, most); err != nil {
			return err
		}
		_, err := t.exec(ctx, `INSERT INTO files (id, tenant, about, bytes, state, created_at) VALUES (?, ?, ?, ?, ?, ?)`,
			string(f.ID), f.Tenant, s.db.seal.SealFor(f.Tenant, plain, filePlace(f.ID)), f.Size, fileUploading, micros(now))
		return err
	})
	return s.db.write.wrap("begin a file", err)
}

func (s *files) Finish(ctx context.Context, f *upload.File, most upload.Limits, life time.Duration, events ...tenant.PolicyEvent) error {
	err := s.transact(ctx, f.Tenant, func(t *tx, now time.Time) error {
		if err := s.room(ctx, t, f, most); err != nil {
			return err
		}
		f.CreatedAt, f.ExpiresAt = now, time.Time{}
		var expires sql.NullInt64
		if life > 0 {
			f.ExpiresAt = now.Add(life)
			expires = sql.NullInt64{Int64: micros(f.ExpiresAt), Valid: true}
		}
		n, err := t.exec(ctx, `UPDATE files SET bytes = ?, state = ?, created_at = ?, expires_at = ? WHERE tenant = ? AND id = ? AND state = ?`,
			f.Size, fileThere, micros(now), expires, f.Tenant, string(f.ID), fileUploading)
		switch {
		case err != nil:
			return err
		case n == 0:
			return upload.ErrTooSlow
		}
		return insertEvents(ctx, t, events)
	})
	return s.db.write.wrap("finish a file", err)
}

// there returns the query for files of a tenant that are there now.
func (s *files) there(ctx context.Context, q querier, t tenant.ID) (where string, args []any, err error) {
	now, err := s.db.read.clock(ctx, q)
	return ` FROM files f WHERE f.tenant = ? AND f.state = '` + fileThere + `' AND (f.expires_at IS NULL OR f.expires_at > ?)`, []any{t, micros(now)}, err
}

func (s *files) Get(ctx context.Context, t tenant.ID, id upload.ID) (*upload.File, error) {
	where, args, err := s.there(ctx, s.db.read, t)
	if err != nil {
		return nil, s.db.read.wrap("get a file", err)
	}
	r, err := s.scan(s.db.read.row(ctx, `SELECT `+fileColumns+where+` AND f.id = ?`, append(args, string(id))...))
	if err == sql.ErrNoRows {
		return nil, upload.ErrNotFound
	}
	return &r.File, s.db.read.wrap("get a file", err)
}

func (s *files) List(ctx context.Context, t tenant.ID, p upload.Page) (page []upload.File, next string, err error) {
	where, args, err := s.there(ctx, s.db.read, t)
	if err == nil {
		var all []fileRow
		all, next, err = pageOf(ctx, s.db, skill.Page(p), "files/"+t, `SELECT `+fileColumns+where, "f.seq", args, s.scan, func(r *fileRow) int64 { return r.seq })
		page = filesOf(all)
	}
	return page, next, s.db.read.wrap("list files", err)
}

func filesOf(all []fileRow) (out []upload.File) {
	for i := range all {
		out = append(out, all[i].File)
	}
	return out
}

func (s *files) Find(ctx context.Context, t tenant.ID, ids []upload.ID) ([]upload.File, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	where, args, err := s.there(ctx, s.db.read, t)
	if err != nil {
		return nil, s.db.read.wrap("find files", err)
	}
	for _, id := range ids {
		args = append(args, string(id))
	}
	rows, err := s.db.read.rows(ctx, `SELECT `+fileColumns+where+` AND f.id IN (?`+strings.Repeat(`, ?`, len(ids)-1)+`) ORDER BY f.seq DESC`, args...)
	all, err := collect(rows, err, s.scan)
	return filesOf(all), s.db.read.wrap("find files", err)
}

func (s *files) Delete(ctx context.Context, t tenant.ID, id upload.ID, events ...tenant.PolicyEvent) error {
	err := s.db.write.transact(ctx, func(tx *tx) error {
		n, err := tx.exec(ctx, `UPDATE files SET state = ? WHERE tenant = ? AND id = ? AND state = ?`, fileDeleted, t, string(id), fileThere)
		switch {
		case err != nil:
			return err
		case n == 0:
			return upload.ErrNotFound
		}
		return insertEvents(ctx, tx, events)
	})
	return s.db.write.wrap("delete a file", err)
}

func (s *files) Drop(ctx context.Context, id upload.ID) error {
	_, err := s.db.write.exec(ctx, `UPDATE files SET state = ? WHERE id = ?`, fileDeleted, string(id))
	return s.db.write.wrap("drop a file", err)
}

// Both queries of Gone say what SQLite has to know to use the partial indexes.
const (
	endFiles  = `UPDATE files SET state = ? WHERE state <> '` + fileThere + `' AND state = ? AND created_at <= ? OR state = ? AND expires_at <= ?`
	goneFiles = `SELECT ` + fileColumns + ` FROM files f WHERE f.state <> '` + fileThere + `' AND f.state = ? ORDER BY f.seq LIMIT ?`
)

func (s *files) Gone(ctx context.Context, stale time.Duration, most int) (gone []upload.File, err error) {
	err = s.db.write.transact(ctx, func(t *tx) error {
		now, err := t.pool.clock(ctx, t)
		if err != nil {
			return err
		}
		if _, err := t.exec(ctx, endFiles, fileDeleted, fileUploading, micros(now.Add(-stale)), fileThere, micros(now)); err != nil {
			return err
		}
		rows, err := t.rows(ctx, goneFiles, fileDeleted, most)
		all, err := collect(rows, err, s.scan)
		gone = filesOf(all)
		return err
	})
	return gone, s.db.write.wrap("find files that are gone", err)
}

func (s *files) Forget(ctx context.Context, id upload.ID) error {
	_, err := s.db.write.exec(ctx, `DELETE FROM files WHERE id = ? AND state = ?`, string(id), fileDeleted)
	return s.db.write.wrap("forget a file", err)
}
