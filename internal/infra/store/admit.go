package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/idempotency"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/thread"
	"github.com/atoll-run/atoll/internal/core/usage"
)

// idempotencyTime is how long an idempotency key stands for its execution.
const idempotencyTime = 24 * time.Hour

// admit is the task that records an execution as running.
type admit struct {
	store  *executions
	e      *execution.Execution
	a      execution.Admission
	secret []byte // of the webhook, sealed
	text   []byte // of the activity, sealed

	earlier *execution.Execution
	state   string // of the thread
	refusal error
	created time.Time
}

func (s *executions) Admit(ctx context.Context, e *execution.Execution, a execution.Admission) (*execution.Execution, error) {
	if err := checkMap(e.Metadata); err != nil {
		return nil, err
	}
	t := &admit{store: s, e: e, a: a, secret: s.db.sealText(e.Webhook.Secret, webhookPlace(e.TraceID)), text: s.db.sealActivity(e.Tenant, e.TraceID, e.Text)}
	if err := s.db.writer.write(ctx, t); err != nil {
		return nil, s.db.write.wrap("admit", err)
	}
	if t.earlier != nil || t.refusal != nil {
		return t.earlier, t.refusal
	}
	e.Status, e.CreatedAt, e.ThreadState = execution.Running, t.created, t.state
	return nil, nil
}

// lockOf is the number of the advisory lock for a thing.
func lockOf(kind, name string) int64 {
	sum := sha256.Sum256([]byte(kind + "/" + name))
	return int64(binary.BigEndian.Uint64(sum[:]))
}

func (t *admit) locks() []int64 {
	var locks []int64
	if t.a.Concurrency > 0 {
		locks = append(locks, lockOf("concurrency", t.e.Tenant))
	}
	if t.a.IdempotencyKey != "" {
		locks = append(locks, lockOf("idempotency", t.e.Tenant+"/"+t.a.IdempotencyKey))
	}
	if tenant.IsToken(t.e.Key) {
		locks = append(locks, lockOf("token", t.e.Key))
	}
	if t.e.Thread != "" {
		locks = append(locks, threadLock(t.e.Tenant, t.e.Thread))
	}
	return locks
}

// order puts admissions behind ends, which make room for them.
func (t *admit) order() string { return "b" + t.e.TraceID }

func (t *admit) owner() string { return t.e.Tenant }

