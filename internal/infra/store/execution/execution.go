// Package execution stores executions from admission to end.
package execution

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
	usagedb "github.com/atoll-run/atoll/internal/infra/store/usage"
)

// Store implements execution.Store.
type Store struct {
	db      *sqldb.DB
	enqueue func(ctx context.Context, tx *sql.Tx, e *execution.Execution) error
}

// New returns the store. enqueue adds the delivery of an ended execution's webhook to the
// queue of jobs, in the transaction that records the end; nil if no execution has a webhook.
func New(db *sqldb.DB, enqueue func(ctx context.Context, tx *sql.Tx, e *execution.Execution) error) *Store {
	return &Store{db, enqueue}
}

var _ execution.Store = (*Store)(nil)

// Table lists the columns of executions. SetWebhookStatus also changes webhook_status.
var Table = sqldb.NewTable("executions",
	sqldb.Col("seq", sqldb.Read, func(r *Row) any { return &r.seq }),
	sqldb.Col("trace_id", sqldb.Fixed, func(r *Row) any { return &r.TraceID }),
	sqldb.Col("tenant", sqldb.Fixed, func(r *Row) any { return &r.Tenant }),
	sqldb.Col("key_id", sqldb.Fixed, func(r *Row) any { return &r.Key }),
	sqldb.Col("environment", sqldb.Fixed, func(r *Row) any { return &r.Environment }),
	sqldb.Col("source", sqldb.Fixed, func(r *Row) any { return &r.Source }),
	sqldb.Col("delivery", sqldb.Fixed, func(r *Row) any { return &r.Delivery }),
	sqldb.Col("agent", sqldb.Fixed, func(r *Row) any { return &r.Agent }),
	sqldb.Col("turn", sqldb.Fixed, func(r *Row) any { return &r.Turn }),
	sqldb.Col("language", sqldb.Fixed, func(r *Row) any { return &r.Language }),
	sqldb.Col("timeout", sqldb.Fixed, func(r *Row) any { return sqldb.DurationAt(&r.Timeout) }),
	sqldb.Col("metadata", sqldb.Fixed, func(r *Row) any { return sqldb.MapAt(&r.Metadata) }),
	sqldb.Col("code_sha256", sqldb.Fixed, func(r *Row) any { return sqldb.DigestAt(&r.CodeSHA256) }),
	sqldb.Col("cpu", sqldb.Fixed, func(r *Row) any { return &r.CPU }),
	sqldb.Col("memory", sqldb.Fixed, func(r *Row) any { return &r.Memory }),
	sqldb.Col("webhook_url", sqldb.Fixed, func(r *Row) any { return &r.Webhook.URL }),
	sqldb.Col("webhook_secret", sqldb.Fixed, func(r *Row) any { return &r.secret }),
	sqldb.Col("webhook_status", sqldb.Fixed, func(r *Row) any { return &r.WebhookStatus }),
	sqldb.Col("thread", sqldb.Fixed, func(r *Row) any { return &r.Thread }),
	sqldb.Col("run", sqldb.Fixed, func(r *Row) any { return &r.Run }),
	sqldb.Col("by_agent", sqldb.Fixed, func(r *Row) any { return &r.By.Agent }),
	sqldb.Col("by_session", sqldb.Fixed, func(r *Row) any { return &r.By.Session }),
	sqldb.Col("by_turn", sqldb.Fixed, func(r *Row) any { return &r.By.Turn }),
	sqldb.Col("by_tool", sqldb.Fixed, func(r *Row) any { return &r.By.Tool }),
	sqldb.Col("mounts", sqldb.Fixed, func(r *Row) any { return sqldb.ListAt(&r.Mounts) }),
	sqldb.Col("created_at", sqldb.Fixed, func(r *Row) any { return sqldb.TimeAt(&r.CreatedAt) }),

	// The end.
	sqldb.Col("status", sqldb.All, func(r *Row) any { return &r.Status }),
	sqldb.Col("exit_code", sqldb.Read|sqldb.Update, func(r *Row) any { return &r.ExitCode }),
	sqldb.Col("error", sqldb.Read|sqldb.Update, func(r *Row) any { return &r.Error }),
	sqldb.Col("hint", sqldb.Read|sqldb.Update, func(r *Row) any { return &r.Hint }),
	sqldb.Col("not_started", sqldb.Read|sqldb.Update, func(r *Row) any { return &r.NotStarted }),
	sqldb.Col("stdout_bytes", sqldb.Read|sqldb.Update, func(r *Row) any { return &r.StdoutBytes }),
	sqldb.Col("stderr_bytes", sqldb.Read|sqldb.Update, func(r *Row) any { return &r.StderrBytes }),
	sqldb.Col("stdout_truncated", sqldb.Read|sqldb.Update, func(r *Row) any { return &r.StdoutTruncated }),
	sqldb.Col("stderr_truncated", sqldb.Read|sqldb.Update, func(r *Row) any { return &r.StderrTruncated }),
	sqldb.Col("stored", sqldb.Read|sqldb.Update, func(r *Row) any { return &r.Stored }),
	sqldb.Col("output_truncated", sqldb.Read|sqldb.Update, func(r *Row) any { return &r.OutputTruncated }),
	sqldb.Col("last_seq", sqldb.Read|sqldb.Update, func(r *Row) any { return &r.LastSeq }),
	sqldb.Col("peak_memory", sqldb.Read|sqldb.Update, func(r *Row) any { return &r.PeakMemory }),
	sqldb.Col("kept", sqldb.Read|sqldb.Update, func(r *Row) any { return &r.Kept }),
	sqldb.Col("windows", sqldb.Read|sqldb.Update, func(r *Row) any { return &r.Windows }),
	sqldb.Col("isolation", sqldb.Read|sqldb.Update, func(r *Row) any { return &r.Isolation }),
	sqldb.Col("start", sqldb.Read|sqldb.Update, func(r *Row) any { return &r.Start }),
	sqldb.Col("files", sqldb.Read|sqldb.Update, func(r *Row) any { return filesAt(&r.Files) }),
	// An executor's clock may be behind the one that wrote created_at.
	sqldb.Column[Row]{
		Name: "completed_at", In: sqldb.Read | sqldb.Update, At: func(r *Row) any { return sqldb.ZeroTimeAt(&r.CompletedAt) },
		Expr: "CASE WHEN created_at > ? THEN created_at ELSE ? END",
		Args: func(r *Row) []any { return []any{sqldb.Micros(r.CompletedAt), sqldb.Micros(r.CompletedAt)} },
	},
)

