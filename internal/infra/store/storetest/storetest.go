// Package storetest opens databases for tests and fills them.
package storetest

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/seal"
	"github.com/atoll-run/atoll/internal/infra/store"
)

// Box is a box with a fixed key.
func Box(t testing.TB) *seal.Box {
	t.Helper()
	b, err := box()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Tenant makes a tenant on the plan pro.
func Tenant(t testing.TB, db *store.DB, id tenant.ID) {
	t.Helper()
	create(t, db, tenant.Tenant{ID: id, Name: "test", Plan: "pro", Tier: tenant.Standard, AuditDays: 1})
}

// Operator makes the tenant that every installation has, and notes go to.
func Operator(t testing.TB, db *store.DB) tenant.ID {
	t.Helper()
	id := tenant.NewID("ten")
	create(t, db, tenant.Tenant{ID: id, Name: tenant.Operator, Plan: "enterprise", Tier: tenant.Standard, AuditDays: 1})
	return id
}

func create(t testing.TB, db *store.DB, made tenant.Tenant) {
	t.Helper()
	if err := db.Tenants().CreateTenant(context.Background(), made); err != nil {
		t.Fatal(err)
	}
}

func box() (*seal.Box, error) { return seal.New(bytes.Repeat([]byte{7}, seal.KeySize)) }

// empty is a SQLite database that is up to date: making one takes longer than
// most tests.
var empty = sync.OnceValues(func() (_ []byte, err error) {
	dir, err := os.MkdirTemp("", "atoll-store-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	box, err := box()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "atoll.db")
	db, err := store.Open(context.Background(), store.Config{Path: path, Seal: box})
	if err != nil {
		return nil, err
	}
	if err := db.Close(); err != nil { // and its log is in the file
		return nil, err
	}
	return os.ReadFile(path)
})

// SQLite opens an empty database in a folder of the test's; change may set more
// of its configuration.
func SQLite(t testing.TB, change ...func(*store.Config)) *store.DB {
	t.Helper()
	path := filepath.Join(t.TempDir(), "atoll.db")
	data, err := empty()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return open(t, store.Config{Path: path}, change)
}

// Postgres opens the database that a URL names.
func Postgres(t testing.TB, url string, change ...func(*store.Config)) *store.DB {
	t.Helper()
	return open(t, store.Config{URL: url}, change)
}

func open(t testing.TB, c store.Config, change []func(*store.Config)) *store.DB {
	t.Helper()
	c.Seal = Box(t)
	for _, f := range change {
		f(&c)
	}
	db, err := store.Open(t.Context(), c)
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

// AgeAudit makes every audit row look as if it had been appended earlier, which
// takes the owner of the database; a check of the seals finds it.
func AgeAudit(t testing.TB, db *store.DB, by time.Duration) {
	t.Helper()
	us := strconv.FormatInt(by.Microseconds(), 10)
	Force(t, db, []string{"audit_rows_update", "audit_members_update"},
		`UPDATE audit_rows SET created_at = created_at - `+us, `UPDATE audit_members SET expires_at = expires_at - `+us)
}

// Force runs statements past the triggers that SQLite has under some names, and
// past all of PostgreSQL.
func Force(t testing.TB, db *store.DB, triggers []string, statements ...string) {
	t.Helper()
	conn, err := db.SQL().Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	before, after := []string{`SET session_replication_role = replica`}, []string{`SET session_replication_role = origin`}
	if !db.Postgres() {
		before, after = nil, nil
		for _, name := range triggers {
			var make string
			if err := conn.QueryRowContext(t.Context(), `SELECT sql FROM sqlite_schema WHERE name = ?`, name).Scan(&make); err != nil {
				t.Fatal(err)
			}
			before, after = append(before, `DROP TRIGGER `+name), append(after, make)
		}
	}
	for _, query := range slices.Concat(before, statements, after) {
		if _, err := conn.ExecContext(t.Context(), query); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
}
