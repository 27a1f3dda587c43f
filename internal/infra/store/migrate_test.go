package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// openPool opens a database without migrating it.
func openPool(ctx context.Context, c Config) (*pool, error) {
	if c.URL != "" {
		return openPostgres(ctx, c)
	}
	write, read, err := openSQLite(ctx, c.Path)
	if err != nil {
		return nil, err
	}
	return write, read.close()
}

// fixtures put a row into the tables that a version of the schema has added.
// They are never edited either: they are what that version wrote.
var fixtures = map[int64]string{
	1: `INSERT INTO plans (name, max_cpu, max_memory, concurrency, max_timeout, streaming, async, max_output, built_in) VALUES ('old', 1, 2, 3, 4, TRUE, FALSE, 5, FALSE);
		INSERT INTO tenants (id, name, plan, sandbox_enabled, tier, monthly_credits, redaction_off, audit_days, created_at) VALUES ('ten_1', 'old', 'old', TRUE, 'standard', 1.5, '["jwt"]', 7, 1700000000000001);
		INSERT INTO policy_events (tenant, actor, field, old_value, new_value, created_at) VALUES ('ten_1', 'cli', 'f', 'a', 'b', 1)`,
	2: `INSERT INTO executions (trace_id, tenant, key_id, environment, source, delivery, agent, turn, language, timeout, metadata, code_sha256, cpu, memory, webhook_url, webhook_status, status, created_at, completed_at)
			VALUES ('trc_1', 'ten_1', 'key_1', 'env_1', 'execute', 'inline', '', '', 'python', 1000000, '{"k":"v"}', '', 1, 2, '', '', 'success', 1700000000000000, 1700000000000001);
		INSERT INTO execution_metadata (tenant, key, value, created_at, trace_id) VALUES ('ten_1', 'k', 'v', 1700000000000000, 'trc_1')`,
	3: `INSERT INTO audit_rows (trace_id, tenant, key_id, environment, source, agent, session_id, language, code_sha256, exit_status, exit_code, failure_reason,
			duration_ms, stdout_bytes, stderr_bytes, stdout_truncated, stderr_truncated, peak_memory, outbound_hosts, metadata, retention_days, created_at)
			VALUES ('trc_1', 'ten_1', 'key_1', 'env_1', 'execute', '', '', 'python', '', 'ok', 0, '', 1, 2, 3, FALSE, FALSE, 4, '', '', 30, 1700000000000000)`,
	4: `INSERT INTO usage_entries (trace_id, tenant, key_id, source, seconds, cpu, memory, bytes_out, sessions, credits, at) VALUES ('trc_1', 'ten_1', 'key_1', 'execute', 1, 1, 1, 0, 1, 2.5, 1700000000000000)`,
	5: `INSERT INTO secret_key (only_row, fingerprint) VALUES (1, '11ed7886a8f47dcbce3abc85562df181')`, // testBox's
	6: `INSERT INTO threads (tenant, id, state, bytes, files, created_at, updated_at, lease, lease_until) VALUES ('ten_1', 'thread-1', 'state', 7, 2, 1, 2, '', 0);
		UPDATE executions SET thread = 'thread-1'`,
	7: `INSERT INTO connections (id, tenant, slug, kind, prefix, read_only, target, created_at) VALUES ('con_1', 'ten_1', 'team', 's3', 'a/b', TRUE, '{"bucket":"old"}', 1700000000000000);
		INSERT INTO environments (id, tenant, name, image, limits, env, created_at) VALUES ('env_7', 'ten_1', 'seven', 'default', '{}', '', 1);
		INSERT INTO grants (id, tenant, connection, environment, prefix, read_only, created_at) VALUES ('grt_1', 'ten_1', 'con_1', 'env_7', 'a/b/c', FALSE, 1);
		UPDATE executions SET mounts = '["team/a/b:ro"]'`,
	8: `INSERT INTO environments (id, tenant, name, image, limits, env, created_at, permissions, profile, base_template, timeout)
			VALUES ('env_1', 'ten_1', 'e', 'default', '{}', '', 1, '{"network":{"mode":"rules","allowed_hosts":["*"]},"filesystem":{"writable":["/tmp"]}}', 'standard', 'tpl_x', 60000000);
		UPDATE tenants SET network_enabled = TRUE WHERE id = 'ten_1'`,
	9:  `INSERT INTO keys (id, tenant, name, hash, hint, scopes, webhook_url, created_at, env) VALUES ('key_9', 'ten_1', 'nine', '12345678901234567890123456789012', 'hint', '["read"]', '', 1, '{"A":"b"}')`,
	10: `INSERT INTO keys (id, tenant, name, hash, hint, scopes, webhook_url, created_at, bound) VALUES ('key_10', 'ten_1', 'ten', '10345678901234567890123456789012', 'hint', '["read"]', '', 1, 'sealed')`,
	11: `INSERT INTO sandboxes (id, tenant, environment, session, name, key_id, executor, image, asked, limits, memory, disk, permissions, connected, state, sleep, detail,
			sleep_after, created_at, used_at, metered_at) VALUES ('sb-0123456789abcdef', 'ten_1', 'env_1', 's', 'default', 'key_1', 'exe_1', 'default', 'node:22',
			'{"cpu":1}', 1, 2, '', TRUE, 'sleeping', 'disk', '', 60000000, 1700000000000000, 1700000000000001, 1700000000000002)`,
	12: `INSERT INTO previews (sandbox, port, seed, hash, created_at) VALUES ('sb-0123456789abcdef', 80, 'seed', 'hash', 1)`,
	13: `INSERT INTO snapshots (id, tenant, environment, key_id, executor, sandbox, session, name, image, asked, limits, permissions, connected, sleep_after, kept, bytes, detail, created_at)
			VALUES ('snap-0123456789abcdef', 'ten_1', 'env_1', 'key_1', 'exe_1', 'sb-0123456789abcdef', 's', 'default', 'default', 'node:22', '{"cpu":1}', '', TRUE, 60000000,
			'{"state":"one","bytes":7,"disk":2,"memory":true}', 7, '', 1700000000000000);
		INSERT INTO snapshot_litter (tenant, last) VALUES ('ten_1', 1);
		UPDATE sandboxes SET sleep = 'stored', kept = '{"state":"two","bytes":7,"disk":2}'`,
	14: `UPDATE sandboxes SET mounts = '[{"slug":"team","connection":"con_1","kind":"volume","path":"a"}]'`,
	15: `UPDATE call_log SET name = x'000102030405060708090a0b0c0d0e0f', place = 99`,
	16: `UPDATE sandboxes SET endings = '[{"from":1700000000000000,"until":1700000000000001,"reason":"full"}]'`,
	17: `UPDATE executions SET start = 'cold', hint = 'try this'`,
	18: `UPDATE executions SET files = '{"files":[{"name":"out/a","bytes":3}]}'`,
	19: `UPDATE tenants SET root_enabled = TRUE WHERE id = 'ten_1'`,
	20: `UPDATE plans SET max_request_rate = 7, max_key_request_rate = 5, max_upload_rate = 1024, max_key_upload_rate = 512 WHERE name = 'old'`,
	21: `INSERT INTO models (id, name, provider, upstream, base_url, api_key, prices, context, max_output, capabilities, all_tenants, tenants, created_at, updated_at)
			VALUES ('mdl_1', 'acme/large', 'openai', 'large-1', 'https://provider.example/v1', NULL, '{"input":2500000}', 8192, 0, '["tools"]', FALSE, '["ten_1"]', 1700000000000000, 1700000000000001)`,
	22: `INSERT INTO runs (id, tenant, key_id, environment, sandbox, keep, status, seq, holder, epoch, due_at, created_at)
			VALUES ('run_1', 'ten_1', 'key_1', 'env_1', 'sbx_1', 1000000, 'queued', 1, 'here', 3, 1700000000000002, 1700000000000001)`,
	23: `UPDATE models SET plans = '["pro"]';
		INSERT INTO model_keys (id, tenant, model, base_url, api_key, created_at) VALUES ('mky_1', 'ten_1', 'mdl_1', 'https://provider.example/v1', 'sealed', 1700000000000000)`,
	24: `UPDATE plans SET max_outputs = 7 WHERE name = 'old';
		UPDATE executions SET kept = 3;
		INSERT INTO usage_days (tenant, day, source, calls, sessions, seconds, cpu_seconds, gib_seconds, bytes_out, credits, kept) VALUES ('ten_1', 1700006400000000, 'execute', 1, 1, 1, 1, 1, 0, 2.5, 3)`,
	25: `UPDATE executions SET run = 'run_1', windows = 2`,
	26: `UPDATE tenants SET monthly_cost = 2.5 WHERE id = 'ten_1';
		UPDATE plans SET max_response_rate = 7, max_key_response_rate = 5, max_token_rate = 1000, max_key_token_rate = 500 WHERE name = 'old';
		INSERT INTO charges (tenant, at, id, key_id, kind, name, calls, input, cache_read, cache_write, output, reasoning, cost) VALUES ('ten_1', 1700000000000000, 'run_1/3/0', 'key_1', 'model', 'acme/large', 1, 10, 1, 2, 5, 3, 500);
		INSERT INTO charge_days (tenant, day, kind, name, entries, calls, input, cache_read, cache_write, output, reasoning, cost) VALUES ('ten_1', 1700006400000000, 'model', 'acme/large', 1, 1, 10, 1, 2, 5, 3, 500)`,
	27: `INSERT INTO agents (id, tenant, slug, visibility, version, created_at) VALUES ('agt_1', 'ten_1', 'support', 'private', 1, 1700000000000000);
		INSERT INTO agent_versions (agent, version, definition, created_at) VALUES ('agt_1', 1, 'sealed', 1700000000000001)`,
	28: `INSERT INTO sessions (id, tenant, key_id, environment, agent, agent_version, sandbox, about, run, events, waits, created_at, updated_at)
			VALUES ('sess_1', 'ten_1', 'key_1', 'env_1', 'agt_1', 1, 'sbx_1', 'sealed', '', 2, 1, 1700000000000000, 1700000000000001);
		INSERT INTO session_events (session, seq, run, type, talk, at, event) VALUES ('sess_1', 2, 'run_1', 'tool_use', 1, 1700000000000000, 'sealed');
		INSERT INTO session_calls (session, seq, call, tool, approve, answered) VALUES ('sess_1', 2, 'c1', 'run_code', 1, 0);
		INSERT INTO session_queue (session, run, turn) VALUES ('sess_1', 'run_2', 'sealed');
		UPDATE runs SET session = 'sess_1' WHERE id = 'run_1'`,
	29: `UPDATE environments SET allow_mcp = TRUE WHERE id = 'env_1';
		UPDATE sessions SET budget_tokens = 100, budget_cost = 200, used_input = 3, used_output = 4, used_cost = 5, waits_until = 1700000000000002, webhook = 'sealed'`,
	30: `INSERT INTO skills (id, tenant, name, title, versions, created_at) VALUES ('skill_1', 'ten_1', 'report', '', 1, 1700000000000000);
		INSERT INTO skill_versions (id, skill, number, about, content, bytes, created_at) VALUES ('skillver_1', 'skill_1', 1, '', '', 0, 1700000000000000)`,
	31: `INSERT INTO vaults (id, tenant, about, created_at, updated_at) VALUES ('vlt_1', 'ten_1', 'sealed', 1700000000000000, 1700000000000001);
		INSERT INTO vault_credentials (id, vault, kind, identity, about, secret, version, created_at, updated_at)
			VALUES ('vcrd_1', 'vlt_1', 'static_bearer', 'sum', 'sealed', 'sealed', 1, 1700000000000000, 1700000000000001);
		UPDATE sessions SET vaults = '["vlt_1"]'`,
	32: `INSERT INTO session_threads (id, session, turn, parent, agent, agent_version, name, status, events, used_input, used_output, used_cost, created_at)
			VALUES ('sthr_1', 'sess_1', 'run_1', '', 'agt_1', 1, 'sealed', 'running', 1, 2, 3, 4, 1700000000000000);
		INSERT INTO session_thread_events (thread, seq, run, type, at, event) VALUES ('sthr_1', 1, 'run_3', 'message/user', 1700000000000000, 'sealed');
		UPDATE sessions SET speaker = 'agt_1', speaker_version = 2;
		UPDATE runs SET top = 'run_0' WHERE id = 'run_1'`,
	33: `UPDATE environments SET packages = '{"pip":["six==1.17.0"]}' WHERE id = 'env_1';
		INSERT INTO package_builds (ref, executor, image, state, log, updated_at) VALUES ('packages:1', 'exe_1', 'packages-1', 'failed', '["no"]', 1700000000000000)`,
	34: `INSERT INTO files (id, tenant, about, bytes, state, created_at) VALUES ('file_1', 'ten_1', '', 5, 'there', 1700000000000000)`,
	35: `UPDATE session_threads SET archived_at = 1700000000000001, kept = 'sealed'`,
	36: `UPDATE environments SET isolation = 'key' WHERE id = 'env_1';
		UPDATE executions SET isolation = 'key';
		UPDATE tenants SET key_isolation_enabled = TRUE WHERE id = 'ten_1';
		UPDATE plans SET key_isolation = TRUE WHERE name = 'old'`,
	37: `INSERT INTO tokens (id, tenant, key_id, hash, scopes, operations, session, sandbox, sandbox_session, sandbox_name, origins, max_cost, cost, max_executions, executions, created_at, expires_at)
			VALUES ('tok_9_1', 'ten_1', 'key_9', '37345678901234567890123456789012', '["read"]', '', '', '', '', '', '["https://app.example.com"]', 700, 5, 3, 2, 1700000000000000, 1700000000000001)`,
	38: `INSERT INTO idempotent_requests (tenant, caller, key, body, state, lease_until, answer, created_at) VALUES ('ten_1', 'key_9', 'k', 'sum', 'done', 0, 'sealed', 1700000000000000)`,
	43: `INSERT INTO installation (only_row, id) VALUES (1, 'ins_1');
		INSERT INTO servers (executor, host, bus, blobs, volumes, seen_at) VALUES ('exe_1', 'host', 'bus', '', '', 9000000000000000)`,
	44: `UPDATE sandboxes SET image_warning = 'runs another version'`,
	45: `UPDATE sandboxes SET own_cpu = 0.5, own_memory = 7, own_disk = 8`,
}

