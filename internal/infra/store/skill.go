package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Skills is the store of skills.
func (db *DB) Skills() skill.Store { return &skills{db} }

type skills struct{ db *DB }

const (
	versionColumns = `v.id, v.skill, v.number, v.about, v.created_at`
	skillColumns   = `s.seq, s.id, s.tenant, s.name, s.title, s.created_at, s.archived_at, ` + versionColumns
	skillFrom      = ` FROM skills s JOIN skill_versions v ON v.skill = s.id `
	latestVersion  = `v.number = (SELECT max(number) FROM skill_versions WHERE skill = s.id)`
)

func titlePlace(id skill.ID) string { return "skills/title/" + string(id) }

func versionPlace(id skill.VersionID, part string) string {
	return fmt.Sprintf("skill_versions/%s/%s", part, id)
}

// versionAbout is what is kept of a version beside its files.
type versionAbout struct {
	Head  skill.Head
	Files []skill.FileInfo
}

// skillRow is a skill with its place in lists.
type skillRow struct {
	skill.Skill
	seq int64
}

// versionRow is a version as it is stored.
type versionRow struct {
	v       skill.Version
	sealed  []byte
	created int64
}

func (r *versionRow) into() []any {
	return []any{&r.v.ID, &r.v.Skill, &r.v.Number, &r.sealed, &r.created}
}

func (s *skills) openVersion(t tenant.ID, r *versionRow) (skill.Version, error) {
	plain, err := s.db.seal.OpenFor(t, r.sealed, versionPlace(r.v.ID, "about"))
	var a versionAbout
	if err == nil {
		err = json.Unmarshal(plain, &a)
	}
	r.v.Head, r.v.Files, r.v.CreatedAt = a.Head, a.Files, instant(r.created)
	return r.v, about(err, "the description", string(r.v.ID))
}

func (s *skills) scan(sc scanner) (r skillRow, err error) {
	var title []byte
	var created int64
	var archived sql.NullInt64
	var v versionRow
	k := &r.Skill
	if err := sc.Scan(append([]any{&r.seq, &k.ID, &k.Tenant, &k.Name, &title, &created, &archived}, v.into()...)...); err != nil {
		return r, err
	}
	if k.Latest, err = s.openVersion(k.Tenant, &v); err != nil {
		return r, err
	}
	k.CreatedAt, k.UpdatedAt = instant(created), k.Latest.CreatedAt
	if archived.Valid {
		k.ArchivedAt = instant(archived.Int64)
	}
	plain, err := s.db.seal.OpenFor(k.Tenant, title, titlePlace(k.ID))
	k.Title = string(plain)
	return r, about(err, "the title", string(k.ID))
}

