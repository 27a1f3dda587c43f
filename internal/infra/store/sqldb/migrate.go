package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/infra/store/migrations"
)

// migrationLock is the number of PostgreSQL's advisory lock that a process
// holds while it migrates.
const migrationLock = 0x61746f6c6c // "atoll"

// migrate brings the schema up to date: our own tables, and those of the queue
// of jobs. Of several processes that start at once one does it.
func migrate(ctx context.Context, p *Pool, path string, log *slog.Logger) error {
	unlock, err := lockMigrations(ctx, p, path)
	if err != nil {
		return err
	}
	defer unlock()
	g, err := ownMigrations(p)
	if err != nil {
		return err
	}
	have, known, err := g.GetVersions(ctx)
	if err != nil {
		return err
	}
	if have > known {
		if err := compatible(ctx, p, have, known); err != nil {
			return err
		}
		log.InfoContext(ctx, "the database has a newer schema that this version can use", "version", have, "known_version", known)
		return migrateJobs(ctx, jobDriver(p))
	}
	done, err := g.Up(ctx)
	if err != nil {
		return err
	}
	if have > 0 && len(done) > 0 {
		log.InfoContext(ctx, "database schema upgraded", "from_version", have, "to_version", known)
	}
	return migrateJobs(ctx, jobDriver(p))
}

// compatible reports whether a program that knows the schema up to a version can
// use a database whose schema is newer. A server that is rolled back by one
// version can, unless a migration in between says otherwise.
func compatible(ctx context.Context, p *Pool, have, known int64) error {
	var oldest int64
	if err := p.Row(ctx, `SELECT oldest FROM schema_compat`).Scan(&oldest); err != nil {
		return fmt.Errorf("read which versions can use the schema: %w", err)
	}
	if known < oldest {
		return newer(have, known)
	}
	return nil
}

func newer(have, known int64) error {
	return fmt.Errorf("its schema has version %d, and this program knows only those up to %d: a newer version of Atoll has used it; run that version, or restore a backup from before", have, known)
}

// ownMigrations has the migrations of the pool's engine. A shipped one is not
// edited.
func ownMigrations(p *Pool) (*goose.Provider, error) {
	dialect, folder := goose.DialectSQLite3, "sqlite"
	if p.Postgres {
		dialect, folder = goose.DialectPostgres, "postgres"
	}
	files, err := fs.Sub(migrations.Files, folder)
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(dialect, p.DB, files, goose.WithTableName("schema_versions"), goose.WithDisableGlobalRegistry(true))
}

// jobDriver is the queue's way to the database.
func jobDriver(p *Pool) riverdriver.Driver[*sql.Tx] {
	if p.Postgres {
		return riverdatabasesql.New(p.DB)
	}
	return riversqlite.New(p.DB)
}

// migrateJobs has River bring its tables up to date.
func migrateJobs(ctx context.Context, d riverdriver.Driver[*sql.Tx]) error {
	m, err := rivermigrate.New(d, &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	known := int64(0)
	for _, v := range m.AllVersions() {
		known = max(known, int64(v.Version))
	}
	have, err := jobsVersion(ctx, d.GetExecutor())
	if err != nil {
		return fmt.Errorf("jobs: %w", err)
	}
	if have > known {
		return fmt.Errorf("jobs: %w", newer(have, known))
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("jobs: %w", err)
	}
	return nil
}

// jobsVersion is the version of River's tables, 0 if there are none.
func jobsVersion(ctx context.Context, e riverdriver.Executor) (int64, error) {
	exists, err := e.TableExists(ctx, &riverdriver.TableExistsParams{Table: "river_migration"})
	if err != nil || !exists {
		return 0, err
	}
	done, err := e.MigrationGetByLine(ctx, &riverdriver.MigrationGetByLineParams{Line: riverdriver.MigrationLineMain})
	if err != nil {
		return 0, err
	}
	last := 0
	for _, v := range done {
		last = max(last, v.Version)
	}
	return int64(last), nil
}

func lockMigrations(ctx context.Context, p *Pool, path string) (unlock func(), err error) {
	if !p.Postgres {
		return lockFile(path + ".lock")
	}
	conn, err := p.DB.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := conn.ExecContext(ctx, `SELECT pg_advisory_lock($1)`, int64(migrationLock)); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return func() {
		// Ending the session would let the lock go as well.
		conn.ExecContext(context.WithoutCancel(ctx), `SELECT pg_advisory_unlock($1)`, int64(migrationLock)) //nolint:errcheck // see above
		conn.Close()
	}, nil
}

func lockFile(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { f.Close() }, nil // the lock goes with it
}
