package store_test

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/tenant/tenanttest"
	"github.com/atoll-run/atoll/internal/infra/store"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
	"github.com/atoll-run/atoll/test/check"
)

var must = check.Must

func auditRow(of string) audit.Row {
	return audit.Row{TraceID: execution.NewTraceID(), Tenant: of, ExitStatus: audit.OK, Retention: 24 * time.Hour}
}

// sealAll seals a tenant's rows.
func sealAll(ctx context.Context, db *store.DB, of string) error {
	_, err := audit.NewSealer(db.Audit()).SealTenant(ctx, of)
	return err
}

// testProtected tries to forge the trail over a connection to the database.
func testProtected(t *testing.T, open opener) {
	ctx := t.Context()
	db := open(t)
	v := tenanttest.Tenant(t, db.Tenants(), "a")
	_, err := db.Tenants().ChangeTenant(ctx, v.ID, func(*tenant.Tenant) ([]tenant.PolicyEvent, error) {
		return []tenant.PolicyEvent{{Actor: "cli", Field: "x"}}, nil
	})
	must(t, err)
	for range 3 {
		must(t, db.Audit().Append(ctx, auditRow("a")))
	}
	must(t, sealAll(ctx, db, "a"))
	must(t, db.Audit().Append(ctx, auditRow("a")))

	refused := func(what, reason string) {
		t.Helper()
		attacks := []string{
			`UPDATE audit_rows SET exit_status = 'error'`,
			`UPDATE audit_rows SET retention_days = 1`,
			`UPDATE audit_rows SET created_at = 0 WHERE id = 1`,
			`DELETE FROM audit_rows`,
			`DELETE FROM audit_rows WHERE id = 1`, // sealed
			`DELETE FROM audit_rows WHERE id = 4`, // not sealed
			`UPDATE audit_seals SET hash = previous`,
			`DELETE FROM audit_seals`,
			`UPDATE audit_members SET expires_at = 0`,
			`DELETE FROM audit_members`,
			`DELETE FROM audit_unsealed`,
			`UPDATE audit_unsealed SET id = 9`,
			`UPDATE policy_events SET actor = 'forged'`,
			`DELETE FROM policy_events`,
		}
		if db.Postgres() {
			attacks = append(attacks, `TRUNCATE audit_rows`, `TRUNCATE audit_seals CASCADE`, `TRUNCATE audit_members`, `TRUNCATE audit_unsealed`, `TRUNCATE policy_events`)
		} else {
			attacks = append(attacks,
				`INSERT OR REPLACE INTO policy_events (id, tenant, actor, field, old_value, new_value, created_at) SELECT id, tenant, 'forged', field, old_value, new_value, 0 FROM policy_events`,
				`REPLACE INTO audit_members (id, tenant, number, place, expires_at) SELECT id, tenant, number, place, 0 FROM audit_members`,
				`REPLACE INTO audit_members (id, tenant, number, place, expires_at) SELECT id + 10, tenant, number, place, 0 FROM audit_members`,
				`REPLACE INTO audit_seals (tenant, number, row_count, previous, digests, expires, hash, created_at) SELECT tenant, number, 0, previous, digests, expires, hash, 0 FROM audit_seals`,
				`REPLACE INTO audit_rows (id, trace_id, tenant, key_id, environment, source, agent, session_id, language, code_sha256, exit_status, exit_code, failure_reason,
					duration_ms, stdout_bytes, stderr_bytes, stdout_truncated, stderr_truncated, peak_memory, outbound_hosts, metadata, retention_days, created_at)
					SELECT id, trace_id, tenant, key_id, environment, source, agent, session_id, language, code_sha256, 'error', exit_code, failure_reason,
					duration_ms, stdout_bytes, stderr_bytes, stdout_truncated, stderr_truncated, peak_memory, outbound_hosts, metadata, retention_days, created_at FROM audit_rows`,
			)
		}
		for _, query := range attacks {
			if _, err := db.SQL().ExecContext(ctx, query); err == nil || !strings.Contains(err.Error(), reason) {
				t.Errorf("%s: %s: %v", what, query, err)
			}
		}
	}
	refused("fresh", "a")
	for _, days := range []string{"0", "181", "-1"} {
		_, err := db.SQL().ExecContext(ctx, `INSERT INTO audit_rows (trace_id, tenant, key_id, environment, source, agent, session_id, language, code_sha256, exit_status, exit_code, failure_reason,
			duration_ms, stdout_bytes, stderr_bytes, stdout_truncated, stderr_truncated, peak_memory, outbound_hosts, metadata, retention_days, created_at)
			SELECT trace_id, tenant, key_id, environment, source, agent, session_id, language, code_sha256, exit_status, exit_code, failure_reason,
			duration_ms, stdout_bytes, stderr_bytes, stdout_truncated, stderr_truncated, peak_memory, outbound_hosts, metadata, `+days+`, created_at FROM audit_rows WHERE id = 1`)
		if err == nil {
			t.Errorf("a row that is kept for %s days", days)
		}
	}
	if report, err := audit.NewSealer(db.Audit()).Verify(ctx, "a", audit.Mark{}); err != nil || len(report.Problems) != 0 {
		t.Errorf("after all that: %+v, %v", report, err)
	}
	// What has no seal stays even when its time has passed.
	must(t, db.Audit().Append(ctx, auditRow("b")))
	storetest.AgeAudit(t, db, 48*time.Hour)
	if _, err := db.SQL().ExecContext(ctx, `DELETE FROM audit_rows WHERE tenant = 'b'`); err == nil {
		t.Error("a row without a seal could be deleted")
	}
	if _, err := db.SQL().ExecContext(ctx, `DELETE FROM audit_rows WHERE tenant = 'a'`); err != nil {
		t.Errorf("rows whose time has passed: %v", err)
	}
}