func (t *admit) do(ctx context.Context, b *batch) error {
	t.earlier, t.refusal, t.state = nil, nil, ""
	if t.a.IdempotencyKey != "" {
		if done, err := t.repeated(ctx, b); done || err != nil {
			return err
		}
	}
	for _, check := range []func(context.Context, *batch) (error, error){t.concurrency, t.outputs, t.budget, t.thread, t.token} {
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
func (t *admit) repeated(ctx context.Context, b *batch) (bool, error) {
	var traceID string
	var body []byte
	if err := b.flush(ctx); err != nil { // the key may have been used in this batch
		return false, err
	}
	err := b.row(ctx, `SELECT trace_id, body FROM idempotency_keys WHERE tenant = ? AND key = ? AND created_at > atoll_now() - ?`,
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

// concurrency counts what is running: never kept as a number of its own, which
// could drift.
func (t *admit) concurrency(ctx context.Context, b *batch) (refusal, err error) {
	if t.a.Concurrency <= 0 {
		return nil, nil
	}
	n, counted := b.running[t.e.Tenant]
	if !counted {
		if err := b.flush(ctx); err != nil {
			return nil, err
		}
		if n, err = t.running(ctx, b); err != nil {
			return nil, err
		}
		if b.running == nil {
			b.running = map[string]int{}
		}
		b.running[t.e.Tenant] = n
	}
	if n >= t.a.Concurrency {
		return t.a.Full(n), nil
	}
	return nil, nil
}

// countRunning counts a tenant's executions.
const countRunning = `SELECT count(*) FROM executions WHERE tenant = ? AND status = 'running'`

// running counts what is running, and asks with the same statement for what is kept
// if that has a bound: a statement more would be felt by every admission.
func (t *admit) running(ctx context.Context, b *batch) (n int, err error) {
	q := t.a.Outputs
	if _, known := b.kept[t.e.Tenant]; q.Max <= 0 || known {
		return n, b.row(ctx, countRunning, t.e.Tenant).Scan(&n)
	}
	var kept int64
	err = b.row(ctx, `SELECT (`+countRunning+`), (`+sumKept+`)`, t.e.Tenant, t.e.Tenant, keptWindow(q.Keep)).Scan(&n, &kept)
	b.setKept(t.e.Tenant, kept)
	return n, err
}

// outputs compares what is kept with its bound.
func (t *admit) outputs(ctx context.Context, b *batch) (refusal, err error) {
	q := t.a.Outputs
	if q.Max <= 0 {
		return nil, nil
	}
	kept, known := b.kept[t.e.Tenant]
	if !known {
		if err := b.row(ctx, sumKept, t.e.Tenant, keptWindow(q.Keep)).Scan(&kept); err != nil {
			return nil, err
		}
		b.setKept(t.e.Tenant, kept)
	}
	for d, sum := range b.used {
		if d.tenant == t.e.Tenant {
			kept += sum.kept
		}
	}
	if kept < q.Max {
		return nil, nil
	}
	resets, err := keptUntil(ctx, b, t.e.Tenant, q.Keep)
	if err != nil {
		return nil, err
	}
	return q.Full(kept, resets), nil
}

func (t *admit) budget(ctx context.Context, b *batch) (refusal, err error) {
	if t.a.Credits <= 0 {
		return nil, nil
	}
	used, now, err := monthCredits(ctx, b, t.e.Tenant)
	if err != nil {
		return nil, err
	}
	if used >= t.a.Credits {
		return errBudget(used, t.a.Credits, now), nil
	}
	return nil, nil
}

// errBudget is the refusal of a tenant that has used its budget up.
func errBudget(used, budget float64, now time.Time) error {
	return usage.OverCredits(used, budget, monthOf(now).AddDate(0, 1, 0))
}

// thread takes the execution's thread: from here on it is in use, by the record
// of an execution that runs.
func (t *admit) thread(ctx context.Context, b *batch) (refusal, err error) {
	if t.e.Thread == "" {
		return nil, nil
	}
	if err := b.flush(ctx); err != nil { // it may have been taken, or let go, in this batch
		return nil, err
	}
	state, known, busy, err := threadUse(ctx, b, t.e.Tenant, t.e.Thread)
	switch {
	case err != nil:
		return nil, err
	case busy:
		return thread.InUse(t.e.Thread), nil
	case !known:
		return threadRoom(ctx, b, t.e.Tenant, t.a.Threads)
	}
	t.state = state
	return nil, nil
}

func (t *admit) record(ctx context.Context, b *batch) error {
	e := t.e
	t.created = instant(micros(e.CreatedAt))
	if e.CreatedAt.IsZero() {
		now, err := b.clock(ctx)
		if err != nil {
			return err
		}
		t.created = now
	}
	running := *e
	running.Status, running.CreatedAt = execution.Running, t.created
	values, err := executionTable.values(insert, &executionRow{Execution: &running, secret: t.secret})
	if err != nil {
		return err
	}
	if err := b.later(ctx, executionTable.insert, values...); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(e.Metadata)) {
		if err := b.later(ctx, `INSERT INTO execution_metadata (tenant, key, value, created_at, trace_id) VALUES (?, ?, ?, ?, ?)`,
			e.Tenant, key, e.Metadata[key], micros(t.created), e.TraceID); err != nil {
			return err
		}
	}
	if err := keepText(ctx, b, e.Tenant, e.TraceID, t.text); err != nil {
		return err
	}
	if t.a.IdempotencyKey != "" {
		if err := b.later(ctx, `INSERT INTO idempotency_keys (tenant, key, body, trace_id, created_at) VALUES (?, ?, ?, ?, atoll_now())
			ON CONFLICT (tenant, key) DO UPDATE SET body = excluded.body, trace_id = excluded.trace_id, created_at = excluded.created_at`,
			e.Tenant, t.a.IdempotencyKey, t.a.IdempotencyBody[:], e.TraceID); err != nil {
			return err
		}
	}
	if _, counted := b.running[e.Tenant]; counted {
		b.running[e.Tenant]++
	}
	return nil
}
