package storetest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/infra/store"
)

// Execution is a small run as most are, not yet admitted.
func Execution(tenant string) *execution.Execution {
	return &execution.Execution{
		TraceID: execution.NewTraceID(), Tenant: tenant, Key: "key_0123456789abcdef", Environment: "env_0123456789abcdef",
		Source: execution.SourceAPI, Delivery: execution.Inline, Language: execution.Python, Timeout: time.Minute,
		CodeSHA256: sha256.Sum256([]byte("print(2 + 2)")), CPU: 1, Memory: 512 << 20, CreatedAt: time.Now(),
	}
}

// Result is its end.
func Result(e *execution.Execution) execution.Result {
	return execution.Result{
		TraceID: e.TraceID, Status: execution.Success, Stdout: []byte("4\n"), StdoutBytes: 2, LastSeq: 2,
		StartedAt: time.Now(), CompletedAt: time.Now(), PeakMemory: 20 << 20, Start: execution.StartWarm,
	}
}

// Fill writes n ended executions of a tenant past the store, a second apart and
// the last of them now. Each has metadata: env, which most share; user, of which
// there are 5,000; run, which is its own; team, blue for the older half and red
// for the newer. One of a hundred failed, one of 10,000 ran out of memory, one of
// a hundred is in node, and 50 keys were used, the last only once.
func Fill(ctx context.Context, db *store.DB, tenant string, n int) error {
	random := `'trc_' || lower(hex(randomblob(16)))`
	if db.Postgres() {
		random = `'trc_' || replace(gen_random_uuid()::text, '-', '')`
	}
	text := func(s string) string { return `'` + strings.ReplaceAll(s, `'`, `''`) + `'` }
	run := `'run-' || CAST(i AS TEXT)`
	user := `'user-' || CAST(i % 5000 * 7919 % 5000 AS TEXT)`
	env := `CASE WHEN i % 5 < 3 THEN 'prod' ELSE 'test' END`
	team := fmt.Sprintf(`CASE WHEN i < %d THEN 'blue' ELSE 'red' END`, n/2)
	begin := time.Now().UnixMicro() - int64(n)*1_000_000
	statements := []string{
		fmt.Sprintf(`WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
			INSERT INTO executions (trace_id, tenant, key_id, environment, source, delivery, agent, turn, language, timeout, metadata, code_sha256,
				cpu, memory, webhook_url, webhook_status, status, stdout_bytes, created_at, completed_at)
			SELECT %s, %s, CASE WHEN i = 17 THEN 'key_49' ELSE 'key_' || CAST(i %% 49 AS TEXT) END, 'env_0123456789abcdef', 'execute', 'inline', '', '',
				CASE WHEN i %% 100 = 1 THEN 'node' ELSE 'python' END, 60000000,
				'{"env":"' || %s || '","user":"' || %s || '","run":"' || %s || '","team":"' || %s || '"}', CAST('0123456789abcdef0123456789abcdef' AS %s),
				1, 536870912, '', '', CASE WHEN i %% 10000 = 3 THEN 'oom' WHEN i %% 100 = 2 THEN 'failed' ELSE 'success' END, 2,
				%d + CAST(i AS BIGINT) * 1000000, %d + CAST(i AS BIGINT) * 1000000 + 5000
			FROM n`, n-1, random, text(tenant), env, user, run, team, bytesType(db), begin, begin),
	}
	for _, key := range []string{"env", "user", "run", "team"} {
		statements = append(statements, fmt.Sprintf(`INSERT INTO execution_metadata (tenant, key, value, created_at, trace_id)
			SELECT tenant, '%[1]s', %[2]s, created_at, trace_id FROM executions WHERE tenant = %[3]s AND metadata <> '' ORDER BY 3, created_at`,
			key, pair(db, key), text(tenant)))
	}
	if db.Postgres() {
		statements = append(statements, `VACUUM ANALYZE executions`, `VACUUM ANALYZE execution_metadata`) // what its own would do before long
	}
	for _, query := range statements {
		if _, err := db.SQL().ExecContext(ctx, query); err != nil {
			return fmt.Errorf("%.80s: %w", query, err)
		}
	}
	return nil
}

func bytesType(db *store.DB) string {
	if db.Postgres() {
		return `BYTEA`
	}
	return `BLOB`
}

func pair(db *store.DB, key string) string {
	if db.Postgres() {
		return `metadata::json ->> '` + key + `'`
	}
	return `metadata ->> '` + key + `'`
}