// Row is an execution with its sealed columns.
type Row struct {
	*execution.Execution
	seq    int64
	secret []byte // of its webhook, sealed
}

// Scan reads the selected columns of Table.
func Scan(s sqldb.Scanner) (Row, error) {
	row := Row{Execution: &execution.Execution{}}
	return row, Table.Scan(s, &row)
}

// unseal opens the webhook's secret.
func (s *Store) unseal(row Row) (*execution.Execution, error) {
	secret, err := s.db.OpenText(row.secret, WebhookPlace(row.TraceID))
	if err != nil {
		return nil, fmt.Errorf("store: secret of %s: %w", row.TraceID, err)
	}
	row.Webhook.Secret = secret
	return row.Execution, nil
}

// WebhookPlace is the place that the secret of an execution's webhook is sealed for.
func WebhookPlace(traceID string) string { return "executions/webhook_secret/" + traceID }

func (s *Store) Get(ctx context.Context, tenant, traceID string) (*execution.Execution, error) {
	return s.get(ctx, s.db.Read, tenant, traceID)
}

func (s *Store) Keyed(ctx context.Context, tenant, key string) (*execution.Execution, error) {
	var traceID string
	if err := s.db.Read.Row(ctx, `SELECT trace_id FROM idempotency_keys WHERE tenant = ? AND key = ?`, tenant, key).Scan(&traceID); err != nil {
		return nil, s.db.Read.Dialect().Found("find an execution", err, execution.ErrNotFound)
	}
	return s.get(ctx, s.db.Read, tenant, traceID)
}

func (s *Store) get(ctx context.Context, q sqldb.Querier, tenant, traceID string) (*execution.Execution, error) {
	row, err := Scan(q.Row(ctx, `SELECT `+Table.Selected+` FROM executions WHERE trace_id = ? AND tenant = ?`, traceID, tenant))
	if err != nil {
		return nil, q.Dialect().Found("get an execution", err, execution.ErrNotFound)
	}
	return s.unseal(row)
}

func (s *Store) Output(ctx context.Context, tenant, traceID string) (*execution.Execution, error) {
	e, err := s.get(ctx, s.db.Read, tenant, traceID)
	if err != nil {
		return nil, err
	}
	err = s.db.Read.Row(ctx, `SELECT o.stdout, o.stderr FROM executions e JOIN execution_outputs o ON o.seq = e.seq WHERE e.trace_id = ?`, traceID).Scan(&e.Stdout, &e.Stderr)
	if err != nil && err != sql.ErrNoRows { // an execution that wrote nothing has none
		return nil, s.db.Read.Wrap("get an output", err)
	}
	return e, nil
}

