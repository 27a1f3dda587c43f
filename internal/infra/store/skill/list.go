package skill

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/core/tenant"
	policydb "github.com/atoll-run/atoll/internal/infra/store/policy"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

func (s *Store) List(ctx context.Context, t tenant.ID, f skill.Filter) (page []skill.Skill, next string, err error) {
	where := latestVersion + ` AND s.tenant = ?`
	if !f.Archived {
		where += ` AND s.archived_at IS NULL`
	}
	all, next, err := sqldb.PageOf(ctx, s.db, sqldb.Page(f.Page), "skills/"+t, `SELECT `+skillColumns+skillFrom+`WHERE `+where, "s.seq", []any{t}, s.scan, func(r *skillRow) int64 { return r.seq })
	for i := range all {
		page = append(page, all[i].Skill)
	}
	return page, next, s.db.Read.Wrap("list skills", err)
}

func (s *Store) Versions(ctx context.Context, t tenant.ID, id skill.ID, p skill.Page) ([]skill.Version, string, error) {
	if _, err := s.Get(ctx, t, string(id)); err != nil {
		return nil, "", err
	}
	page, next, err := sqldb.PageOf(ctx, s.db, sqldb.Page(p), "skill_versions/"+string(id), `SELECT `+versionView.Selected+skillFrom+`WHERE s.tenant = ? AND s.id = ?`, "v.number", []any{t, string(id)},
		func(sc sqldb.Scanner) (skill.Version, error) {
			r, err := versionView.Row(sc)
			if err != nil {
				return r.Version, err
			}
			return s.openVersion(t, &r)
		}, func(v *skill.Version) int64 { return int64(v.Number) })
	return page, next, s.db.Read.Wrap("list versions of a skill", err)
}

func (s *Store) Archive(ctx context.Context, t tenant.ID, id skill.ID, events ...tenant.PolicyEvent) (k *skill.Skill, err error) {
	err = s.db.Write.Transact(ctx, func(tx *sqldb.Tx) error {
		now, err := tx.Clock(ctx)
		if err != nil {
			return err
		}
		n, err := tx.Exec(ctx, `UPDATE skills SET archived_at = ? WHERE tenant = ? AND id = ? AND archived_at IS NULL`, sqldb.Micros(now), t, string(id))
		if err == nil && n > 0 {
			err = policydb.Insert(ctx, tx, events...)
		}
		if err != nil {
			return err
		}
		k, err = s.get(ctx, tx, t, string(id))
		return err
	})
	return k, s.db.Write.Wrap("archive a skill", err)
}

func (s *Store) Delete(ctx context.Context, t tenant.ID, id skill.ID, events ...tenant.PolicyEvent) error {
	return s.db.Transact(ctx, "delete a skill", func(tx *sqldb.Tx) error {
		n, err := tx.Exec(ctx, `DELETE FROM skills WHERE tenant = ? AND id = ?`, t, string(id))
		switch {
		case err != nil:
			return err
		case n == 0:
			return skill.ErrNotFound
		}
		return policydb.Insert(ctx, tx, events...)
	})
}

func (s *Store) DeleteVersion(ctx context.Context, t tenant.ID, id skill.ID, v skill.VersionID, events ...tenant.PolicyEvent) error {
	err := s.db.Write.TransactLocked(ctx, "skills", t, func(tx *sqldb.Tx) error {
		var all, one int
		err := tx.Row(ctx, `SELECT COUNT(*), COUNT(CASE WHEN v.id = ? THEN 1 END)`+skillFrom+`WHERE s.tenant = ? AND s.id = ?`, string(v), t, string(id)).Scan(&all, &one)
		switch {
		case err != nil:
			return err
		case all == 0:
			return skill.ErrNotFound
		case one == 0:
			return skill.ErrNoVersion
		case all == 1:
			return skill.ErrLast
		}
		if _, err := tx.Exec(ctx, `DELETE FROM skill_versions WHERE id = ?`, string(v)); err != nil {
			return err
		}
		return policydb.Insert(ctx, tx, events...)
	})
	return s.db.Write.Wrap("delete a version of a skill", err)
}