// testForgery sees that what the owner of the database does past all triggers
// shows.
func testForgery(t *testing.T, open opener) {
	ctx := t.Context()
	for what, statement := range map[string]string{
		"a row was changed":   `UPDATE audit_rows SET exit_status = 'error' WHERE id = 2`,
		"a row was taken":     `DELETE FROM audit_rows WHERE id = 2`,
		"a seal was changed":  `UPDATE audit_seals SET hash = previous WHERE number = 1`,
		"the first seal went": `DELETE FROM audit_seals WHERE number = 1`,
	} {
		db := open(t)
		for range 2 {
			for range 3 {
				must(t, db.Audit().Append(ctx, auditRow("a")))
			}
			must(t, sealAll(ctx, db, "a"))
		}
		off := []string{"audit_rows_update", "audit_rows_delete", "audit_seals_update", "audit_seals_delete"}
		if db.Postgres() {
			storetest.Force(t, db, off, statement)
		} else {
			storetest.Force(t, db, off, `PRAGMA foreign_keys = 0`, statement, `PRAGMA foreign_keys = 1`)
		}
		report, err := audit.NewSealer(db.Audit()).Verify(ctx, "a", audit.Mark{})
		must(t, err)
		if len(report.Problems) == 0 {
			t.Errorf("%s: it does not show", what)
		}
	}
}

// testSealingSwitchedOff sees that a trail does not verify whose rules were taken
// away for a while.
func testSealingSwitchedOff(t *testing.T, open opener) {
	ctx := t.Context()
	exec := func(db *store.DB, sqlite, postgres string) {
		t.Helper()
		query := sqlite
		if db.Postgres() {
			query = postgres
		}
		_, err := db.SQL().ExecContext(ctx, query)
		must(t, err)
	}
	shows := func(db *store.DB, what string, want ...audit.ProblemKind) {
		t.Helper()
		report, err := audit.NewSealer(db.Audit()).Verify(ctx, "a", audit.Mark{})
		must(t, err)
		var got []audit.ProblemKind
		for _, p := range report.Problems {
			got = append(got, p.Kind)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %+v", what, report.Problems)
		}
	}

	db := open(t)
	must(t, db.Audit().Append(ctx, auditRow("a")))
	shows(db, "before")
	var insert string
	if !db.Postgres() {
		must(t, db.SQL().QueryRowContext(ctx, `SELECT sql FROM sqlite_schema WHERE name = 'audit_rows_insert'`).Scan(&insert))
	}
	exec(db, `DROP TRIGGER audit_rows_insert`, `ALTER TABLE audit_rows DISABLE TRIGGER audit_rows_insert`)
	must(t, db.Audit().Append(ctx, auditRow("a")))
	shows(db, "without a rule", audit.Unprotected, audit.Unsealed)
	exec(db, insert, `ALTER TABLE audit_rows ENABLE TRIGGER audit_rows_insert`)
	shows(db, "with the rule again", audit.Unsealed)
	if trails, err := db.Audit().Trails(ctx); err != nil || !slices.Equal(trails, []string{"a"}) {
		t.Errorf("trails are %v, %v", trails, err)
	}

	db = open(t)
	must(t, db.Audit().Append(ctx, auditRow("a")))
	exec(db, `DROP TRIGGER audit_rows_delete`, `CREATE OR REPLACE FUNCTION audit_rows_leave() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN OLD; END; $$`)
	if !db.Postgres() {
		exec(db, `CREATE TRIGGER audit_rows_delete BEFORE DELETE ON audit_rows WHEN 0 BEGIN SELECT RAISE(ABORT, 'no'); END`, "")
	}
	shows(db, "a rule that does nothing", audit.Unprotected)

	// A row of an earlier time may go as soon as it is sealed.
	db = open(t)
	must(t, db.Audit().Append(ctx, auditRow("a")))
	_, err := db.SQL().ExecContext(ctx, `INSERT INTO audit_rows (trace_id, tenant, key_id, environment, source, agent, session_id, language, code_sha256, exit_status, exit_code, failure_reason,
		duration_ms, stdout_bytes, stderr_bytes, stdout_truncated, stderr_truncated, peak_memory, outbound_hosts, metadata, retention_days, created_at)
		SELECT 'trc_early', tenant, key_id, environment, source, agent, session_id, language, code_sha256, exit_status, exit_code, failure_reason,
		duration_ms, stdout_bytes, stderr_bytes, stdout_truncated, stderr_truncated, peak_memory, outbound_hosts, metadata, retention_days, created_at - 172800000000 FROM audit_rows`)
	must(t, err)
	shows(db, "a row of an earlier time", audit.Backdated)
	if n, err := db.Audit().Purge(ctx, 10); n != 1 || err != nil {
		t.Errorf("%d rows went, %v", n, err)
	}
	shows(db, "the row is gone", audit.Backdated)
}