// transact runs do while the tenant's skills do not become more.
func (s *skills) transact(ctx context.Context, of tenant.ID, do func(t *tx, now time.Time) error) error {
	return s.db.write.transact(ctx, func(t *tx) error {
		if t.pool.postgres {
			if _, err := t.exec(ctx, `SELECT pg_advisory_xact_lock(?)`, lockOf("skills", of)); err != nil {
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

func (s *skills) room(ctx context.Context, t *tx, of tenant.ID, most skill.Limits, size int64, first bool) error {
	var all int
	var bytes int64
	err := t.row(ctx, `SELECT COUNT(DISTINCT s.id), CAST(COALESCE(SUM(v.bytes), 0) AS BIGINT)`+skillFrom+`WHERE s.tenant = ?`, of).Scan(&all, &bytes)
	if err != nil {
		return err
	}
	return most.Room(all, bytes, size, first)
}

// put records a version of a skill as its latest.
func (s *skills) put(ctx context.Context, t *tx, k *skill.Skill, b *skill.Bundle, packed []byte, at time.Time, events []tenant.PolicyEvent) error {
	v := &k.Latest
	v.Skill, v.Head, v.Files, v.CreatedAt, k.UpdatedAt = k.ID, b.Head, b.Infos(), at, at
	plain, err := json.Marshal(versionAbout{v.Head, v.Files})
	if err != nil {
		return err
	}
	if _, err := t.exec(ctx, `INSERT INTO skill_versions (id, skill, number, about, content, bytes, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		string(v.ID), string(k.ID), v.Number, s.db.seal.SealFor(k.Tenant, plain, versionPlace(v.ID, "about")),
		s.db.seal.SealFor(k.Tenant, packed, versionPlace(v.ID, "content")), len(packed), micros(at)); err != nil {
		return err
	}
	return insertEvents(ctx, t, events)
}

func (s *skills) Create(ctx context.Context, k *skill.Skill, b *skill.Bundle, most skill.Limits, events ...tenant.PolicyEvent) error {
	packed, err := b.Pack()
	if err != nil {
		return err
	}
	err = s.transact(ctx, k.Tenant, func(t *tx, now time.Time) error {
		if err := s.room(ctx, t, k.Tenant, most, int64(len(packed)), true); err != nil {
			return err
		}
		k.Name, k.CreatedAt, k.ArchivedAt, k.Latest.Number = b.Head.Name, now, time.Time{}, 1
		if _, err := t.exec(ctx, `INSERT INTO skills (id, tenant, name, title, versions, created_at) VALUES (?, ?, ?, ?, 1, ?)`,
			string(k.ID), k.Tenant, k.Name, s.db.seal.SealFor(k.Tenant, []byte(k.Title), titlePlace(k.ID)), micros(now)); err != nil {
			return err
		}
		return s.put(ctx, t, k, b, packed, now, events)
	})
	if violates(err, unique) {
		return fault.Wrap(fault.Conflict, err, fmt.Sprintf("this tenant has a skill %q: add a version to it, or delete it first", b.Head.Name))
	}
	return s.db.write.wrap("create a skill", err)
}

func (s *skills) AddVersion(ctx context.Context, k *skill.Skill, b *skill.Bundle, most skill.Limits, events ...tenant.PolicyEvent) error {
	packed, err := b.Pack()
	if err != nil {
		return err
	}
	id := k.Latest.ID
	err = s.transact(ctx, k.Tenant, func(t *tx, at time.Time) error {
		now, err := s.get(ctx, t, k.Tenant, string(k.ID))
		switch {
		case err != nil:
			return err
		case now.Archived():
			return skill.ErrArchived
		case now.Name != b.Head.Name:
			return skill.Renamed(now.Name)
		}
		if err := s.room(ctx, t, k.Tenant, most, int64(len(packed)), false); err != nil {
			return err
		}
		if _, err := t.exec(ctx, `UPDATE skills SET versions = versions + 1 WHERE id = ?`, string(k.ID)); err != nil {
			return err
		}
		*k = *now
		k.Latest = skill.Version{ID: id}
		if err := t.row(ctx, `SELECT versions FROM skills WHERE id = ?`, string(k.ID)).Scan(&k.Latest.Number); err != nil {
			return err
		}
		return s.put(ctx, t, k, b, packed, at, events)
	})
	return s.db.write.wrap("add a version of a skill", err)
}

func (s *skills) Get(ctx context.Context, t tenant.ID, idOrName string) (*skill.Skill, error) {
	k, err := s.get(ctx, s.db.read, t, idOrName)
	return k, s.db.read.wrap("get a skill", err)
}

func (s *skills) get(ctx context.Context, q querier, t tenant.ID, idOrName string) (*skill.Skill, error) {
	r, err := s.scan(q.row(ctx, `SELECT `+skillColumns+skillFrom+`WHERE `+latestVersion+` AND s.tenant = ? AND (s.id = ? OR s.name = ?)`, t, idOrName, idOrName))
	if err == sql.ErrNoRows {
		return nil, skill.ErrNotFound
	}
	return &r.Skill, err
}

func (s *skills) version(ctx context.Context, t tenant.ID, where string, args ...any) (*skill.Version, error) {
	var r versionRow
	err := s.db.read.row(ctx, `SELECT `+versionColumns+skillFrom+`WHERE s.tenant = ? AND `+where, append([]any{t}, args...)...).Scan(r.into()...)
	if err == sql.ErrNoRows {
		return nil, skill.ErrNoVersion
	}
	if err == nil {
		_, err = s.openVersion(t, &r)
	}
	return &r.v, s.db.read.wrap("get a version of a skill", err)
}

func (s *skills) Version(ctx context.Context, t tenant.ID, id skill.VersionID) (*skill.Version, error) {
	return s.version(ctx, t, `v.id = ?`, string(id))
}

func (s *skills) Numbered(ctx context.Context, t tenant.ID, id skill.ID, number int) (*skill.Version, error) {
	return s.version(ctx, t, `s.id = ? AND v.number = ?`, string(id), number)
}

func (s *skills) Content(ctx context.Context, t tenant.ID, id skill.VersionID) (*skill.Bundle, error) {
	var sealed []byte
	err := s.db.read.row(ctx, `SELECT v.content`+skillFrom+`WHERE s.tenant = ? AND v.id = ?`, t, string(id)).Scan(&sealed)
	if err == sql.ErrNoRows {
		return nil, skill.ErrNoVersion
	}
	if err != nil {
		return nil, s.db.read.wrap("read a version of a skill", err)
	}
	packed, err := s.db.seal.OpenFor(t, sealed, versionPlace(id, "content"))
	if err != nil {
		return nil, about(err, "the files", string(id))
	}
	files, err := skill.Unpack(packed)
	if err != nil {
		return nil, err
	}
	return skill.NewBundle(files)
}

// SkillFiles implements execution.Skills.
func (db *DB) SkillFiles(ctx context.Context, tenant string, of execution.SkillRef) ([]execution.SkillFile, error) {
	b, err := db.Skills().Content(ctx, tenant, skill.VersionID(of.Version))
	if err != nil {
		return nil, err
	}
	files := make([]execution.SkillFile, len(b.Files))
	for i, f := range b.Files {
		files[i] = execution.SkillFile{Path: skill.Dir + "/" + b.Head.Name + "/" + f.Path, Exec: f.Exec, Data: f.Data}
	}
	return files, nil
}

var _ execution.Skills = (*DB)(nil)