// checks find each fixture again.
var checks = map[int64]string{
	1:  `SELECT count(*) FROM tenants t JOIN plans p ON p.name = t.plan JOIN policy_events e ON e.tenant = t.id WHERE t.monthly_credits = 1.5 AND t.created_at = 1700000000000001`,
	2:  `SELECT count(*) FROM executions e JOIN execution_metadata m ON m.trace_id = e.trace_id WHERE e.status = 'success' AND m.value = 'v' AND e.start = 'cold'`,
	3:  `SELECT count(*) FROM audit_rows r JOIN audit_unsealed u ON u.id = r.id WHERE r.trace_id = 'trc_1'`,
	4:  `SELECT count(*) FROM usage_entries WHERE credits = 2.5`,
	5:  `SELECT count(*) FROM secret_key WHERE fingerprint = '11ed7886a8f47dcbce3abc85562df181'`,
	6:  `SELECT count(*) FROM threads t JOIN executions e ON e.thread = t.id WHERE t.state = 'state' AND t.lease_until = 0`,
	7:  `SELECT count(*) FROM connections c JOIN grants g ON g.connection = c.id JOIN executions e ON e.mounts = '["team/a/b:ro"]' WHERE c.prefix = 'a/b' AND g.prefix = 'a/b/c'`,
	8:  `SELECT count(*) FROM environments e JOIN tenants t ON t.id = e.tenant WHERE e.timeout = 60000000 AND e.profile = 'standard' AND t.network_enabled`,
	9:  `SELECT count(*) FROM keys WHERE env = '{"A":"b"}' AND secrets IS NULL`,
	10: `SELECT count(*) FROM keys WHERE id = 'key_10' AND bound = 'sealed'`,
	11: `SELECT count(*) FROM sandboxes WHERE state = 'sleeping' AND asked = 'node:22' AND connected AND metered_at = 1700000000000002`,
	12: `SELECT count(*) FROM previews WHERE sandbox = 'sb-0123456789abcdef' AND port = 80 AND hash = 'hash'`,
	13: `SELECT count(*) FROM snapshots n JOIN snapshot_litter l ON l.tenant = n.tenant JOIN sandboxes s ON s.id = n.sandbox
		WHERE n.connected AND n.bytes = 7 AND n.expires_at IS NULL AND s.kept <> '' AND NOT s.bereft AND l.last = 1`,
	14: `SELECT count(*) FROM sandboxes s JOIN snapshots n ON n.sandbox = s.id WHERE s.mounts LIKE '%"con_1"%' AND n.mounts = ''`,
	15: `SELECT count(*) FROM call_log WHERE name = x'000102030405060708090a0b0c0d0e0f' AND place = 99`,
	16: `SELECT count(*) FROM sandboxes WHERE endings LIKE '%"full"%'`,
	17: `SELECT count(*) FROM executions WHERE hint = 'try this'`,
	18: `SELECT count(*) FROM executions WHERE files LIKE '%out/a%'`,
	19: `SELECT count(*) FROM tenants WHERE root_enabled`,
	20: `SELECT count(*) FROM plans WHERE max_request_rate = 7 AND max_key_request_rate = 5 AND max_upload_rate = 1024 AND max_key_upload_rate = 512`,
	21: `SELECT count(*) FROM models WHERE prices = '{"input":2500000}' AND tenants = '["ten_1"]' AND NOT all_tenants AND api_key IS NULL`,
	22: `SELECT count(*) FROM runs WHERE holder = 'here' AND epoch = 3 AND due_at = 1700000000000002 AND cancelled = 0 AND ended_at IS NULL`,
	23: `SELECT count(*) FROM model_keys k JOIN models m ON m.id = k.model WHERE m.plans = '["pro"]' AND k.base_url = m.base_url`,
	24: `SELECT count(*) FROM plans p JOIN executions e ON e.kept = 3 JOIN usage_days d ON d.kept = e.kept WHERE p.max_outputs = 7`,
	25: `SELECT count(*) FROM executions e JOIN runs r ON r.id = e.run WHERE e.windows = 2`,
	26: `SELECT count(*) FROM charges c JOIN charge_days d ON d.tenant = c.tenant AND d.name = c.name
		JOIN tenants t ON t.id = c.tenant JOIN plans p ON p.max_token_rate = 1000 WHERE c.cost = 500 AND d.cost = 500 AND t.monthly_cost = 2.5 AND p.max_key_response_rate = 5`,
	27: `SELECT count(*) FROM agents a JOIN agent_versions v ON v.agent = a.id AND v.version = a.version WHERE a.slug = 'support' AND a.archived_at IS NULL`,
	28: `SELECT count(*) FROM sessions s JOIN session_events e ON e.session = s.id AND e.seq = s.events JOIN session_calls c ON c.session = s.id AND c.seq = e.seq
		JOIN session_queue q ON q.session = s.id JOIN runs r ON r.session = s.id WHERE s.waits = 1 AND e.talk = 1`,
	29: `SELECT count(*) FROM environments e JOIN sessions s ON s.environment = e.id WHERE e.allow_mcp AND s.budget_tokens = 100 AND s.used_cost = 5 AND s.waits_until = 1700000000000002 AND s.webhook IS NOT NULL`,
	30: `SELECT count(*) FROM skills s JOIN skill_versions v ON v.skill = s.id AND v.number = s.versions WHERE s.name = 'report' AND s.archived_at IS NULL`,
	31: `SELECT count(*) FROM vaults v JOIN vault_credentials c ON c.vault = v.id JOIN sessions s ON s.vaults = '["vlt_1"]' WHERE v.archived_at IS NULL AND c.leased = 0 AND c.archived_at IS NULL`,
	32: `SELECT count(*) FROM session_threads h JOIN session_thread_events e ON e.thread = h.id AND e.seq = h.events JOIN sessions s ON s.id = h.session AND s.speaker_version = 2
		JOIN runs r ON r.id = h.turn AND r.top = 'run_0' WHERE h.status = 'running' AND h.ended_at IS NULL`,
	33: `SELECT count(*) FROM environments e JOIN package_builds b ON b.state = 'failed' WHERE e.packages = '{"pip":["six==1.17.0"]}' AND b.executor = 'exe_1'`,
	34: `SELECT count(*) FROM files WHERE bytes = 5 AND state = 'there' AND expires_at IS NULL`,
	35: `SELECT count(*) FROM session_threads WHERE archived_at = 1700000000000001 AND kept IS NOT NULL`,
	36: `SELECT count(*) FROM environments e JOIN tenants t ON t.id = e.tenant JOIN plans p ON p.name = 'old' JOIN executions x ON x.isolation = e.isolation
		WHERE e.isolation = 'key' AND t.key_isolation_enabled AND p.key_isolation`,
	37: `SELECT count(*) FROM tokens t JOIN keys k ON k.id = t.key_id WHERE t.max_cost = 700 AND t.executions = 2 AND t.revoked_at IS NULL AND t.origins LIKE '%app.example.com%'`,
	38: `SELECT count(*) FROM idempotent_requests WHERE tenant = 'ten_1' AND caller = 'key_9' AND state = 'done' AND answer IS NOT NULL AND created_at = 1700000000000000`,
	43: `SELECT count(*) FROM installation i JOIN servers s ON s.executor = 'exe_1' WHERE i.id = 'ins_1' AND s.bus = 'bus'`,
	44: `SELECT count(*) FROM sandboxes WHERE image_warning = 'runs another version'`,
	45: `SELECT count(*) FROM sandboxes WHERE own_cpu = 0.5 AND own_memory = 7 AND own_disk = 8`,
}

