package execution

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/usage"
	auditdb "github.com/atoll-run/atoll/internal/infra/store/audit"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
	threaddb "github.com/atoll-run/atoll/internal/infra/store/thread"
	usagedb "github.com/atoll-run/atoll/internal/infra/store/usage"
)

// conclude is the task that records the end of an execution and what follows
// from it.
type conclude struct {
	store  *Store
	r      execution.Result
	follow func(*execution.Execution) execution.Consequences

	e     *execution.Execution
	first bool
}

func (s *Store) Conclude(ctx context.Context, r execution.Result, follow func(*execution.Execution) execution.Consequences) (*execution.Execution, bool, error) {
	if r.Status == execution.Running || !slices.Contains(execution.Statuses, r.Status) {
		return nil, false, execution.NotFinal(r.Status)
	}
	r.Error = sqldb.Storable(r.Error)
	t := &conclude{store: s, r: r, follow: follow}
	if err := s.db.Submit(ctx, t); err != nil {
		return nil, false, s.db.Write.Wrap("conclude", err)
	}
	return t.e, t.first, nil
}

func (t *conclude) Locks() []int64 { return nil }

func (t *conclude) Order() string { return "a" + t.r.TraceID }

var (
	concludeQuery  = `UPDATE executions SET ` + Table.Set + ` WHERE trace_id = ? AND status = 'running'`
	concludedQuery = concludeQuery + ` RETURNING ` + Table.Selected
	byTraceQuery   = `SELECT ` + Table.Selected + ` FROM executions WHERE trace_id = ?`
)

// endOf is what an execution's end changes of its record.
func endOf(r *execution.Result, at time.Time) execution.Execution {
	return execution.Execution{
		Status: r.Status, ExitCode: r.ExitCode, Error: r.Error, Hint: r.Hint, NotStarted: r.NotStarted,
		StdoutBytes: r.StdoutBytes, StderrBytes: r.StderrBytes, StdoutTruncated: r.StdoutTruncated, StderrTruncated: r.StderrTruncated,
		Stored: r.Stored, OutputTruncated: r.OutputTruncated, LastSeq: r.LastSeq, PeakMemory: r.PeakMemory, Start: r.Start, Isolation: r.Isolation, Windows: r.Windows, Files: r.Files, Kept: r.Kept, CompletedAt: at,
	}
}

func (t *conclude) Do(ctx context.Context, b *sqldb.Batch) error {
	t.e, t.first = nil, false
	r := &t.r
	at := r.CompletedAt
	if at.IsZero() {
		now, err := b.Clock(ctx)
		if err != nil {
			return err
		}
		at = now
	}
	end := endOf(r, at)
	values, err := Table.Values(sqldb.Update, &Row{Execution: &end}, r.TraceID)
	if err != nil {
		return err
	}
	row, err := t.end(ctx, b, values)
	if err == sql.ErrNoRows {
		return t.late(ctx, b)
	}
	if err != nil {
		return err
	}
	if t.e, err = t.store.unseal(row); err != nil {
		return err
	}
	t.first = true
	counts := sqldb.Shared[runningCounts](b)
	if n, counted := counts.of[t.e.Tenant]; counted {
		counts.of[t.e.Tenant] = n - 1
	}
	if t.e.Kept > 0 {
		usagedb.AddKept(b, t.e.Tenant, t.e.CompletedAt, string(t.e.Source), t.e.Kept)
	}
	if err := t.output(ctx, b, row.seq); err != nil {
		return err
	}
	if err := t.thread(ctx, b); err != nil {
		return err
	}
	if r.NotStarted {
		if err := b.Later(ctx, `DELETE FROM idempotency_keys WHERE trace_id = ?`, r.TraceID); err != nil {
			return err
		}
	}
	if t.follow == nil {
		return nil
	}
	return t.consequences(ctx, b, t.follow(t.e))
}