func (s *Store) Unfinished(ctx context.Context, t time.Time, limit int) ([]*execution.Execution, error) {
	return s.many(ctx, "list the unfinished", `SELECT `+Table.Selected+` FROM executions
		WHERE status = 'running' AND created_at < ? ORDER BY created_at, trace_id LIMIT ?`, sqldb.Micros(t), limit)
}

func (s *Store) Expired(ctx context.Context, keep time.Duration, limit int) ([]*execution.Execution, error) {
	now, err := s.db.Read.Clock(ctx, s.db.Read)
	if err != nil {
		return nil, s.db.Read.Wrap("list the expired", err)
	}
	gone, err := s.many(ctx, "list the expired", `SELECT `+Table.Selected+` FROM executions
		WHERE run <> '' AND completed_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = executions.run) ORDER BY completed_at, trace_id LIMIT ?`, limit)
	if err != nil || len(gone) > 0 {
		return gone, err
	}
	return s.many(ctx, "list the expired", `SELECT `+Table.Selected+` FROM executions
		WHERE completed_at < ? AND completed_at IS NOT NULL AND (run = '' OR files = '' OR NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = executions.run))
		ORDER BY completed_at, trace_id LIMIT ?`, sqldb.Micros(now.Add(-keep)), limit)
}

func (s *Store) OfRun(ctx context.Context, run string, limit int) ([]*execution.Execution, error) {
	return s.many(ctx, "list a run's", `SELECT `+Table.Selected+` FROM executions
		WHERE run = ? AND run <> '' AND completed_at IS NOT NULL LIMIT ?`, run, limit)
}

func (s *Store) OfTenant(ctx context.Context, tenant string, limit int) ([]*execution.Execution, error) {
	return s.many(ctx, "list a tenant's", `SELECT `+Table.Selected+` FROM executions
		WHERE tenant = ? AND status <> 'running' LIMIT ?`, tenant, limit)
}

// recentRows bounds how many executions Recent looks at.
const recentRows = 10_000

// useView is the last use of an environment.
var useView = sqldb.NewView(
	sqldb.Col("tenant", sqldb.Read, func(u *execution.Use) any { return &u.Tenant }),
	sqldb.Col("key_id", sqldb.Read, func(u *execution.Use) any { return &u.Key }),
	sqldb.Col("environment", sqldb.Read, func(u *execution.Use) any { return &u.Environment }),
	sqldb.Col("language", sqldb.Read, func(u *execution.Use) any { return &u.Language }),
	sqldb.Col("threaded", sqldb.Read, func(u *execution.Use) any { return &u.Thread }),
	sqldb.Col("MAX(completed_at) AS latest", sqldb.Read, func(u *execution.Use) any { return sqldb.TimeAt(&u.Last) }),
)

func (s *Store) Recent(ctx context.Context, within time.Duration, limit int) ([]execution.Use, error) {
	now, err := s.db.Read.Clock(ctx, s.db.Read)
	if err != nil {
		return nil, s.db.Read.Wrap("list what was in use", err)
	}
	all, err := sqldb.Select(ctx, s.db.Read, useView.Row, `SELECT `+useView.Selected+` FROM (
			SELECT tenant, key_id, environment, language, CASE WHEN thread <> '' THEN 1 ELSE 0 END AS threaded, source, start, completed_at FROM executions
			WHERE completed_at >= ? AND completed_at IS NOT NULL ORDER BY completed_at DESC LIMIT ?
		) AS ended WHERE source = ? AND start <> ''
		GROUP BY tenant, key_id, environment, language, threaded ORDER BY latest DESC, tenant, key_id, environment, language, threaded LIMIT ?`,
		sqldb.Micros(now.Add(-within)), recentRows, execution.SourceAPI, limit)
	return all, s.db.Read.Wrap("list what was in use", err)
}

func (s *Store) many(ctx context.Context, step, query string, args ...any) ([]*execution.Execution, error) {
	rows, err := s.db.Read.Rows(ctx, query, args...)
	all, err := sqldb.Collect(rows, err, func(sc sqldb.Scanner) (*execution.Execution, error) {
		row, err := Scan(sc)
		if err != nil {
			return nil, err
		}
		return s.unseal(row)
	})
	return all, s.db.Read.Wrap(step, err)
}

