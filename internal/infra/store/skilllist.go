package store

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

func (s *skills) List(ctx context.Context, t tenant.ID, f skill.Filter) (page []skill.Skill, next string, err error) {
	where := latestVersion + ` AND s.tenant = ?`
	if !f.Archived {
		where += ` AND s.archived_at IS NULL`
	}
	all, next, err := pageOf(ctx, s.db, f.Page, "skills/"+t, `SELECT `+skillColumns+skillFrom+`WHERE `+where, "s.seq", []any{t}, s.scan, func(r *skillRow) int64 { return r.seq })
	for i := range all {
		page = append(page, all[i].Skill)
	}
	return page, next, s.db.read.wrap("list skills", err)
}

func (s *skills) Versions(ctx context.Context, t tenant.ID, id skill.ID, p skill.Page) ([]skill.Version, string, error) {
	if _, err := s.Get(ctx, t, string(id)); err != nil {
		return nil, "", err
	}
	page, next, err := pageOf(ctx, s.db, p, "skill_versions/"+string(id), `SELECT `+versionColumns+skillFrom+`WHERE s.tenant = ? AND s.id = ?`, "v.number", []any{t, string(id)},
		func(sc scanner) (v skill.Version, err error) {
			var r versionRow
			if err := sc.Scan(r.into()...); err != nil {
				return v, err
			}
			return s.openVersion(t, &r)
		}, func(v *skill.Version) int64 { return int64(v.Number) })
	return page, next, s.db.read.wrap("list versions of a skill", err)
}

// pageOf reads a part of a list that falls by a column.
func pageOf[T any](ctx context.Context, db *DB, p skill.Page, list, query, by string, args []any, scan func(scanner) (T, error), at func(*T) int64) (all []T, next string, err error) {
	if p.Limit < 1 || p.Limit > maxPage {
		return nil, "", fault.New(fault.Invalid, "limit must be between 1 and %d", maxPage)
	}
	if p.Cursor != "" {
		from, err := decodeCursor(db.seal, list, p.Cursor)
		if err != nil {
			return nil, "", err
		}
		query, args = query+` AND `+by+` < ?`, append(args, from.at)
	}
	rows, err := db.read.rows(ctx, query+` ORDER BY `+by+` DESC LIMIT ?`, append(args, p.Limit+1)...)
	if all, err = collect(rows, err, scan); err != nil || len(all) <= p.Limit {
		return all, "", err
	}
	all = all[:p.Limit]
	return all, encodeCursor(db.seal, list, place{at: at(&all[p.Limit-1])}), nil
}

func (s *skills) Archive(ctx context.Context, t tenant.ID, id skill.ID, events ...tenant.PolicyEvent) (k *skill.Skill, err error) {
	err = s.db.write.transact(ctx, func(tx *tx) error {
		now, err := tx.pool.clock(ctx, tx)
		if err != nil {
			return err
		}
		n, err := tx.exec(ctx, `UPDATE skills SET archived_at = ? WHERE tenant = ? AND id = ? AND archived_at IS NULL`, micros(now), t, string(id))
		if err == nil && n > 0 {
			err = insertEvents(ctx, tx, events)
		}
		if err != nil {
			return err
		}
		k, err = s.get(ctx, tx, t, string(id))
		return err
	})
	return k, s.db.write.wrap("archive a skill", err)
}

func (s *skills) Delete(ctx context.Context, t tenant.ID, id skill.ID, events ...tenant.PolicyEvent) error {
	err := s.db.write.transact(ctx, func(tx *tx) error {
		n, err := tx.exec(ctx, `DELETE FROM skills WHERE tenant = ? AND id = ?`, t, string(id))
		switch {
		case err != nil:
			return err
		case n == 0:
			return skill.ErrNotFound
		}
		return insertEvents(ctx, tx, events)
	})
	return s.db.write.wrap("delete a skill", err)
}

func (s *skills) DeleteVersion(ctx context.Context, t tenant.ID, id skill.ID, v skill.VersionID, events ...tenant.PolicyEvent) error {
	err := s.db.write.transact(ctx, func(tx *tx) error {
		if tx.pool.postgres {
			if _, err := tx.exec(ctx, `SELECT pg_advisory_xact_lock(?)`, lockOf("skills", t)); err != nil {
				return err
			}
		}
		var all, one int
		err := tx.row(ctx, `SELECT COUNT(*), COUNT(CASE WHEN v.id = ? THEN 1 END)`+skillFrom+`WHERE s.tenant = ? AND s.id = ?`, string(v), t, string(id)).Scan(&all, &one)
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
		if _, err := tx.exec(ctx, `DELETE FROM skill_versions WHERE id = ?`, string(v)); err != nil {
			return err
		}
		return insertEvents(ctx, tx, events)
	})
	return s.db.write.wrap("delete a version of a skill", err)
}