// end writes the end of an execution that runs, and returns its record then. SQLite makes a
// database in memory for each RETURNING, which costs more than a second statement.
func (t *conclude) end(ctx context.Context, b *sqldb.Batch, values []any) (Row, error) {
	if b.Pool.Postgres {
		return Scan(b.Row(ctx, concludedQuery, values...))
	}
	n, err := b.Exec(ctx, concludeQuery, values...)
	if err == nil && n == 0 {
		err = sql.ErrNoRows
	}
	if err != nil {
		return Row{}, err
	}
	return Scan(b.Row(ctx, byTraceQuery, t.r.TraceID))
}

// late reads the record of an execution that has ended before, if there is one.
func (t *conclude) late(ctx context.Context, b *sqldb.Batch) error {
	row, err := Scan(b.Row(ctx, byTraceQuery, t.r.TraceID))
	if err == sql.ErrNoRows {
		return nil
	}
	if err != nil {
		return err
	}
	t.e, err = t.store.unseal(row)
	return err
}

func (t *conclude) output(ctx context.Context, b *sqldb.Batch, seq int64) error {
	t.e.Stdout, t.e.Stderr = t.r.Stdout, t.r.Stderr
	if len(t.r.Stdout) == 0 && len(t.r.Stderr) == 0 {
		return nil
	}
	return b.Later(ctx, `INSERT INTO execution_outputs (seq, stdout, stderr) VALUES (?, ?, ?)`,
		seq, sqldb.BytesOf(t.r.Stdout), sqldb.BytesOf(t.r.Stderr))
}

// thread moves the execution's thread on to the state that was saved of it, which
// counts with the end it comes with or not at all.
func (t *conclude) thread(ctx context.Context, b *sqldb.Batch) error {
	if t.e.Thread == "" {
		return nil
	}
	if s := t.r.Thread; s != nil {
		if err := b.Later(ctx, `INSERT INTO threads (tenant, id, state, bytes, files, created_at, updated_at, lease, lease_until)
				VALUES (?, ?, ?, ?, ?, atoll_now(), atoll_now(), '', 0)
				ON CONFLICT (tenant, id) DO UPDATE SET state = excluded.state, bytes = excluded.bytes, files = excluded.files, updated_at = excluded.updated_at`,
			t.e.Tenant, t.e.Thread, s.State, s.Bytes, s.Files); err != nil {
			return err
		}
	}
	return b.Later(ctx, threaddb.GarbageQuery, t.e.Tenant)
}

func (t *conclude) consequences(ctx context.Context, b *sqldb.Batch, c execution.Consequences) error {
	if err := auditdb.Insert(ctx, b, t.auditRow(c.Audit), time.Time{}); err != nil {
		return err
	}
	if !t.r.NotStarted {
		if err := usagedb.Add(ctx, b, t.usageEntry(c.Usage)); err != nil {
			return err
		}
	}
	if !c.Webhook {
		return nil
	}
	if t.e.WebhookStatus != execution.WebhookPending {
		t.e.WebhookStatus = execution.WebhookPending
		if err := b.Later(ctx, `UPDATE executions SET webhook_status = ? WHERE trace_id = ?`, string(execution.WebhookPending), t.e.TraceID); err != nil {
			return err
		}
	}
	if t.store.enqueue == nil {
		return nil
	}
	return t.store.enqueue(ctx, b.SQL(), t.e)
}

// auditRow fills in what is the execution's anyway.
func (t *conclude) auditRow(r audit.Row) audit.Row {
	r.TraceID, r.Tenant = t.e.TraceID, t.e.Tenant
	r.FailureReason = sqldb.Storable(r.FailureReason)
	return r
}

func (t *conclude) usageEntry(u usage.Entry) usage.Entry {
	u.TraceID, u.Tenant = t.e.TraceID, t.e.Tenant
	if u.At.IsZero() {
		u.At = t.e.CompletedAt
	}
	return u
}
