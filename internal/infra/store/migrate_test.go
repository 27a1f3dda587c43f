package store

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/atoll-run/atoll/internal/infra/seal"
	"github.com/atoll-run/atoll/test/atolltest"
)

func testBox(t testing.TB) *seal.Box {
	t.Helper()
	b, err := seal.New(make([]byte, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Shared is the PostgreSQL of the tests that neither stop nor measure it.
var Shared atolltest.SharedPostgres

func TestMain(m *testing.M) { Shared.Main(m) }

// migrationTargets are fresh databases, one of each engine.
func migrationTargets(t *testing.T, test func(t *testing.T, fresh func() Config)) {
	t.Run("sqlite", func(t *testing.T) {
		test(t, func() Config { return Config{Path: filepath.Join(t.TempDir(), "atoll.db"), Seal: testBox(t)} })
	})
	t.Run("postgres", func(t *testing.T) {
		server := Shared.Get(t)
		test(t, func() Config {
			url, err := server.Database(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return Config{URL: url, Seal: testBox(t)}
		})
	})
}

func mustOpen(t *testing.T, c Config) *DB {
	t.Helper()
	db, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func TestNewerSchemaIsRefused(t *testing.T) {
	migrationTargets(t, func(t *testing.T, fresh func() Config) {
		for what, statement := range map[string]string{
			"ours":  `INSERT INTO schema_versions (version_id, is_applied) VALUES (9999, TRUE); UPDATE schema_compat SET oldest = 9999`,
			"River": `INSERT INTO river_migration (line, version) VALUES ('main', 9999)`,
		} {
			c := fresh()
			db := mustOpen(t, c)
			if _, err := db.SQL().ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			if db, err := Open(t.Context(), c); err == nil || !strings.Contains(err.Error(), "newer version of Atoll") {
				t.Errorf("%s: %v", what, err)
				if err == nil {
					db.Close()
				}
			}
		}
	})
}

// TestNewerSchemaIsUsed opens a database that a later version has added to: a
// server can be rolled back by one version.
func TestNewerSchemaIsUsed(t *testing.T) {
	migrationTargets(t, func(t *testing.T, fresh func() Config) {
		c := fresh()
		db := mustOpen(t, c)
		if _, err := db.SQL().ExecContext(t.Context(), `INSERT INTO schema_versions (version_id, is_applied) VALUES (9999, TRUE);
				ALTER TABLE executions ADD COLUMN later TEXT NOT NULL DEFAULT ''; CREATE TABLE later (x TEXT)`); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		db = mustOpen(t, c)
		defer db.Close()
		if _, err := db.Tenants().Plan(t.Context(), "enterprise"); err != nil {
			t.Error(err)
		}
	})
}

// TestOpenAtOnce starts several processes' worth of stores on one fresh
// database.
func TestOpenAtOnce(t *testing.T) {
	migrationTargets(t, func(t *testing.T, fresh func() Config) {
		c := fresh()
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				db, err := Open(t.Context(), c)
				if err != nil {
					t.Error(err)
					return
				}
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
}

func TestOpenRefuses(t *testing.T) {
	box := testBox(t)
	for what, c := range map[string]Config{
		"no key":                 {Path: filepath.Join(t.TempDir(), "x.db")},
		"nothing":                {Seal: box},
		"another database":       {URL: "mysql://user:geheim@localhost/x", Seal: box},
		"a URL that is none":     {URL: "postgres://user:geheim@[::1/x", Seal: box},
		"a server that is not":   {URL: "postgres://user:geheim@127.0.0.1:1/x", Seal: box},
		"a file that is a table": {Path: notADatabase(t), Seal: box},
	} {
		db, err := Open(t.Context(), c)
		if err == nil {
			db.Close()
			t.Errorf("%s: opened", what)
		} else if strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: the password is in the error: %v", what, err)
		}
	}
}

func notADatabase(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "x.db")
	if err := os.WriteFile(path, []byte(strings.Repeat("name,value\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
