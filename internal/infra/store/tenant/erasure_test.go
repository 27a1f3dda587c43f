package tenant_test

import (
	"context"
	_ "embed"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/store"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
	tenantdb "github.com/atoll-run/atoll/internal/infra/store/tenant"
	"github.com/atoll-run/atoll/test/atolltest"
)

// keptTables lists the tables whose rows remain after a tenant's deletion.
var keptTables = []string{"audit_rows", "audit_seals", "audit_members", "audit_unsealed", "policy_events"}

// endedTables lists the tables whose rows the purge deletes with their data outside the database.
var endedTables = []string{"executions", "execution_metadata", "runs"}

var postgres atolltest.SharedPostgres

func TestMain(m *testing.M) { postgres.Main(m) }

// engines runs a test with an empty database of each engine.
func engines(t *testing.T, test func(t *testing.T, db *store.DB)) {
	t.Run("sqlite", func(t *testing.T) { test(t, storetest.SQLite(t)) })
	t.Run("postgres", func(t *testing.T) {
		url, err := postgres.Get(t).Database(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		test(t, storetest.Postgres(t, url))
	})
}

// seedRows writes rows of the tenant ten_1 to each table.
//
//go:embed testdata/rows.sql
var seedRows string

// TestErasure checks that deleting a tenant clears its rows from every table. It fails for a new
// table that tenantRows lacks.
func TestErasure(t *testing.T) {
	engines(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		for query := range strings.SplitSeq(seedRows, ";\n") {
			if _, err := db.SQL().ExecContext(ctx, query); err != nil {
				t.Fatalf("%s: %v", query, err)
			}
		}
		exec := func(query string, args ...any) {
			t.Helper()
			if _, err := db.SQL().ExecContext(ctx, query, args...); err != nil {
				t.Fatalf("%s: %v", query, err)
			}
		}
		exec(`UPDATE tenants SET deleted_at = NULL, erased_at = NULL, name = 'acme' WHERE id = 'ten_1'`)
		other := tenant.Tenant{ID: "ten_2", Name: "other", Plan: "free", Tier: tenant.Standard, AuditDays: 30}
		if err := db.Tenants().CreateTenant(ctx, other); err != nil {
			t.Fatal(err)
		}
		if err := db.Tenants().CreateEnvironment(ctx, tenant.Environment{ID: "env_2", Tenant: other.ID, Name: "e", Image: "default"}); err != nil {
			t.Fatal(err)
		}
		if err := db.Tenants().CreateKey(ctx, tenant.Key{ID: "key_2", Tenant: other.ID, Environment: "env_2", Name: "k", Hash: [32]byte{2}, Scopes: tenant.DefaultScopes}); err != nil {
			t.Fatal(err)
		}
		e := db.Erasures()

		event := tenant.PolicyEvent{Tenant: "ten_1", Actor: "key_admin", Field: "tenant", Old: "acme", New: "deleted"}
		for range 2 { // repeating the deletion changes nothing
			gone, err := db.Tenants().DeleteTenant(ctx, "ten_1", event)
			if err != nil || gone.DeletedAt == nil || gone.DisabledAt == nil || gone.ErasedAt != nil {
				t.Fatalf("deleting it: %+v, %v", gone, err)
			}
		}
		if all, err := e.Deleted(ctx); err != nil || len(all) != 1 || all[0].ID != "ten_1" {
			t.Fatalf("to be deleted: %+v, %v", all, err)
		}
		if err := e.Halt(ctx, "ten_1"); err != nil {
			t.Fatal(err)
		}
		if r, err := e.Remains(ctx, "ten_1"); err != nil || r.Sandboxes == 0 || r.Executor != "exe_1" || !r.Any() {
			t.Errorf("remains %+v, %v", r, err)
		}
		// Simulate the drivers and executors.
		exec(`UPDATE runs SET due_at = NULL, ended_at = 1, holder = '' WHERE tenant = 'ten_1'`)
		exec(`UPDATE executions SET status = 'cancelled', completed_at = 1 WHERE tenant = 'ten_1' AND status = 'running'`)
		if err := e.ExpireRuns(ctx, "ten_1"); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Runs().Expire(ctx, 100); err != nil {
			t.Fatal(err)
		}
		ended, err := db.Executions().OfTenant(ctx, "ten_1", 100)
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Executions().Delete(ctx, idsOf(ended)); err != nil {
			t.Fatal(err)
		}
		rows := 0
		for {
			n, err := e.Erase(ctx, "ten_1", 1)
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				break
			}
			rows += n
		}
		if rows < tenantdb.MinErased {
			t.Errorf("only %d rows were there", rows)
		}
		for _, table := range tenantTables(ctx, t, db) {
			var n int
			if err := db.SQL().QueryRowContext(ctx, `SELECT count(*) FROM `+table+` WHERE tenant = 'ten_1'`).Scan(&n); err != nil {
				t.Fatal(err)
			}
			erased := tenantdb.Erases(table)
			if kept := slices.Contains(keptTables, table); !kept && n != 0 || !kept && !erased && !slices.Contains(endedTables, table) {
				t.Errorf("%s still has %d rows of the tenant: add it to tenantRows", table, n)
			}
		}
		if r, err := e.Remains(ctx, "ten_1"); err != nil || r.Any() {
			t.Errorf("at the end remains %+v, %v", r, err)
		}
		if err := e.Finish(ctx, "ten_1"); err != nil {
			t.Fatal(err)
		}
		checkErased(ctx, t, db, other)
	})
}

