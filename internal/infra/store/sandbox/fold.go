package sandbox

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	auditdb "github.com/atoll-run/atoll/internal/infra/store/audit"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
	usagedb "github.com/atoll-run/atoll/internal/infra/store/usage"
)

var _ sandbox.EventStore = (*Store)(nil)

// foldedTable lists the columns of a sandbox's record that an event needs.
var foldedTable = sqldb.NewView(
	sqldb.Col("id", sqldb.Read, func(s *sandbox.Sandbox) any { return &s.ID }),
	sqldb.Col("tenant", sqldb.Read, func(s *sandbox.Sandbox) any { return &s.Tenant }),
	sqldb.Col("environment", sqldb.Read, func(s *sandbox.Sandbox) any { return &s.Environment }),
	sqldb.Col("session", sqldb.Read, func(s *sandbox.Sandbox) any { return &s.Session }),
	sqldb.Col("name", sqldb.Read, func(s *sandbox.Sandbox) any { return &s.Name }),
	sqldb.Col("key_id", sqldb.Read, func(s *sandbox.Sandbox) any { return &s.Key }),
	sqldb.Col("executor", sqldb.Read, func(s *sandbox.Sandbox) any { return &s.Executor }),
	sqldb.Col("state", sqldb.Read, func(s *sandbox.Sandbox) any { return &s.State }),
	sqldb.Col("created_at", sqldb.Read, func(s *sandbox.Sandbox) any { return sqldb.TimeAt(&s.CreatedAt) }),
	sqldb.Col("metered_at", sqldb.Read, func(s *sandbox.Sandbox) any { return sqldb.TimeAt(&s.MeteredAt) }),
	sqldb.Col("revision", sqldb.Read, func(s *sandbox.Sandbox) any { return countAt(&s.Revision) }),
)

// fold is the task that applies an event of an executor.
type fold struct {
	executor string
	seq      uint64
	event    *sandbox.Event
	effect   func(s *sandbox.Sandbox) (sandbox.Effect, error)

	before  sandbox.Mark
	refusal error // the event changes nothing but the mark
}

// Locks keeps two gateways from applying one event at the same time: only one of them finds the mark
// before it.
func (t *fold) Locks() []int64 { return []int64{sqldb.LockOf("executor_events", t.executor)} }
func (t *fold) Order() string  { return "d" + string(t.event.Sandbox) }

func (t *fold) Do(ctx context.Context, b *sqldb.Batch) error {
	t.refusal = nil
	var err error
	if t.before, err = mark(ctx, b, t.executor); err != nil || t.before.Passed(t.event.Journal, t.seq) {
		return err
	}
	if err := t.apply(ctx, b); err != nil {
		return err
	}
	return b.Later(ctx, `INSERT INTO executor_events (executor, journal, seq) VALUES (?, ?, ?)
		ON CONFLICT (executor) DO UPDATE SET journal = excluded.journal, seq = excluded.seq`, t.executor, t.event.Journal, int64(t.seq))
}

// mark reads the last event of an executor that was applied.
func mark(ctx context.Context, b *sqldb.Batch, executor string) (m sandbox.Mark, err error) {
	if err := b.Flush(ctx); err != nil { // the batch may have another event of the executor
		return m, err
	}
	err = b.Row(ctx, `SELECT journal, seq FROM executor_events WHERE executor = ?`, executor).Scan(&m.Journal, countAt(&m.Seq))
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return m, err
}

// apply applies the event unless it is refused.
func (t *fold) apply(ctx context.Context, b *sqldb.Batch) error {
	s, err := owned(ctx, b, t.executor, t.event.Sandbox)
	if fault.KindOf(err) == fault.Forbidden || fault.KindOf(err) == fault.NotFound {
		t.refusal = err
		return nil
	}
	if err != nil {
		return err
	}
	e, err := t.effect(s)
	if err == nil {
		err = checkEffect(&e)
	}
	if err == nil && e.Save != nil {
		var newer bool
		if newer, err = e.Save.Replaces(s); !newer {
			e.Save = nil
		}
	}
	if t.refusal = err; err != nil {
		return nil
	}
	return applyEffect(ctx, b, s, &e)
}

// checkEffect rejects values that the database would reject, because that would roll back the transaction.
func checkEffect(e *sandbox.Effect) error {
	c := call{Entry: e.Entry, Row: audit.Row{ExitStatus: audit.OK}}
	if e.Row != nil {
		*e.Row = auditdb.StorableRow(*e.Row)
		c.Row = *e.Row
	}
	if err := c.check(); err != nil {
		return err
	}
	if e.Save == nil {
		return nil
	}
	values, err := sandboxTable.Values(sqldb.Update, &sandboxRow{Sandbox: e.Save})
	if err != nil {
		return err
	}
	return sqldb.CheckText(values)
}

// owned reads and locks the record of an executor's sandbox.
func owned(ctx context.Context, q sqldb.Querier, executor string, id runtime.ID) (*sandbox.Sandbox, error) {
	s, err := foldedTable.Pointer(q.Row(ctx, `SELECT `+foldedTable.Selected+` FROM sandboxes WHERE id = ?`+q.Dialect().ForUpdate(), string(id)))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, sandbox.ErrNotFound
	case err != nil:
		return nil, err
	case s.Executor != executor:
		return nil, sandbox.ErrOtherExecutor
	}
	return s, nil
}

func applyEffect(ctx context.Context, b *sqldb.Batch, s *sandbox.Sandbox, e *sandbox.Effect) error {
	id := string(s.ID)
	if e.Save != nil {
		if err := save(ctx, b, e.Save); err != nil {
			return err
		}
	}
	if e.Endings != nil {
		text, err := endingsText(e.Endings)
		if err != nil {
			return err
		}
		if err := b.Later(ctx, `UPDATE sandboxes SET endings = ? WHERE id = ? AND state <> 'destroyed'`, text, id); err != nil {
			return err
		}
	}
	if e.Entry.TraceID != "" {
		if err := b.Later(ctx, `UPDATE sandboxes SET metered_at = ? WHERE id = ?`, sqldb.Micros(e.Entry.At), id); err != nil {
			return err
		}
		if err := usagedb.Add(ctx, b, e.Entry); err != nil {
			return err
		}
	}
	if e.Row != nil {
		if err := auditdb.Insert(ctx, b, *e.Row, time.Time{}); err != nil {
			return err
		}
	}
	if e.Discard {
		return b.Later(ctx, `DELETE FROM sandboxes WHERE id = ? AND state = 'creating'`, id)
	}
	return nil
}

// Fold implements sandbox.EventStore.
func (s *Store) Fold(ctx context.Context, executor string, seq uint64, e *sandbox.Event, effect func(*sandbox.Sandbox) (sandbox.Effect, error)) (sandbox.Mark, error) {
	const step = "apply an event of an executor"
	t := &fold{executor: executor, seq: seq, event: e, effect: effect}
	if err := s.db.Submit(ctx, t); err != nil {
		return t.before, s.db.Write.Wrap(step, err)
	}
	return t.before, s.db.Write.Wrap(step, t.refusal)
}

// SaveNewer implements sandbox.EventStore.
func (s *Store) SaveNewer(ctx context.Context, executor string, sb *sandbox.Sandbox) error {
	err := s.db.Write.Transact(ctx, func(t *sqldb.Tx) error {
		have, err := owned(ctx, t, executor, sb.ID)
		if err != nil {
			return err
		}
		if newer, err := sb.Replaces(have); err != nil || !newer {
			return err
		}
		return save(ctx, t, sb)
	})
	return s.db.Write.Wrap("save a newer version of a sandbox", err)
}
