package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
)

// executions is the execution.Store.
type executions struct{ db *DB }

var _ execution.Store = (*executions)(nil)

// executionTable is the table of executions. webhook_status also changes by
// itself; it is not part of an end.
var executionTable = newTable("executions",
	col("seq", read, func(r *executionRow) any { return &r.seq }),
	col("trace_id", fixed, func(r *executionRow) any { return &r.TraceID }),
	col("tenant", fixed, func(r *executionRow) any { return &r.Tenant }),
	col("key_id", fixed, func(r *executionRow) any { return &r.Key }),
	col("environment", fixed, func(r *executionRow) any { return &r.Environment }),
	col("source", fixed, func(r *executionRow) any { return &r.Source }),
	col("delivery", fixed, func(r *executionRow) any { return &r.Delivery }),
	col("agent", fixed, func(r *executionRow) any { return &r.Agent }),
	col("turn", fixed, func(r *executionRow) any { return &r.Turn }),
	col("language", fixed, func(r *executionRow) any { return &r.Language }),
	col("timeout", fixed, func(r *executionRow) any { return durationAt(&r.Timeout) }),
	col("metadata", fixed, func(r *executionRow) any { return mapAt(&r.Metadata) }),
	col("code_sha256", fixed, func(r *executionRow) any { return digestAt(&r.CodeSHA256) }),
	col("cpu", fixed, func(r *executionRow) any { return &r.CPU }),
	col("memory", fixed, func(r *executionRow) any { return &r.Memory }),
	col("webhook_url", fixed, func(r *executionRow) any { return &r.Webhook.URL }),
	col("webhook_secret", fixed, func(r *executionRow) any { return &r.secret }),
	col("webhook_status", fixed, func(r *executionRow) any { return &r.WebhookStatus }),
	col("thread", fixed, func(r *executionRow) any { return &r.Thread }),
	col("run", fixed, func(r *executionRow) any { return &r.Run }),
	col("by_agent", fixed, func(r *executionRow) any { return &r.By.Agent }),
	col("by_session", fixed, func(r *executionRow) any { return &r.By.Session }),
	col("by_turn", fixed, func(r *executionRow) any { return &r.By.Turn }),
	col("by_tool", fixed, func(r *executionRow) any { return &r.By.Tool }),
	col("mounts", fixed, func(r *executionRow) any { return listAt(&r.Mounts) }),
	col("created_at", fixed, func(r *executionRow) any { return timeAt(&r.CreatedAt) }),

	// The end.
	col("status", all, func(r *executionRow) any { return &r.Status }),
	col("exit_code", read|update, func(r *executionRow) any { return &r.ExitCode }),
	col("error", read|update, func(r *executionRow) any { return &r.Error }),
	col("hint", read|update, func(r *executionRow) any { return &r.Hint }),
	col("not_started", read|update, func(r *executionRow) any { return &r.NotStarted }),
	col("stdout_bytes", read|update, func(r *executionRow) any { return &r.StdoutBytes }),
	col("stderr_bytes", read|update, func(r *executionRow) any { return &r.StderrBytes }),
	col("stdout_truncated", read|update, func(r *executionRow) any { return &r.StdoutTruncated }),
	col("stderr_truncated", read|update, func(r *executionRow) any { return &r.StderrTruncated }),
	col("stored", read|update, func(r *executionRow) any { return &r.Stored }),
	col("output_truncated", read|update, func(r *executionRow) any { return &r.OutputTruncated }),
	col("last_seq", read|update, func(r *executionRow) any { return &r.LastSeq }),
	col("peak_memory", read|update, func(r *executionRow) any { return &r.PeakMemory }),
	col("kept", read|update, func(r *executionRow) any { return &r.Kept }),
	col("windows", read|update, func(r *executionRow) any { return &r.Windows }),
	col("isolation", read|update, func(r *executionRow) any { return &r.Isolation }),
	col("start", read|update, func(r *executionRow) any { return &r.Start }),
	col("files", read|update, func(r *executionRow) any { return filesAt(&r.Files) }),
	// An executor's clock may be behind the one that wrote created_at.
	column[executionRow]{
		name: "completed_at", in: read | update, at: func(r *executionRow) any { return zeroTimeAt(&r.CompletedAt) },
		expr: "CASE WHEN created_at > ? THEN created_at ELSE ? END",
		args: func(r *executionRow) []any { return []any{micros(r.CompletedAt), micros(r.CompletedAt)} },
	},
)

// executionRow is an execution as it comes from the database.
type executionRow struct {
	*execution.Execution
	seq    int64
	secret []byte // of its webhook, sealed
}

func scanExecution(s scanner) (executionRow, error) {
	row := executionRow{Execution: &execution.Execution{}}
	return row, executionTable.scan(s, &row)
}

// unseal opens the webhook's secret.
func (s *executions) unseal(row executionRow) (*execution.Execution, error) {
	secret, err := s.db.openText(row.secret, webhookPlace(row.TraceID))
	if err != nil {
		return nil, fmt.Errorf("store: secret of %s: %w", row.TraceID, err)
	}
	row.Webhook.Secret = secret
	return row.Execution, nil
}

