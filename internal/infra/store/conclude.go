package store

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/usage"
)

// conclude is the task that records the end of an execution and what follows
// from it.
type conclude struct {
	store  *executions
	r      execution.Result
	follow func(*execution.Execution) execution.Consequences

	e     *execution.Execution
	first bool
}

func (s *executions) Conclude(ctx context.Context, r execution.Result, follow func(*execution.Execution) execution.Consequences) (*execution.Execution, bool, error) {
	if r.Status == execution.Running || !slices.Contains(execution.Statuses, r.Status) {
		return nil, false, execution.NotFinal(r.Status)
	}
	r.Error = storable(r.Error)
	t := &conclude{store: s, r: r, follow: follow}
	if err := s.db.writer.write(ctx, t); err != nil {
		return nil, false, s.db.write.wrap("conclude", err)
	}
	return t.e, t.first, nil
}

// storable makes text of something that should be: the end of a run is not
// refused for it.
func storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

func (t *conclude) locks() []int64 { return nil }

func (t *conclude) order() string { return "a" + t.r.TraceID }

var (
	concludeQuery  = `UPDATE executions SET ` + executionTable.set + ` WHERE trace_id = ? AND status = 'running'`
	concludedQuery = concludeQuery + ` RETURNING ` + executionTable.selected
	byTraceQuery   = `SELECT ` + executionTable.selected + ` FROM executions WHERE trace_id = ?`
)

// endOf is what an execution's end changes of its record.
func endOf(r *execution.Result, at time.Time) execution.Execution {
	return execution.Execution{
		Status: r.Status, ExitCode: r.ExitCode, Error: r.Error, Hint: r.Hint, NotStarted: r.NotStarted,
		StdoutBytes: r.StdoutBytes, StderrBytes: r.StderrBytes, StdoutTruncated: r.StdoutTruncated, StderrTruncated: r.StderrTruncated,
		Stored: r.Stored, OutputTruncated: r.OutputTruncated, LastSeq: r.LastSeq, PeakMemory: r.PeakMemory, Start: r.Start, Isolation: r.Isolation, Windows: r.Windows, Files: r.Files, Kept: r.Kept, CompletedAt: at,
	}
}

func (t *conclude) do(ctx context.Context, b *batch) error {
	t.e, t.first = nil, false
	r := &t.r
	at := r.CompletedAt
	if at.IsZero() {
		now, err := b.clock(ctx)
		if err != nil {
			return err
		}
		at = now
	}
	end := endOf(r, at)
	values, err := executionTable.values(update, &executionRow{Execution: &end}, r.TraceID)
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
	if n, counted := b.running[t.e.Tenant]; counted {
		b.running[t.e.Tenant] = n - 1
	}
	if t.e.Kept > 0 {
		b.sum(dayOf(t.e.Tenant, t.e.CompletedAt, string(t.e.Source))).kept += t.e.Kept
	}
	if err := t.output(ctx, b, row.seq); err != nil {
		return err
	}
	if err := t.thread(ctx, b); err != nil {
		return err
	}
	if r.NotStarted {
		if err := b.later(ctx, `DELETE FROM idempotency_keys WHERE trace_id = ?`, r.TraceID); err != nil {
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
func (t *conclude) end(ctx context.Context, b *batch, values []any) (executionRow, error) {
	if b.pool.postgres {
		return scanExecution(b.row(ctx, concludedQuery, values...))
	}
	n, err := b.exec(ctx, concludeQuery, values...)
	if err == nil && n == 0 {
		err = sql.ErrNoRows
	}
	if err != nil {
		return executionRow{}, err
	}
	return scanExecution(b.row(ctx, byTraceQuery, t.r.TraceID))
}

// late reads the record of an execution that has ended before, if there is one.
func (t *conclude) late(ctx context.Context, b *batch) error {
	row, err := scanExecution(b.row(ctx, byTraceQuery, t.r.TraceID))
	if err == sql.ErrNoRows {
		return nil
	}
	if err != nil {
		return err
	}
	t.e, err = t.store.unseal(row)
	return err
}

func (t *conclude) output(ctx context.Context, b *batch, seq int64) error {
	t.e.Stdout, t.e.Stderr = t.r.Stdout, t.r.Stderr
	if len(t.r.Stdout) == 0 && len(t.r.Stderr) == 0 {
		return nil
	}
	return b.later(ctx, `INSERT INTO execution_outputs (seq, stdout, stderr) VALUES (?, ?, ?)`,
		seq, bytesOf(t.r.Stdout), bytesOf(t.r.Stderr))
}

// thread moves the execution's thread on to the state that was saved of it, which
// counts with the end it comes with or not at all.
func (t *conclude) thread(ctx context.Context, b *batch) error {
	if t.e.Thread == "" {
		return nil
	}
	if s := t.r.Thread; s != nil {
		if err := b.later(ctx, `INSERT INTO threads (tenant, id, state, bytes, files, created_at, updated_at, lease, lease_until)
				VALUES (?, ?, ?, ?, ?, atoll_now(), atoll_now(), '', 0)
				ON CONFLICT (tenant, id) DO UPDATE SET state = excluded.state, bytes = excluded.bytes, files = excluded.files, updated_at = excluded.updated_at`,
			t.e.Tenant, t.e.Thread, s.State, s.Bytes, s.Files); err != nil {
			return err
		}
	}
	return b.later(ctx, litterQuery, t.e.Tenant)
}

// bytesOf is a value that is never NULL.
func bytesOf(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

func (t *conclude) consequences(ctx context.Context, b *batch, c execution.Consequences) error {
	if err := insertAudit(ctx, b, t.auditRow(c.Audit), time.Time{}); err != nil {
		return err
	}
	if !t.r.NotStarted {
		if err := addUsage(ctx, b, t.usageEntry(c.Usage)); err != nil {
			return err
		}
	}
	if !c.Webhook {
		return nil
	}
	if t.e.WebhookStatus != execution.WebhookPending {
		t.e.WebhookStatus = execution.WebhookPending
		if err := b.later(ctx, `UPDATE executions SET webhook_status = ? WHERE trace_id = ?`, string(execution.WebhookPending), t.e.TraceID); err != nil {
			return err
		}
	}
	if t.store.db.enqueue == nil {
		return nil
	}
	return t.store.db.enqueue(ctx, b.Tx, t.e)
}

// auditRow fills in what is the execution's anyway.
func (t *conclude) auditRow(r audit.Row) audit.Row {
	r.TraceID, r.Tenant = t.e.TraceID, t.e.Tenant
	r.FailureReason = storable(r.FailureReason)
	return r
}

func (t *conclude) usageEntry(u usage.Entry) usage.Entry {
	u.TraceID, u.Tenant = t.e.TraceID, t.e.Tenant
	if u.At.IsZero() {
		u.At = t.e.CompletedAt
	}
	return u
}