func (s *Store) SetWebhookStatus(ctx context.Context, traceID string, status execution.WebhookStatus) error {
	err := sqldb.ExecOne(ctx, s.db.Write, execution.ErrNotFound, `UPDATE executions SET webhook_status = ? WHERE trace_id = ?`, string(status), traceID)
	return s.db.Write.Wrap("set a webhook's status", err)
}

func (s *Store) Redeliver(ctx context.Context, e *execution.Execution) error {
	return s.db.Transact(ctx, "redeliver a webhook", func(t *sqldb.Tx) error {
		n, err := t.Exec(ctx, `UPDATE executions SET webhook_status = ? WHERE trace_id = ? AND tenant = ? AND status <> 'running' AND webhook_status IN (?, ?)`,
			string(execution.WebhookPending), e.TraceID, e.Tenant, string(execution.WebhookDelivered), string(execution.WebhookFailed))
		if err != nil {
			return err
		}
		if n == 0 {
			return execution.ErrDelivering
		}
		if s.enqueue == nil {
			return nil
		}
		return s.enqueue(ctx, t.SQL(), e)
	})
}

func (s *Store) Delete(ctx context.Context, traceIDs []string) error {
	// A running one stays: something is still going to conclude it.
	return s.db.Transact(ctx, "delete executions", func(t *sqldb.Tx) error {
		gone := usagedb.Freed{}
		for _, id := range traceIDs {
			var tenant, metadata, source string
			var seq, created, completed, kept int64
			err := t.Row(ctx, `DELETE FROM executions WHERE trace_id = ? AND status <> 'running' RETURNING seq, tenant, metadata, created_at, source, completed_at, kept`, id).
				Scan(&seq, &tenant, &metadata, &created, &source, &completed, &kept)
			if err == sql.ErrNoRows {
				continue
			}
			if err != nil {
				return err
			}
			if kept > 0 {
				gone.Add(tenant, sqldb.Instant(completed), source, kept)
			}
			pairs, err := sqldb.MapOf(metadata)
			if err != nil {
				return err
			}
			for key, value := range pairs {
				if _, err := t.Exec(ctx, `DELETE FROM execution_metadata WHERE tenant = ? AND key = ? AND value = ? AND created_at = ? AND trace_id = ?`,
					tenant, key, value, created, id); err != nil {
					return err
				}
			}
			if _, err := t.Exec(ctx, `DELETE FROM execution_outputs WHERE seq = ?`, seq); err != nil {
				return err
			}
			if _, err := t.Exec(ctx, `DELETE FROM idempotency_keys WHERE trace_id = ?`, id); err != nil {
				return err
			}
		}
		return gone.Subtract(ctx, t)
	})
}

// idempotencyKey names an idempotency key.
type idempotencyKey struct{ tenant, key string }

var keyView = sqldb.NewView(
	sqldb.Col("tenant", sqldb.Read, func(k *idempotencyKey) any { return &k.tenant }),
	sqldb.Col("key", sqldb.Read, func(k *idempotencyKey) any { return &k.key }),
)

// PurgeKeys looks for old keys on a connection that holds up no writer.
func (s *Store) PurgeKeys(ctx context.Context, most int) (int, error) {
	old, err := sqldb.Select(ctx, s.db.Read, keyView.Row, `SELECT `+keyView.Selected+` FROM idempotency_keys WHERE created_at <= atoll_now() - ? LIMIT ?`, idempotencyTime.Microseconds(), most)
	if err != nil || len(old) == 0 {
		return 0, s.db.Read.Wrap("list old idempotency keys", err)
	}
	var total int64
	err = s.db.Write.Transact(ctx, func(t *sqldb.Tx) error {
		total = 0
		for _, k := range old { // it may have been used again since
			n, err := t.Exec(ctx, `DELETE FROM idempotency_keys WHERE tenant = ? AND key = ? AND created_at <= atoll_now() - ?`,
				k.tenant, k.key, idempotencyTime.Microseconds())
			if err != nil {
				return err
			}
			total += n
		}
		return nil
	})
	return int(total), s.db.Write.Wrap("purge idempotency keys", err)
}

// filesAt are the files that an execution gave back, as JSON; "" for none.
func filesAt(f *execution.OutputFiles) sqldb.Codec {
	read := func(text string) (f execution.OutputFiles, err error) {
		if text != "" {
			err = json.Unmarshal([]byte(text), &f)
		}
		return f, err
	}
	return sqldb.Coded(f, read, func(f execution.OutputFiles) (any, error) {
		return sqldb.JSONOf(f, len(f.Files) == 0 && !f.Truncated)
	})
}