// testLateRow commits a row after others with larger ids have been sealed.
func testLateRow(t *testing.T, open opener) {
	ctx := t.Context()
	db := open(t)
	if !db.Postgres() {
		return // its transactions that write come one after another
	}
	must(t, db.Audit().Append(ctx, auditRow("a")))
	late, err := db.SQL().BeginTx(ctx, nil)
	must(t, err)
	_, err = late.ExecContext(ctx, `INSERT INTO audit_rows (trace_id, tenant, key_id, environment, source, agent, session_id, language, code_sha256, exit_status, exit_code, failure_reason,
		duration_ms, stdout_bytes, stderr_bytes, stdout_truncated, stderr_truncated, peak_memory, outbound_hosts, metadata, retention_days, created_at)
		SELECT 'trc_late', tenant, key_id, environment, source, agent, session_id, language, code_sha256, exit_status, exit_code, failure_reason,
		duration_ms, stdout_bytes, stderr_bytes, stdout_truncated, stderr_truncated, peak_memory, outbound_hosts, metadata, retention_days, created_at FROM audit_rows`)
	must(t, err)
	must(t, db.Audit().Append(ctx, auditRow("a")))
	must(t, sealAll(ctx, db, "a"))
	must(t, late.Commit())
	must(t, sealAll(ctx, db, "a"))
	var covered []string
	for c, err := range db.Audit().Seals(ctx, "a") {
		must(t, err)
		for _, r := range c.Left {
			covered = append(covered, r.TraceID)
		}
	}
	if len(covered) != 3 || covered[2] != "trc_late" {
		t.Errorf("covered: %v", covered)
	}
}

// testRetention gives rows their tenant's.
func testRetention(t *testing.T, open opener) {
	ctx := t.Context()
	db := open(t)
	v := tenanttest.Tenant(t, db.Tenants(), "a")
	for _, days := range []int{7, 90} {
		_, err := db.Tenants().ChangeTenant(ctx, v.ID, func(v *tenant.Tenant) ([]tenant.PolicyEvent, error) { v.AuditDays = days; return nil, nil })
		must(t, err)
		r := auditRow(v.ID)
		r.Retention = 0
		must(t, db.Audit().Append(ctx, r))
		page, _, err := db.Audit().List(ctx, audit.Filter{Tenant: v.ID, TraceID: r.TraceID, Limit: 1})
		must(t, err)
		if want := time.Duration(days) * 24 * time.Hour; page[0].Retention != want {
			t.Errorf("kept for %v, not %v", page[0].Retention, want)
		}
	}
}