func webhookPlace(traceID string) string { return "executions/webhook_secret/" + traceID }

func (s *executions) Get(ctx context.Context, tenant, traceID string) (*execution.Execution, error) {
	return s.get(ctx, s.db.read, tenant, traceID)
}

func (s *executions) Keyed(ctx context.Context, tenant, key string) (*execution.Execution, error) {
	var traceID string
	if err := s.db.read.row(ctx, `SELECT trace_id FROM idempotency_keys WHERE tenant = ? AND key = ?`, tenant, key).Scan(&traceID); err != nil {
		return nil, s.db.read.dialect().found("find an execution", err, execution.ErrNotFound)
	}
	return s.get(ctx, s.db.read, tenant, traceID)
}

func (s *executions) get(ctx context.Context, q querier, tenant, traceID string) (*execution.Execution, error) {
	row, err := scanExecution(q.row(ctx, `SELECT `+executionTable.selected+` FROM executions WHERE trace_id = ? AND tenant = ?`, traceID, tenant))
	if err != nil {
		return nil, q.dialect().found("get an execution", err, execution.ErrNotFound)
	}
	return s.unseal(row)
}

func (s *executions) Output(ctx context.Context, tenant, traceID string) (*execution.Execution, error) {
	e, err := s.get(ctx, s.db.read, tenant, traceID)
	if err != nil {
		return nil, err
	}
	err = s.db.read.row(ctx, `SELECT o.stdout, o.stderr FROM executions e JOIN execution_outputs o ON o.seq = e.seq WHERE e.trace_id = ?`, traceID).Scan(&e.Stdout, &e.Stderr)
	if err != nil && err != sql.ErrNoRows { // an execution that wrote nothing has none
		return nil, s.db.read.wrap("get an output", err)
	}
	return e, nil
}

func (s *executions) Unfinished(ctx context.Context, t time.Time, limit int) ([]*execution.Execution, error) {
	return s.many(ctx, "list the unfinished", `SELECT `+executionTable.selected+` FROM executions
		WHERE status = 'running' AND created_at < ? ORDER BY created_at, trace_id LIMIT ?`, micros(t), limit)
}

func (s *executions) Expired(ctx context.Context, keep time.Duration, limit int) ([]*execution.Execution, error) {
	now, err := s.db.read.clock(ctx, s.db.read)
	if err != nil {
		return nil, s.db.read.wrap("list the expired", err)
	}
	gone, err := s.many(ctx, "list the expired", `SELECT `+executionTable.selected+` FROM executions
		WHERE run <> '' AND completed_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = executions.run) ORDER BY completed_at, trace_id LIMIT ?`, limit)
	if err != nil || len(gone) > 0 {
		return gone, err
	}
	return s.many(ctx, "list the expired", `SELECT `+executionTable.selected+` FROM executions
		WHERE completed_at < ? AND completed_at IS NOT NULL AND (run = '' OR files = '' OR NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = executions.run))
		ORDER BY completed_at, trace_id LIMIT ?`, micros(now.Add(-keep)), limit)
}

func (s *executions) OfRun(ctx context.Context, run string, limit int) ([]*execution.Execution, error) {
	return s.many(ctx, "list a run's", `SELECT `+executionTable.selected+` FROM executions
		WHERE run = ? AND run <> '' AND completed_at IS NOT NULL LIMIT ?`, run, limit)
}

func (s *executions) OfTenant(ctx context.Context, tenant string, limit int) ([]*execution.Execution, error) {
	return s.many(ctx, "list a tenant's", `SELECT `+executionTable.selected+` FROM executions
		WHERE tenant = ? AND status <> 'running' LIMIT ?`, tenant, limit)
}

// recentRows bounds how many executions Recent looks at.
const recentRows = 10_000

func (s *executions) Recent(ctx context.Context, within time.Duration, limit int) ([]execution.Use, error) {
	now, err := s.db.read.clock(ctx, s.db.read)
	if err != nil {
		return nil, s.db.read.wrap("list what was in use", err)
	}
	rows, err := s.db.read.rows(ctx, `SELECT tenant, key_id, environment, language, threaded, MAX(completed_at) AS latest FROM (
			SELECT tenant, key_id, environment, language, CASE WHEN thread <> '' THEN 1 ELSE 0 END AS threaded, source, start, completed_at FROM executions
			WHERE completed_at >= ? AND completed_at IS NOT NULL ORDER BY completed_at DESC LIMIT ?
		) AS ended WHERE source = ? AND start <> ''
		GROUP BY tenant, key_id, environment, language, threaded ORDER BY latest DESC, tenant, key_id, environment, language, threaded LIMIT ?`,
		micros(now.Add(-within)), recentRows, execution.SourceAPI, limit)
	all, err := collect(rows, err, func(sc scanner) (u execution.Use, err error) {
		var threaded, last int64
		err = sc.Scan(&u.Tenant, &u.Key, &u.Environment, &u.Language, &threaded, &last)
		u.Thread, u.Last = threaded != 0, time.UnixMicro(last).UTC()
		return u, err
	})
	return all, s.db.read.wrap("list what was in use", err)
}

