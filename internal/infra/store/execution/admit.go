package execution

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/idempotency"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/thread"
	auditdb "github.com/atoll-run/atoll/internal/infra/store/audit"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
	threaddb "github.com/atoll-run/atoll/internal/infra/store/thread"
	usagedb "github.com/atoll-run/atoll/internal/infra/store/usage"
)

// idempotencyTime is how long an idempotency key stands for its execution.
const idempotencyTime = 24 * time.Hour

// admit is the task that records an execution as running.
type admit struct {
	store  *Store
	e      *execution.Execution
	a      execution.Admission
	secret []byte // of the webhook, sealed
	text   []byte // of the activity, sealed

	earlier *execution.Execution
	state   string // of the thread
	refusal error
	created time.Time
}

func (s *Store) Admit(ctx context.Context, e *execution.Execution, a execution.Admission) (*execution.Execution, error) {
	if err := sqldb.CheckMap(e.Metadata); err != nil {
		return nil, err
	}
	t := &admit{store: s, e: e, a: a, secret: s.db.SealText(e.Webhook.Secret, WebhookPlace(e.TraceID)), text: auditdb.SealText(s.db, e.Tenant, e.TraceID, e.Text)}
	if err := s.db.Submit(ctx, t); err != nil {
		return nil, s.db.Write.Wrap("admit", err)
	}
	if t.earlier != nil || t.refusal != nil {
		return t.earlier, t.refusal
	}
	e.Status, e.CreatedAt, e.ThreadState = execution.Running, t.created, t.state
	return nil, nil
}

func (t *admit) Locks() []int64 {
	var locks []int64
	if t.a.Concurrency > 0 {
		locks = append(locks, sqldb.LockOf("concurrency", t.e.Tenant))
	}
	if t.a.IdempotencyKey != "" {
		locks = append(locks, sqldb.LockOf("idempotency", t.e.Tenant+"/"+t.a.IdempotencyKey))
	}
	if tenant.IsToken(t.e.Key) {
		locks = append(locks, sqldb.LockOf("token", t.e.Key))
	}
	if t.e.Thread != "" {
		locks = append(locks, threaddb.ThreadLock(t.e.Tenant, t.e.Thread))
	}
	return locks
}

// Order puts admissions behind ends, which make room for them.
func (t *admit) Order() string { return "b" + t.e.TraceID }

func (t *admit) Owner() string { return t.e.Tenant }

func (t *admit) Do(ctx context.Context, b *sqldb.Batch) error {
	t.earlier, t.refusal, t.state = nil, nil, ""
	if t.a.IdempotencyKey != "" {
		if done, err := t.repeated(ctx, b); done || err != nil {
			return err
		}
	}
	for _, check := range []func(context.Context, *sqldb.Batch) (error, error){t.concurrency, t.outputs, t.budget, t.thread, t.token} {
		refusal, err := check(ctx, b)
		if err != nil {
			return err
		}
		if refusal != nil {
			t.refusal = refusal
			return nil
		}
	}
	return t.record(ctx, b)
}