// testSealed looks for secrets where they must not be, and moves them.
func testSealed(t *testing.T, open opener) {
	ctx := t.Context()
	db := open(t)
	s := db.Tenants()
	const secret = "very-secret-value"
	of := tenanttest.Tenant(t, s, "a")
	var envs []tenant.Environment
	var keys []tenant.Key
	for _, name := range []string{"one", "two"} {
		e := tenant.Environment{ID: tenant.NewID("env"), Tenant: of.ID, Name: name, Secrets: map[string]string{"TOKEN": secret + name}}
		must(t, s.CreateEnvironment(ctx, e))
		k, _ := tenanttest.Key(t, s, e, name, func(k *tenant.Key) { k.WebhookSecret = secret + name })
		envs, keys = append(envs, e), append(keys, k)
	}
	e := storetest.Execution(of.ID)
	e.Webhook.Secret = secret
	_, err := db.Executions().Admit(ctx, e, execution.Admission{})
	must(t, err)
	for _, name := range []string{"one", "two"} {
		must(t, db.Models().CreateModel(ctx, model.Record{ID: tenant.NewID("mdl"), Name: name, Provider: "openai", Key: secret + name}))
		must(t, db.Models().SetOwnKey(ctx, model.OwnKey{ID: tenant.NewID("mky"), Tenant: of.ID, Model: name, Key: secret + name}))
	}
	for _, column := range []string{`environments.secrets`, `keys.webhook_secret`, `executions.webhook_secret`, `models.api_key`, `model_keys.api_key`} {
		table, name, _ := strings.Cut(column, ".")
		rows, err := db.SQL().QueryContext(ctx, `SELECT `+name+` FROM `+table)
		must(t, err)
		for rows.Next() {
			var b []byte
			must(t, rows.Scan(&b))
			if len(b) == 0 || strings.Contains(string(b), secret) {
				t.Errorf("%s is stored as %q", column, b)
			}
		}
		must(t, rows.Close())
	}
	for _, query := range []string{
		`UPDATE environments SET secrets = (SELECT secrets FROM environments WHERE name = 'two') WHERE name = 'one'`,
		`UPDATE keys SET webhook_secret = (SELECT webhook_secret FROM keys WHERE name = 'two') WHERE name = 'one'`,
		`UPDATE models SET api_key = (SELECT api_key FROM models WHERE name = 'two') WHERE name = 'one'`,
		`UPDATE model_keys SET api_key = (SELECT api_key FROM model_keys WHERE model = 'two') WHERE model = 'one'`,
	} {
		_, err := db.SQL().ExecContext(ctx, query)
		must(t, err)
	}
	if got, err := db.Models().Model(ctx, "one"); err == nil {
		t.Errorf("another's key was read: %v", got.Key)
	}
	if got, err := db.Models().OwnKey(ctx, of.ID, "one"); err == nil {
		t.Errorf("another's key was read: %v", got.Key)
	}
	if got, err := s.Environment(ctx, of.ID, envs[0].ID); err == nil {
		t.Errorf("another's secrets were read: %v", got.Secrets)
	}
	if got, err := s.Key(ctx, of.ID, keys[0].ID); err == nil {
		t.Errorf("another's secret was read: %v", got.WebhookSecret)
	}
	if got, err := s.Environment(ctx, of.ID, envs[1].ID); err != nil || got.Secrets["TOKEN"] != secret+"two" {
		t.Errorf("got %v, %v", got.Secrets, err)
	}
}

// testEnqueue adds a webhook's delivery in the transaction of the end.
func testEnqueue(t *testing.T, open opener) {
	ctx := t.Context()
	fail := true
	db := open(t, func(c *store.Config) {
		c.Enqueue = func(ctx context.Context, tx *sql.Tx, e *execution.Execution) error {
			if _, err := tx.ExecContext(ctx, `INSERT INTO deliveries (trace_id) VALUES ('`+e.TraceID+`')`); err != nil {
				return err
			}
			if fail {
				return context.DeadlineExceeded
			}
			return nil
		}
	})
	_, err := db.SQL().ExecContext(ctx, `CREATE TABLE deliveries (trace_id TEXT PRIMARY KEY)`)
	must(t, err)
	e := storetest.Execution("a")
	_, err = db.Executions().Admit(ctx, e, execution.Admission{})
	must(t, err)
	conclude := func() error {
		_, _, err := db.Executions().Conclude(ctx, storetest.Result(e), func(e *execution.Execution) execution.Consequences {
			c := follow(e)
			c.Webhook = true
			return c
		})
		return err
	}
	count := func() (n int) {
		must(t, db.SQL().QueryRowContext(ctx, `SELECT count(*) FROM deliveries`).Scan(&n))
		return n
	}
	if err := conclude(); err == nil {
		t.Error("an end was recorded without its delivery")
	}
	got, err := db.Executions().Get(ctx, "a", e.TraceID)
	must(t, err)
	if got.Status != execution.Running || count() != 0 {
		t.Errorf("%s, %d deliveries", got.Status, count())
	}
	fail = false
	must(t, conclude())
	must(t, conclude()) // nothing follows from a second end
	if count() != 1 {
		t.Errorf("%d deliveries", count())
	}
}
