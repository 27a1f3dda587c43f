package store

import (
	"bytes"
	"database/sql"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/seal"
)

func boxOf(t *testing.T, fill byte) *seal.Box {
	t.Helper()
	b, err := seal.New(bytes.Repeat([]byte{fill}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// withSecret fills a fresh database with an environment that has a secret.
func withSecret(t *testing.T, c Config) {
	t.Helper()
	db := mustOpen(t, c)
	tenants := db.Tenants()
	err := tenants.CreateTenant(t.Context(), tenant.Tenant{ID: "ten_1", Name: "acme", Plan: "pro", Tier: tenant.Standard, AuditDays: 30})
	if err == nil {
		err = tenants.CreateEnvironment(t.Context(), tenant.Environment{
			ID: "env_1", Tenant: "ten_1", Name: "main", Image: "default", Limits: runtime.Limits{CPU: 1}, Secrets: map[string]string{"TOKEN": "geheim"},
		})
	}
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

func refusesKey(t *testing.T, c Config) {
	t.Helper()
	db, err := Open(t.Context(), c)
	if err == nil {
		db.Close()
	}
	if !errors.Is(err, ErrOtherKey) {
		t.Fatalf("opened with another key: %v", err)
	}
}

// runSQL runs statements beside Atoll, as an operator does.
func runSQL(t *testing.T, c Config, statements string) {
	t.Helper()
	driver, name := "sqlite", c.Path
	if c.URL != "" {
		driver, name = "pgx", c.URL
	}
	db, err := sql.Open(driver, name)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := db.Conn(t.Context()) // one for all, because some are a transaction
	if err != nil {
		t.Fatal(err)
	}
	for statement := range strings.SplitSeq(statements, ";") {
		if _, err := conn.ExecContext(t.Context(), statement); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAnotherKeyIsRefused(t *testing.T) {
	migrationTargets(t, func(t *testing.T, fresh func() Config) {
		c := fresh()
		withSecret(t, c)
		other := c
		other.Seal = boxOf(t, 9)

		refusesKey(t, other)
		if err := mustOpen(t, c).Close(); err != nil { // the refusal changed nothing
			t.Fatal(err)
		}

		// Records of a version that did not note the key.
		const forget = `DELETE FROM secret_key`
		runSQL(t, c, forget)
		refusesKey(t, other)
		if err := mustOpen(t, c).Close(); err != nil {
			t.Fatal(err)
		}
		refusesKey(t, other) // it is noted now

		// Nothing sealed, but noted: others may be sealing with that key just now.
		c = fresh()
		if err := mustOpen(t, c).Close(); err != nil {
			t.Fatal(err)
		}
		c.Seal = boxOf(t, 9)
		refusesKey(t, c)
	})
}

// TestLostKey follows the runbook where the key is lost for good.
func TestLostKey(t *testing.T) {
	book, err := os.ReadFile("../../../docs/operate/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(book), "### The secret key is lost for good")
	_, section, _ = strings.Cut(section, "```sql\n")
	statements, _, ended := strings.Cut(section, "```")
	if !found || !ended {
		t.Fatal("the runbook has no statements for a lost key")
	}
	migrationTargets(t, func(t *testing.T, fresh func() Config) {
		c := fresh()
		withSecret(t, c)
		runSQL(t, c, strings.TrimSuffix(strings.TrimSpace(statements), ";"))
		c.Seal = boxOf(t, 9)
		db := mustOpen(t, c)
		defer db.Close()
		e, err := db.Tenants().Environment(t.Context(), "ten_1", "main")
		if err != nil || len(e.Secrets) != 0 {
			t.Errorf("%v, %v", e.Secrets, err)
		}
		e.Secrets = map[string]string{"TOKEN": "neu"}
		if err := db.Tenants().UpdateEnvironment(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		if e, err = db.Tenants().Environment(t.Context(), "ten_1", "main"); err != nil || e.Secrets["TOKEN"] != "neu" {
			t.Errorf("%v, %v", e.Secrets, err)
		}
	})
}