// repeated looks for the execution that the key stands for.
func (t *admit) repeated(ctx context.Context, b *sqldb.Batch) (bool, error) {
	var traceID string
	var body []byte
	if err := b.Flush(ctx); err != nil { // the key may have been used in this batch
		return false, err
	}
	err := b.Row(ctx, `SELECT trace_id, body FROM idempotency_keys WHERE tenant = ? AND key = ? AND created_at > atoll_now() - ?`,
		t.e.Tenant, t.a.IdempotencyKey, idempotencyTime.Microseconds()).Scan(&traceID, &body)
	if err == sql.ErrNoRows {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if string(body) != string(t.a.IdempotencyBody[:]) {
		t.refusal = idempotency.ErrOtherRequest
		return true, nil
	}
	t.earlier, err = t.store.get(ctx, b, t.e.Tenant, traceID)
	if fault.KindOf(err) == fault.NotFound {
		return false, nil // deleted since
	}
	return true, err
}

// concurrency counts the running executions, because a stored counter could drift.
func (t *admit) concurrency(ctx context.Context, b *sqldb.Batch) (refusal, err error) {
	if t.a.Concurrency <= 0 {
		return nil, nil
	}
	counts := sqldb.Shared[runningCounts](b)
	n, counted := counts.of[t.e.Tenant]
	if !counted {
		if err := b.Flush(ctx); err != nil {
			return nil, err
		}
		if n, err = t.count(ctx, b); err != nil {
			return nil, err
		}
		if counts.of == nil {
			counts.of = map[string]int{}
		}
		counts.of[t.e.Tenant] = n
	}
	if n >= t.a.Concurrency {
		return t.a.Full(n), nil
	}
	return nil, nil
}

// runningCounts are the numbers of running executions of tenants that a task of the batch counted.
type runningCounts struct{ of map[string]int }

// countRunning counts a tenant's executions.
const countRunning = `SELECT count(*) FROM executions WHERE tenant = ? AND status = 'running'`

// count counts the running executions. If the plan limits stored output, the same statement sums the
// stored bytes, because a second statement would slow down every admission.
func (t *admit) count(ctx context.Context, b *sqldb.Batch) (n int, err error) {
	q := t.a.Outputs
	if _, known := usagedb.KeptIn(b, t.e.Tenant); q.Max <= 0 || known {
		return n, b.Row(ctx, countRunning, t.e.Tenant).Scan(&n)
	}
	var kept int64
	err = b.Row(ctx, `SELECT (`+countRunning+`), (`+usagedb.SumKept+`)`, t.e.Tenant, t.e.Tenant, usagedb.KeptWindow(q.Keep)).Scan(&n, &kept)
	usagedb.SetKept(b, t.e.Tenant, kept)
	return n, err
}

// outputs compares the stored bytes with the plan's limit.
func (t *admit) outputs(ctx context.Context, b *sqldb.Batch) (refusal, err error) {
	q := t.a.Outputs
	if q.Max <= 0 {
		return nil, nil
	}
	kept, known := usagedb.KeptIn(b, t.e.Tenant)
	if !known {
		var before int64
		if err := b.Row(ctx, usagedb.SumKept, t.e.Tenant, usagedb.KeptWindow(q.Keep)).Scan(&before); err != nil {
			return nil, err
		}
		usagedb.SetKept(b, t.e.Tenant, before)
		kept += before
	}
	if kept < q.Max {
		return nil, nil
	}
	resets, err := usagedb.KeptUntil(ctx, b, t.e.Tenant, q.Keep)
	if err != nil {
		return nil, err
	}
	return q.Full(kept, resets), nil
}

func (t *admit) budget(ctx context.Context, b *sqldb.Batch) (refusal, err error) {
	if t.a.Credits <= 0 {
		return nil, nil
	}
	used, now, err := usagedb.MonthCredits(ctx, b, t.e.Tenant)
	if err != nil {
		return nil, err
	}
	if used >= t.a.Credits {
		return usagedb.OverBudget(used, t.a.Credits, now), nil
	}
	return nil, nil
}

// thread takes the execution's thread: from here on it is in use, by the record
// of an execution that runs.
func (t *admit) thread(ctx context.Context, b *sqldb.Batch) (refusal, err error) {
	if t.e.Thread == "" {
		return nil, nil
	}
	if err := b.Flush(ctx); err != nil { // it may have been taken, or let go, in this batch
		return nil, err
	}
	state, known, busy, err := threaddb.Use(ctx, b, t.e.Tenant, t.e.Thread)
	switch {
	case err != nil:
		return nil, err
	case busy:
		return thread.InUse(t.e.Thread), nil
	case !known:
		return threaddb.Room(ctx, b, t.e.Tenant, t.a.Threads)
	}
	t.state = state
	return nil, nil
}

func (t *admit) token(ctx context.Context, b *sqldb.Batch) (refusal, err error) {
	return usagedb.CountExecution(ctx, b, t.e.Key)
}

func (t *admit) record(ctx context.Context, b *sqldb.Batch) error {
	e := t.e
	t.created = sqldb.Instant(sqldb.Micros(e.CreatedAt))
	if e.CreatedAt.IsZero() {
		now, err := b.Clock(ctx)
		if err != nil {
			return err
		}
		t.created = now
	}
	running := *e
	running.Status, running.CreatedAt = execution.Running, t.created
	values, err := Table.Values(sqldb.Insert, &Row{Execution: &running, secret: t.secret})
	if err != nil {
		return err
	}
	if err := b.Later(ctx, Table.Insert, values...); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(e.Metadata)) {
		if err := b.Later(ctx, `INSERT INTO execution_metadata (tenant, key, value, created_at, trace_id) VALUES (?, ?, ?, ?, ?)`,
			e.Tenant, key, e.Metadata[key], sqldb.Micros(t.created), e.TraceID); err != nil {
			return err
		}
	}
	if err := auditdb.KeepText(ctx, b, e.Tenant, e.TraceID, t.text); err != nil {
		return err
	}
	if t.a.IdempotencyKey != "" {
		if err := b.Later(ctx, `INSERT INTO idempotency_keys (tenant, key, body, trace_id, created_at) VALUES (?, ?, ?, ?, atoll_now())
			ON CONFLICT (tenant, key) DO UPDATE SET body = excluded.body, trace_id = excluded.trace_id, created_at = excluded.created_at`,
			e.Tenant, t.a.IdempotencyKey, t.a.IdempotencyBody[:], e.TraceID); err != nil {
			return err
		}
	}
	counts := sqldb.Shared[runningCounts](b)
	if _, counted := counts.of[e.Tenant]; counted {
		counts.of[e.Tenant]++
	}
	return nil
}
