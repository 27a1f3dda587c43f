// Package requirement stores the progress of package installations for environments.
package requirement

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

// Store implements requirement.Store.
type Store struct{ db *sqldb.DB }

var _ requirement.Store = (*Store)(nil)

// New returns the store in a database.
func New(db *sqldb.DB) *Store { return &Store{db} }

// packageBuildTable is the table of builds.
var packageBuildTable = sqldb.NewTable("package_builds",
	sqldb.Col("ref", sqldb.Fixed, func(r *requirement.Build) any { return &r.Ref }),
	sqldb.Col("executor", sqldb.Fixed, func(r *requirement.Build) any { return &r.Executor }),
	sqldb.Col("image", sqldb.All, func(r *requirement.Build) any { return &r.Image }),
	sqldb.Col("state", sqldb.All, func(r *requirement.Build) any { return &r.State }),
	sqldb.Col("log", sqldb.All, func(r *requirement.Build) any { return sqldb.TextsAt(&r.Log) }),
	sqldb.Col("updated_at", sqldb.All, func(r *requirement.Build) any { return sqldb.TimeAt(&r.UpdatedAt) }),
)

// wantedRow is the packages of one environment.
type wantedRow struct {
	requirement.Wanted
	tenant string
}

var wantedView = sqldb.NewView(
	sqldb.Col("image", sqldb.Read, func(r *wantedRow) any { return &r.Image }),
	sqldb.Col("packages", sqldb.Read, func(r *wantedRow) any { return sqldb.PackagesAt(&r.Set) }),
	sqldb.Col("tenant", sqldb.Read, func(r *wantedRow) any { return &r.tenant }),
)

func (s *Store) Wanted(ctx context.Context) ([]requirement.Wanted, error) {
	each, err := sqldb.Select(ctx, s.db.Read, wantedView.Row, `SELECT DISTINCT `+wantedView.Selected+` FROM environments WHERE packages <> '' OR image LIKE '`+requirement.Default+`+%' ORDER BY image, packages, tenant`)
	var all []requirement.Wanted
	for _, w := range each {
		if n := len(all); n > 0 && all[n-1].Ref() == w.Ref() {
			all[n-1].Tenants = append(all[n-1].Tenants, w.tenant)
		} else {
			w.Tenants = []string{w.tenant}
			all = append(all, w.Wanted)
		}
	}
	return all, s.db.Read.Wrap("list the packages of environments", err)
}

func (s *Store) Builds(ctx context.Context, ref string) ([]requirement.Build, error) {
	all, err := sqldb.Select(ctx, s.db.Read, packageBuildTable.Row, `SELECT `+packageBuildTable.Selected+` FROM package_builds WHERE ref = ? ORDER BY executor`, ref)
	return all, s.db.Read.Wrap("list builds of packages", err)
}

func (s *Store) Of(ctx context.Context, executor string) ([]requirement.Build, error) {
	all, err := sqldb.Select(ctx, s.db.Read, packageBuildTable.Row, `SELECT `+packageBuildTable.Selected+` FROM package_builds WHERE executor = ? ORDER BY ref`, executor)
	return all, s.db.Read.Wrap("list builds of packages", err)
}

func (s *Store) Put(ctx context.Context, b requirement.Build) error {
	values, err := packageBuildTable.Values(sqldb.Insert, &b)
	if err == nil {
		_, err = s.db.Write.Exec(ctx, packageBuildTable.Insert+` ON CONFLICT (ref, executor) DO UPDATE
			SET image = excluded.image, state = excluded.state, log = excluded.log, updated_at = excluded.updated_at`, values...)
	}
	return s.db.Write.Wrap("record a build of packages", err)
}

func (s *Store) Retry(ctx context.Context, ref string) error {
	return s.db.Exec(ctx, "forget a failed build of packages", `DELETE FROM package_builds WHERE ref = ? AND state = ?`, ref, string(requirement.Failed))
}

func (s *Store) Delete(ctx context.Context, ref, executor string) error {
	return s.db.Exec(ctx, "forget a build of packages", `DELETE FROM package_builds WHERE ref = ? AND executor = ?`, ref, executor)
}

func (s *Store) UsedImages(ctx context.Context) ([]string, error) {
	all, err := sqldb.Select(ctx, s.db.Read, sqldb.Value[string], `SELECT image FROM sandboxes WHERE state <> 'destroyed' UNION SELECT image FROM snapshots`)
	return all, s.db.Read.Wrap("list the images of sandboxes", err)
}