func (s *executions) many(ctx context.Context, step, query string, args ...any) ([]*execution.Execution, error) {
	rows, err := s.db.read.rows(ctx, query, args...)
	all, err := collect(rows, err, func(sc scanner) (*execution.Execution, error) {
		row, err := scanExecution(sc)
		if err != nil {
			return nil, err
		}
		return s.unseal(row)
	})
	return all, s.db.read.wrap(step, err)
}

func (s *executions) SetWebhookStatus(ctx context.Context, traceID string, status execution.WebhookStatus) error {
	err := execOne(ctx, s.db.write, execution.ErrNotFound, `UPDATE executions SET webhook_status = ? WHERE trace_id = ?`, string(status), traceID)
	return s.db.write.wrap("set a webhook's status", err)
}

func (s *executions) Redeliver(ctx context.Context, e *execution.Execution) error {
	err := s.db.write.transact(ctx, func(t *tx) error {
		n, err := t.exec(ctx, `UPDATE executions SET webhook_status = ? WHERE trace_id = ? AND tenant = ? AND status <> 'running' AND webhook_status IN (?, ?)`,
			string(execution.WebhookPending), e.TraceID, e.Tenant, string(execution.WebhookDelivered), string(execution.WebhookFailed))
		if err != nil {
			return err
		}
		if n == 0 {
			return execution.ErrDelivering
		}
		if s.db.enqueue == nil {
			return nil
		}
		return s.db.enqueue(ctx, t.Tx, e)
	})
	return s.db.write.wrap("redeliver a webhook", err)
}

func (s *executions) Delete(ctx context.Context, traceIDs []string) error {
	// A running one stays: something is still going to conclude it.
	err := s.db.write.transact(ctx, func(t *tx) error {
		freed := map[usageDay]int64{}
		for _, id := range traceIDs {
			var tenant, metadata, source string
			var seq, created, completed, kept int64
			err := t.row(ctx, `DELETE FROM executions WHERE trace_id = ? AND status <> 'running' RETURNING seq, tenant, metadata, created_at, source, completed_at, kept`, id).
				Scan(&seq, &tenant, &metadata, &created, &source, &completed, &kept)
			if err == sql.ErrNoRows {
				continue
			}
			if err != nil {
				return err
			}
			if kept > 0 {
				freed[dayOf(tenant, instant(completed), source)] += kept
			}
			pairs, err := mapOf(metadata)
			if err != nil {
				return err
			}
			for key, value := range pairs {
				if _, err := t.exec(ctx, `DELETE FROM execution_metadata WHERE tenant = ? AND key = ? AND value = ? AND created_at = ? AND trace_id = ?`,
					tenant, key, value, created, id); err != nil {
					return err
				}
			}
			if _, err := t.exec(ctx, `DELETE FROM execution_outputs WHERE seq = ?`, seq); err != nil {
				return err
			}
			if _, err := t.exec(ctx, `DELETE FROM idempotency_keys WHERE trace_id = ?`, id); err != nil {
				return err
			}
		}
		return free(ctx, t, freed)
	})
	return s.db.write.wrap("delete executions", err)
}

// PurgeKeys looks for old keys on a connection that holds up no writer.
func (s *executions) PurgeKeys(ctx context.Context, most int) (int, error) {
	type key struct{ tenant, key string }
	rows, err := s.db.read.rows(ctx, `SELECT tenant, key FROM idempotency_keys WHERE created_at <= atoll_now() - ? LIMIT ?`, idempotencyTime.Microseconds(), most)
	old, err := collect(rows, err, func(sc scanner) (k key, err error) { return k, sc.Scan(&k.tenant, &k.key) })
	if err != nil || len(old) == 0 {
		return 0, s.db.read.wrap("list old idempotency keys", err)
	}
	var total int64
	err = s.db.write.transact(ctx, func(t *tx) error {
		total = 0
		for _, k := range old { // it may have been used again since
			n, err := t.exec(ctx, `DELETE FROM idempotency_keys WHERE tenant = ? AND key = ? AND created_at <= atoll_now() - ?`,
				k.tenant, k.key, idempotencyTime.Microseconds())
			if err != nil {
				return err
			}
			total += n
		}
		return nil
	})
	return int(total), s.db.write.wrap("purge idempotency keys", err)
}

// jsonOf is a list or map as it is stored; empty ones are ”.
func jsonOf[T any](v T, empty bool) (string, error) {
	if empty {
		return "", nil
	}
	b, err := json.Marshal(v)
	return string(b), err
}

func mapOf(s string) (map[string]string, error) {
	if s == "" {
		return nil, nil
	}
	var m map[string]string
	err := json.Unmarshal([]byte(s), &m)
	return m, err
}

// checkMap refuses text of a map which is stored as JSON.
func checkMap(m map[string]string) error {
	for k, v := range m {
		if err := checkText([]any{k, v}); err != nil {
			return err
		}
	}
	return nil
}
