// Package sqldbtest opens databases for tests of one kind of record.
package sqldbtest

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/infra/seal"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

// SQLite opens an empty database in a folder of the test.
func SQLite(t testing.TB) *sqldb.DB {
	t.Helper()
	box, err := seal.New(make([]byte, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	db, err := sqldb.Open(t.Context(), sqldb.Config{Path: filepath.Join(t.TempDir(), "atoll.db"), Seal: box})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close the database: %v", err)
		}
	})
	return db
}

// Plan returns how SQLite would answer a query, in one line.
func Plan(t testing.TB, db *sqldb.DB, query string, args ...any) string {
	t.Helper()
	rows, err := db.Write.DB.QueryContext(t.Context(), `EXPLAIN QUERY PLAN `+query, args...)
	plan, err := sqldb.Collect(rows, err, func(sc sqldb.Scanner) (line string, err error) {
		var id, parent, unused int
		return line, sc.Scan(&id, &parent, &unused, &line)
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(plan, "; ")
}
