package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite"
	"modernc.org/sqlite/lib"
)

// The database's clock, which is this process's, under the name and with the
// precision that PostgreSQL's function has.
func init() {
	sqlite.MustRegisterScalarFunction("atoll_now", 0, func(*sqlite.FunctionContext, []driver.Value) (driver.Value, error) {
		return time.Now().UnixMicro(), nil
	})
}

// readers is how many connections read a SQLite database beside the one that
// writes.
const readers = 4

// busyTimeout is how long a statement waits for other processes that use the
// file.
const busyTimeout = 10 * time.Second

// openSQLite opens a file for one connection that writes, and others that
// read what it has committed without waiting for it.
func openSQLite(ctx context.Context, path string) (write, read *Pool, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return nil, nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, nil, err
	}
	// SQLite makes its other files with the rights of this one.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, err
	}
	if err := f.Close(); err != nil {
		return nil, nil, err
	}
	if write, err = dialSQLite(path, 1, "journal_mode(wal)", "synchronous(normal)", "foreign_keys(1)", "cache_size(-32768)", "wal_autocheckpoint(4000)"); err != nil {
		return nil, nil, err
	}
	if err := connect(ctx, write.DB); err != nil {
		write.DB.Close()
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	if read, err = dialSQLite(path, readers, "query_only(1)", "cache_size(-16384)"); err != nil {
		write.DB.Close()
		return nil, nil, err
	}
	return write, read, nil
}

// connect makes the first connection, which sets the journal's mode. SQLite
// answers that this one is busy at once, whatever the timeout, where another
// process is at the same: of two that start at once on a new file, one.
func connect(ctx context.Context, db *sql.DB) error {
	until := time.Now().Add(busyTimeout)
	for {
		err := db.PingContext(ctx)
		busy, ok := errors.AsType[*sqlite.Error](err)
		if !ok || busy.Code()&0xff != sqlite3.SQLITE_BUSY || time.Now().After(until) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func dialSQLite(path string, connections int, pragmas ...string) (*Pool, error) {
	query := url.Values{"_txlock": {"immediate"}, "_pragma": append([]string{fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds())}, pragmas...)}
	dsn := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: query.Encode()}
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return newPool(db, false), nil
}

// Backup writes a copy of the SQLite database to a file that must not exist. It returns an error for
// PostgreSQL, which has its own tools.
func (db *DB) Backup(ctx context.Context, path string) error {
	if db.Write.Postgres {
		return fmt.Errorf("back up the database: it is PostgreSQL; use pg_dump")
	}
	return CopySQLite(ctx, db.path, path)
}

// CopySQLite is Backup for a database that this process has not opened. Another process, of any
// version, may use it.
func CopySQLite(ctx context.Context, from, to string) error {
	if _, err := os.Stat(from); err != nil {
		return fmt.Errorf("back up the database: %w", err)
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("back up the database: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("back up the database: %w", err)
	}
	// A connection of its own: those that read may not write, and the one that
	// writes is not to wait. The copy is read in one transaction; VACUUM INTO takes
	// an empty file, which so keeps its rights.
	own, err := dialSQLite(from, 1)
	if err != nil {
		return fmt.Errorf("back up the database: %w", err)
	}
	defer own.close()
	if _, err := own.DB.ExecContext(ctx, `VACUUM INTO ?`, to); err != nil {
		os.Remove(to)
		return fmt.Errorf("back up the database: %w", err)
	}
	return nil
}