// checkErased checks the remaining records of the tenant ten_1, formerly acme, and of other.
func checkErased(ctx context.Context, t *testing.T, db *store.DB, other tenant.Tenant) {
	t.Helper()
	if all, err := db.Tenants().Tenants(ctx); err != nil || len(all) != 1 || all[0].ID != other.ID {
		t.Errorf("tenants %+v, %v", all, err)
	}
	if _, err := db.Tenants().Key(ctx, other.ID, "k"); err != nil {
		t.Errorf("the other tenant's key: %v", err)
	}
	if left, err := db.Erasures().Deleted(ctx); err != nil || len(left) != 0 {
		t.Errorf("still to be deleted: %+v, %v", left, err)
	}
	if gone, err := db.Tenants().Tenant(ctx, "ten_1"); err != nil || gone.ErasedAt == nil {
		t.Errorf("by its id: %+v, %v", gone, err)
	}
	if err := db.Tenants().CreateTenant(ctx, tenant.Tenant{ID: "ten_3", Name: "acme", Plan: "free", Tier: tenant.Standard, AuditDays: 30}); err != nil {
		t.Errorf("its name: %v", err)
	}
	events, err := db.Tenants().PolicyEvents(ctx, "ten_1")
	if err != nil {
		t.Fatal(err)
	}
	deleted := slices.DeleteFunc(events, func(e tenant.PolicyEvent) bool { return e.Field != "tenant" })
	if len(deleted) != 1 || deleted[0].Actor != "key_admin" || deleted[0].Old != "acme" {
		t.Errorf("events of the deletion: %+v", deleted)
	}
}

func idsOf(all []*execution.Execution) (ids []string) {
	for _, e := range all {
		ids = append(ids, e.TraceID)
	}
	return ids
}

// tenantTables returns the tables with a tenant column.
func tenantTables(ctx context.Context, t *testing.T, db *store.DB) []string {
	t.Helper()
	query := `SELECT m.name FROM sqlite_master m JOIN pragma_table_info(m.name) c ON c.name = 'tenant' WHERE m.type = 'table'`
	if db.Postgres() {
		query = `SELECT table_name FROM information_schema.columns WHERE column_name = 'tenant' AND table_schema = current_schema()`
	}
	rows, err := db.SQL().QueryContext(ctx, query)
	all, err := sqldb.Collect(rows, err, sqldb.Value[string])
	if err != nil || len(all) < 20 {
		t.Fatalf("tables %s: %v", strings.Join(all, ", "), err)
	}
	return all
}
