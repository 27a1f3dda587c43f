package store

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/requirement"
)

// packageBuilds is the requirement.Store.
type packageBuilds struct{ db *DB }

var _ requirement.Store = (*packageBuilds)(nil)

// PackageBuilds is the store of how far packages of environments are installed.
func (db *DB) PackageBuilds() requirement.Store { return &packageBuilds{db} }

// packageBuildTable is the table of builds.
var packageBuildTable = newTable("package_builds",
	col("ref", fixed, func(r *requirement.Build) any { return &r.Ref }),
	col("executor", fixed, func(r *requirement.Build) any { return &r.Executor }),
	col("image", all, func(r *requirement.Build) any { return &r.Image }),
	col("state", all, func(r *requirement.Build) any { return &r.State }),
	col("log", all, func(r *requirement.Build) any { return textsAt(&r.Log) }),
	col("updated_at", all, func(r *requirement.Build) any { return timeAt(&r.UpdatedAt) }),
)

func scanPackageBuild(s scanner) (requirement.Build, error) {
	var r requirement.Build
	return r, packageBuildTable.scan(s, &r)
}

func (s *packageBuilds) Wanted(ctx context.Context) ([]requirement.Wanted, error) {
	rows, err := s.db.read.rows(ctx, `SELECT DISTINCT image, packages, tenant FROM environments WHERE packages <> '' OR image LIKE '`+requirement.Default+`+%' ORDER BY image, packages, tenant`)
	each, err := collect(rows, err, func(s scanner) (w requirement.Wanted, err error) {
		w.Tenants = make([]string, 1)
		return w, s.Scan(&w.Image, packagesAt(&w.Set), &w.Tenants[0])
	})
	var all []requirement.Wanted
	for _, w := range each {
		if n := len(all); n > 0 && all[n-1].Ref() == w.Ref() {
			all[n-1].Tenants = append(all[n-1].Tenants, w.Tenants[0])
		} else {
			all = append(all, w)
		}
	}
	return all, s.db.read.wrap("list the packages of environments", err)
}

func (s *packageBuilds) Builds(ctx context.Context, ref string) ([]requirement.Build, error) {
	rows, err := s.db.read.rows(ctx, `SELECT `+packageBuildTable.selected+` FROM package_builds WHERE ref = ? ORDER BY executor`, ref)
	all, err := collect(rows, err, scanPackageBuild)
	return all, s.db.read.wrap("list builds of packages", err)
}

func (s *packageBuilds) Of(ctx context.Context, executor string) ([]requirement.Build, error) {
	rows, err := s.db.read.rows(ctx, `SELECT `+packageBuildTable.selected+` FROM package_builds WHERE executor = ? ORDER BY ref`, executor)
	all, err := collect(rows, err, scanPackageBuild)
	return all, s.db.read.wrap("list builds of packages", err)
}

func (s *packageBuilds) Put(ctx context.Context, b requirement.Build) error {
	values, err := packageBuildTable.values(insert, &b)
	if err == nil {
		_, err = s.db.write.exec(ctx, packageBuildTable.insert+` ON CONFLICT (ref, executor) DO UPDATE
			SET image = excluded.image, state = excluded.state, log = excluded.log, updated_at = excluded.updated_at`, values...)
	}
	return s.db.write.wrap("record a build of packages", err)
}

func (s *packageBuilds) Retry(ctx context.Context, ref string) error {
	_, err := s.db.write.exec(ctx, `DELETE FROM package_builds WHERE ref = ? AND state = ?`, ref, string(requirement.Failed))
	return s.db.write.wrap("forget a failed build of packages", err)
}

func (s *packageBuilds) Delete(ctx context.Context, ref, executor string) error {
	_, err := s.db.write.exec(ctx, `DELETE FROM package_builds WHERE ref = ? AND executor = ?`, ref, executor)
	return s.db.write.wrap("forget a build of packages", err)
}

func (s *packageBuilds) UsedImages(ctx context.Context) ([]string, error) {
	rows, err := s.db.read.rows(ctx, `SELECT image FROM sandboxes WHERE state <> 'destroyed' UNION SELECT image FROM snapshots`)
	all, err := collect(rows, err, func(s scanner) (name string, err error) { return name, s.Scan(&name) })
	return all, s.db.read.wrap("list the images of sandboxes", err)
}
