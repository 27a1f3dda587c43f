// Package skill stores skills and their versions.
package skill

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/core/tenant"
	policydb "github.com/atoll-run/atoll/internal/infra/store/policy"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

// Store implements skill.Store.
type Store struct{ db *sqldb.DB }

// New returns the store in a database.
func New(db *sqldb.DB) *Store { return &Store{db} }

const (
	skillFrom     = ` FROM skills s JOIN skill_versions v ON v.skill = s.id `
	latestVersion = `v.number = (SELECT max(number) FROM skill_versions WHERE skill = s.id)`
)

func titlePlace(id skill.ID) string { return "skills/title/" + string(id) }

func versionPlace(id skill.VersionID, part string) string {
	return fmt.Sprintf("skill_versions/%s/%s", part, id)
}

// versionAbout is the stored description of a version, without its files.
type versionAbout struct {
	Head  skill.Head
	Files []skill.FileInfo
}

// versionRow is a version with its sealed description.
type versionRow struct {
	skill.Version
	about []byte
}

// skillRow is a skill and its latest version, with its place in lists and its sealed title.
type skillRow struct {
	skill.Skill
	seq    int64
	title  []byte
	latest versionRow
}

var (
	versionView = sqldb.NewView(
		sqldb.Col("v.id", sqldb.Read, func(r *versionRow) any { return &r.ID }),
		sqldb.Col("v.skill", sqldb.Read, func(r *versionRow) any { return &r.Skill }),
		sqldb.Col("v.number", sqldb.Read, func(r *versionRow) any { return &r.Number }),
		sqldb.Col("v.about", sqldb.Read, func(r *versionRow) any { return &r.about }),
		sqldb.Col("v.created_at", sqldb.Read, func(r *versionRow) any { return sqldb.TimeAt(&r.CreatedAt) }),
	)
	skillView = sqldb.NewView(
		sqldb.Col("s.seq", sqldb.Read, func(r *skillRow) any { return &r.seq }),
		sqldb.Col("s.id", sqldb.Read, func(r *skillRow) any { return &r.ID }),
		sqldb.Col("s.tenant", sqldb.Read, func(r *skillRow) any { return &r.Tenant }),
		sqldb.Col("s.name", sqldb.Read, func(r *skillRow) any { return &r.Name }),
		sqldb.Col("s.title", sqldb.Read, func(r *skillRow) any { return &r.title }),
		sqldb.Col("s.created_at", sqldb.Read, func(r *skillRow) any { return sqldb.TimeAt(&r.CreatedAt) }),
		sqldb.Col("s.archived_at", sqldb.Read, func(r *skillRow) any { return sqldb.ZeroTimeAt(&r.ArchivedAt) }),
	)
	skillColumns = skillView.Selected + `, ` + versionView.Selected
)

func (s *Store) openVersion(t tenant.ID, r *versionRow) (skill.Version, error) {
	var a versionAbout
	err := s.db.OpenJSON(t, r.about, versionPlace(r.ID, "about"), &a)
	r.Head, r.Files = a.Head, a.Files
	return r.Version, sqldb.About(err, "the description", string(r.ID))
}

func (s *Store) scan(sc sqldb.Scanner) (r skillRow, err error) {
	if err := sc.Scan(append(skillView.Dest(&r), versionView.Dest(&r.latest)...)...); err != nil {
		return r, err
	}
	if r.Latest, err = s.openVersion(r.Tenant, &r.latest); err != nil {
		return r, err
	}
	r.UpdatedAt = r.Latest.CreatedAt
	plain, err := s.db.Seal.OpenFor(r.Tenant, r.title, titlePlace(r.ID))
	r.Title = string(plain)
	return r, sqldb.About(err, "the title", string(r.ID))
}

// transact runs do while the tenant's skills do not become more.
func (s *Store) transact(ctx context.Context, of tenant.ID, do func(t *sqldb.Tx, now time.Time) error) error {
	return s.db.Write.TransactLocked(ctx, "skills", of, func(t *sqldb.Tx) error {
		now, err := t.Clock(ctx)
		if err != nil {
			return err
		}
		return do(t, now)
	})
}

func (s *Store) room(ctx context.Context, t *sqldb.Tx, of tenant.ID, most skill.Limits, size int64, first bool) error {
	var all int
	var bytes int64
	err := t.Row(ctx, `SELECT COUNT(DISTINCT s.id), CAST(COALESCE(SUM(v.bytes), 0) AS BIGINT)`+skillFrom+`WHERE s.tenant = ?`, of).Scan(&all, &bytes)
	if err != nil {
		return err
	}
	return most.Room(all, bytes, size, first)
}