// TestUpgrade opens databases of earlier versions. One has lived through all of them, and has what
// each has written; the others are what a new installation of a version has.
func TestUpgrade(t *testing.T) {
	migrationTargets(t, func(t *testing.T, fresh func() Config) {
		all := sources(t, fresh())
		for _, v := range all {
			if fixtures[v] == "" || checks[v] == "" {
				t.Fatalf("version %d has no fixture", v)
			}
		}
		t.Run("through all versions", func(t *testing.T) { upgradeThrough(t, fresh(), all) })
		for _, v := range []int64{all[0], all[len(all)/2], all[len(all)-2], all[len(all)-1]} {
			t.Run(fmt.Sprint("from version ", v), func(t *testing.T) { upgradeThrough(t, fresh(), []int64{v}) })
		}
	})
}

// sources are the versions of an engine's schema: not all change both.
func sources(t *testing.T, c Config) (all []int64) {
	t.Helper()
	p, err := openPool(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	g, err := ownMigrations(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range g.ListSources() {
		all = append(all, s.Version)
	}
	return all
}

// writeThrough writes a database with some versions, one after the other. It returns every version
// that wrote rows.
func writeThrough(t *testing.T, c Config, through []int64) (written []int64) {
	t.Helper()
	ctx := t.Context()
	p, err := openPool(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	g, err := ownMigrations(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range through {
		if _, err := g.UpTo(ctx, version); err != nil {
			t.Fatal(err)
		}
		for _, s := range g.ListSources() {
			if s.Version > version || slices.Contains(written, s.Version) {
				continue
			}
			written = append(written, s.Version)
			for query := range strings.SplitSeq(fixtures[s.Version], ";\n") {
				if _, err := p.db.ExecContext(ctx, query); err != nil {
					t.Fatalf("%s: %v", query, err)
				}
			}
		}
	}
	if err := p.close(); err != nil {
		t.Fatal(err)
	}
	return written
}

// upgradeThrough opens a database that some versions have written, one after the other.
func upgradeThrough(t *testing.T, c Config, through []int64) {
	ctx := t.Context()
	written := writeThrough(t, c, through)
	for range 2 { // the second time there is nothing to do
		db := mustOpen(t, c)
		for _, v := range written {
			var n int
			if err := db.SQL().QueryRowContext(ctx, checks[v]).Scan(&n); err != nil || n != 1 {
				t.Errorf("what version %d wrote: %d, %v", v, n, err)
			}
		}
		if _, err := db.Tenants().Plan(ctx, "enterprise"); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
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