// put records a version of a skill as its latest.
func (s *Store) put(ctx context.Context, t *sqldb.Tx, k *skill.Skill, b *skill.Bundle, packed []byte, at time.Time, events []tenant.PolicyEvent) error {
	v := &k.Latest
	v.Skill, v.Head, v.Files, v.CreatedAt, k.UpdatedAt = k.ID, b.Head, b.Infos(), at, at
	about, err := s.db.SealJSON(k.Tenant, versionAbout{v.Head, v.Files}, versionPlace(v.ID, "about"))
	if err != nil {
		return err
	}
	if _, err := t.Exec(ctx, `INSERT INTO skill_versions (id, skill, number, about, content, bytes, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		string(v.ID), string(k.ID), v.Number, about,
		s.db.Seal.SealFor(k.Tenant, packed, versionPlace(v.ID, "content")), len(packed), sqldb.Micros(at)); err != nil {
		return err
	}
	return policydb.Insert(ctx, t, events...)
}

func (s *Store) Create(ctx context.Context, k *skill.Skill, b *skill.Bundle, most skill.Limits, events ...tenant.PolicyEvent) error {
	packed, err := b.Pack()
	if err != nil {
		return err
	}
	err = s.transact(ctx, k.Tenant, func(t *sqldb.Tx, now time.Time) error {
		if err := s.room(ctx, t, k.Tenant, most, int64(len(packed)), true); err != nil {
			return err
		}
		k.Name, k.CreatedAt, k.ArchivedAt, k.Latest.Number = b.Head.Name, now, time.Time{}, 1
		if _, err := t.Exec(ctx, `INSERT INTO skills (id, tenant, name, title, versions, created_at) VALUES (?, ?, ?, ?, 1, ?)`,
			string(k.ID), k.Tenant, k.Name, s.db.Seal.SealFor(k.Tenant, []byte(k.Title), titlePlace(k.ID)), sqldb.Micros(now)); err != nil {
			return err
		}
		return s.put(ctx, t, k, b, packed, now, events)
	})
	if sqldb.Violates(err, sqldb.Unique) {
		return fault.Wrap(fault.Conflict, err, fmt.Sprintf("this tenant has a skill %q: add a version to it, or delete it first", b.Head.Name))
	}
	return s.db.Write.Wrap("create a skill", err)
}

func (s *Store) AddVersion(ctx context.Context, k *skill.Skill, b *skill.Bundle, most skill.Limits, events ...tenant.PolicyEvent) error {
	packed, err := b.Pack()
	if err != nil {
		return err
	}
	id := k.Latest.ID
	err = s.transact(ctx, k.Tenant, func(t *sqldb.Tx, at time.Time) error {
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
		if _, err := t.Exec(ctx, `UPDATE skills SET versions = versions + 1 WHERE id = ?`, string(k.ID)); err != nil {
			return err
		}
		*k = *now
		k.Latest = skill.Version{ID: id}
		if err := t.Row(ctx, `SELECT versions FROM skills WHERE id = ?`, string(k.ID)).Scan(&k.Latest.Number); err != nil {
			return err
		}
		return s.put(ctx, t, k, b, packed, at, events)
	})
	return s.db.Write.Wrap("add a version of a skill", err)
}

func (s *Store) Get(ctx context.Context, t tenant.ID, idOrName string) (*skill.Skill, error) {
	k, err := s.get(ctx, s.db.Read, t, idOrName)
	return k, s.db.Read.Wrap("get a skill", err)
}

func (s *Store) get(ctx context.Context, q sqldb.Querier, t tenant.ID, idOrName string) (*skill.Skill, error) {
	r, err := s.scan(q.Row(ctx, `SELECT `+skillColumns+skillFrom+`WHERE `+latestVersion+` AND s.tenant = ? AND (s.id = ? OR s.name = ?)`, t, idOrName, idOrName))
	if err == sql.ErrNoRows {
		return nil, skill.ErrNotFound
	}
	return &r.Skill, err
}

func (s *Store) version(ctx context.Context, t tenant.ID, where string, args ...any) (*skill.Version, error) {
	r, err := versionView.Row(s.db.Read.Row(ctx, `SELECT `+versionView.Selected+skillFrom+`WHERE s.tenant = ? AND `+where, append([]any{t}, args...)...))
	if err == sql.ErrNoRows {
		return nil, skill.ErrNoVersion
	}
	if err == nil {
		_, err = s.openVersion(t, &r)
	}
	return &r.Version, s.db.Read.Wrap("get a version of a skill", err)
}

func (s *Store) Version(ctx context.Context, t tenant.ID, id skill.VersionID) (*skill.Version, error) {
	return s.version(ctx, t, `v.id = ?`, string(id))
}

func (s *Store) Numbered(ctx context.Context, t tenant.ID, id skill.ID, number int) (*skill.Version, error) {
	return s.version(ctx, t, `s.id = ? AND v.number = ?`, string(id), number)
}

func (s *Store) Content(ctx context.Context, t tenant.ID, id skill.VersionID) (*skill.Bundle, error) {
	var sealed []byte
	err := s.db.Read.Row(ctx, `SELECT v.content`+skillFrom+`WHERE s.tenant = ? AND v.id = ?`, t, string(id)).Scan(&sealed)
	if err == sql.ErrNoRows {
		return nil, skill.ErrNoVersion
	}
	if err != nil {
		return nil, s.db.Read.Wrap("read a version of a skill", err)
	}
	packed, err := s.db.Seal.OpenFor(t, sealed, versionPlace(id, "content"))
	if err != nil {
		return nil, sqldb.About(err, "the files", string(id))
	}
	files, err := skill.Unpack(packed)
	if err != nil {
		return nil, err
	}
	return skill.NewBundle(files)
}

// SkillFiles implements execution.Skills.
func (s *Store) SkillFiles(ctx context.Context, tenant string, of execution.SkillRef) ([]execution.SkillFile, error) {
	b, err := s.Content(ctx, tenant, skill.VersionID(of.Version))
	if err != nil {
		return nil, err
	}
	files := make([]execution.SkillFile, len(b.Files))
	for i, f := range b.Files {
		files[i] = execution.SkillFile{Path: skill.Dir + "/" + b.Head.Name + "/" + f.Path, Exec: f.Exec, Data: f.Data}
	}
	return files, nil
}

var _ execution.Skills = (*Store)(nil)
