// Package run stores runs and their logs.
package run

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
	approvaldb "github.com/atoll-run/atoll/internal/infra/store/approval"
	auditdb "github.com/atoll-run/atoll/internal/infra/store/audit"
	sessiondb "github.com/atoll-run/atoll/internal/infra/store/session"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
	usagedb "github.com/atoll-run/atoll/internal/infra/store/usage"
)

// Store implements run.Store.
type Store struct {
	db        *sqldb.DB
	sessions  *sessiondb.Store
	approvals *approvaldb.Store
}

var _ run.Store = (*Store)(nil)

// New returns the store in a database. s and a get the events and approvals of runs.
func New(db *sqldb.DB, s *sessiondb.Store, a *approvaldb.Store) *Store { return &Store{db, s, a} }

// runRow is a run with its first lease.
type runRow struct {
	run.Run
	holder string
	epoch  int64
	due    time.Time
}

// runTable is the table of runs. Separate statements update the lease.
var runTable = sqldb.NewTable("runs",
	sqldb.Col("holder", sqldb.Insert, func(r *runRow) any { return &r.holder }),
	sqldb.Col("epoch", sqldb.Insert, func(r *runRow) any { return &r.epoch }),
	sqldb.Col("due_at", sqldb.Insert, func(r *runRow) any { return sqldb.TimeAt(&r.due) }),
	sqldb.Col("id", sqldb.Fixed, func(r *runRow) any { return &r.ID }),
	sqldb.Col("tenant", sqldb.Fixed, func(r *runRow) any { return &r.Tenant }),
	sqldb.Col("key_id", sqldb.Fixed, func(r *runRow) any { return &r.Key }),
	sqldb.Col("environment", sqldb.Fixed, func(r *runRow) any { return &r.Environment }),
	sqldb.Col("sandbox", sqldb.Fixed, func(r *runRow) any { return &r.Sandbox }),
	sqldb.Col("session", sqldb.Fixed, func(r *runRow) any { return &r.Session }),
	sqldb.Col("top", sqldb.Fixed, func(r *runRow) any { return &r.Top }),
	sqldb.Col("keep", sqldb.Fixed, func(r *runRow) any { return sqldb.DurationAt(&r.Keep) }),
	sqldb.Col("status", sqldb.Fixed, func(r *runRow) any { return &r.Status }),
	sqldb.Col("seq", sqldb.Fixed, func(r *runRow) any { return &r.Seq }),
	sqldb.Col("created_at", sqldb.Fixed, func(r *runRow) any { return sqldb.TimeAt(&r.CreatedAt) }),
	sqldb.Col("ended_at", sqldb.Read, func(r *runRow) any { return sqldb.ZeroTimeAt(&r.EndedAt) }),
)

func scanRun(s sqldb.Scanner) (*run.Run, error) {
	r := &runRow{}
	return &r.Run, runTable.Scan(s, r)
}

func (s *Store) Run(ctx context.Context, t tenant.ID, id run.ID) (*run.Run, error) {
	r, err := scanRun(s.db.Read.Row(ctx, `SELECT `+runTable.Selected+` FROM runs WHERE tenant = ? AND id = ?`, t, string(id)))
	return r, s.db.Read.Found("get a run", err, run.ErrNotFound)
}

func (s *Store) Log(ctx context.Context, id run.ID) ([]run.Entry, error) {
	rows, err := s.db.Read.Rows(ctx, `SELECT `+entryView.Selected+` FROM run_entries e JOIN runs r ON r.id = e.run WHERE e.run = ? ORDER BY e.seq`, string(id))
	entries, err := sqldb.Collect(rows, err, func(sc sqldb.Scanner) (e run.Entry, err error) {
		r, err := entryView.Row(sc)
		if err == nil {
			err = s.openEntry(id, &r, &e)
		}
		return e, err
	})
	if err != nil {
		return nil, s.db.Read.Wrap("read the log of a run", err)
	}
	return entries, nil
}

func (s *Store) Create(ctx context.Context, r *run.Run, first []run.Entry, holder string, limit int, cause error, left ...run.Trace) (run.Lease, error) {
	if !r.ID.Valid() || len(first) == 0 || first[0].Begun == nil {
		return run.Lease{}, run.ErrEmpty
	}
	sealed, err := s.sealEntries(r.Tenant, r.ID, first)
	if err != nil {
		return run.Lease{}, err
	}
	trace, err := s.sessions.SealTrace(r.Tenant, left)
	if err != nil {
		return run.Lease{}, err
	}
	r.Seq = first[len(first)-1].Seq
	lease := run.Lease{Holder: holder, Tenant: r.Tenant, Epoch: 1}
	task := &sqldb.Change{Key: string(r.ID), Of: r.Tenant}
	if limit > 0 {
		task.Hold = []int64{sqldb.LockOf("runs", r.Tenant)}
	}
	if r.Session != "" {
		task.Hold = append(task.Hold, sqldb.LockOf("session", r.Session))
	}
	task.Write = func(ctx context.Context, b *sqldb.Batch) error {
		if task.Refused, err = runsLeft(ctx, b, r.Tenant, limit, cause); task.Refused != nil || err != nil {
			return err
		}
		now, err := b.Clock(ctx)
		if err != nil {
			return err
		}
		if task.Refused, err = goesOn(ctx, b, r.Tenant, r.Top); task.Refused != nil || err != nil {
			return err
		}
		if task.Refused, err = s.approvals.Settle(ctx, b, r, first[0].Begun.Verdicts); task.Refused != nil || err != nil {
			return err
		}
		if turn := first[0].Begun.Turn; turn != nil {
			if task.Refused, err = s.sessions.BeginTurn(ctx, b, r, turn, now); task.Refused != nil || err != nil {
				return err
			}
		}
		values, err := runTable.Values(sqldb.Insert, &runRow{*r, holder, lease.Epoch, now.Add(run.LeaseTime)})
		if err != nil {
			return err
		}
		if err := b.Later(ctx, runTable.Insert, values...); err != nil {
			return err
		}
		if trace != nil {
			if err := s.sessions.AddEvents(ctx, b, r.ID, trace); err != nil {
				return err
			}
		}
		for i := range left {
			if err := leaveTrace(ctx, b, &left[i]); err != nil {
				return err
			}
		}
		return insertEntries(ctx, b, r.ID, sealed)
	}
	return lease, s.db.Do(ctx, "record a run", task)
}

// runsLeft refuses another run of a tenant that has limit of them under way.
func runsLeft(ctx context.Context, b *sqldb.Batch, t tenant.ID, limit int, cause error) (refused, err error) {
	if limit == 0 {
		return nil, nil
	}
	if err := b.Flush(ctx); err != nil { // this batch may have others of the tenant
		return nil, err
	}
	var n int
	if err := b.Row(ctx, `SELECT count(*) FROM runs WHERE tenant = ? AND due_at IS NOT NULL`, t).Scan(&n); err != nil || n < limit {
		return nil, err
	}
	return run.TooMany(n, cause), nil
}

// goesOn refuses work for a run that has ended, which can neither wait for it nor end it. top is ""
// for work that no run has handed on.
func goesOn(ctx context.Context, b *sqldb.Batch, t tenant.ID, top run.ID) (refused, err error) {
	if top == "" {
		return nil, nil
	}
	var one int
	err = b.Row(ctx, `SELECT 1 FROM runs WHERE tenant = ? AND id = ? AND due_at IS NOT NULL`, t, string(top)).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return run.ErrParentEnded, nil
	}
	return nil, err
}

func (s *Store) Append(ctx context.Context, id run.ID, l run.Lease, entries []run.Entry, left ...run.Trace) error {
	if len(entries) == 0 {
		return nil
	}
	sealed, err := s.sealEntries(l.Tenant, id, entries)
	if err != nil {
		return err
	}
	first, last := entries[0].Seq, &entries[len(entries)-1]
	task := &sqldb.Change{Key: string(id), Of: l.Tenant}
	trace, err := s.sessions.SealTrace(l.Tenant, left)
	if err != nil {
		return err
	}
	if trace != nil {
		task.Hold = []int64{sqldb.LockOf("session", trace.Session)}
	}
	task.Write = func(ctx context.Context, b *sqldb.Batch) error {
		query := `UPDATE runs SET seq = ? WHERE id = ? AND holder = ? AND epoch = ? AND seq = ? AND due_at IS NOT NULL`
		args := []any{last.Seq, string(id), l.Holder, l.Epoch, first - 1}
		if last.Ended != nil {
			query = `UPDATE runs SET seq = ?, status = ?, ended_at = ?, due_at = NULL, expires_at = ? + CASE WHEN keep > 0 THEN keep ELSE CAST(? AS BIGINT) END WHERE id = ? AND holder = ? AND epoch = ? AND seq = ? AND due_at IS NOT NULL`
			args = append([]any{last.Seq, string(last.Ended.Status), sqldb.Micros(last.At), sqldb.Micros(last.At), run.Unkept.Microseconds()}, args[1:]...)
		}
		switch n, err := b.Exec(ctx, query, args...); {
		case err != nil:
			return err
		case n == 0:
			task.Refused = run.ErrLeaseLost
			return nil
		}
		if last.Ended != nil {
			b.Changes(string(id))
		}
		if trace != nil {
			if err := s.sessions.AddEvents(ctx, b, id, trace); err != nil {
				return err
			}
		}
		for i := range left {
			if len(left[i].Asks) > 0 {
				if err := s.asked(ctx, b, id, &left[i]); err != nil {
					return err
				}
			}
			if err := leaveTrace(ctx, b, &left[i]); err != nil {
				return err
			}
		}
		if err := insertEntries(ctx, b, id, sealed); err != nil || last.Ended == nil {
			return err
		}
		return keepRun(ctx, b, id)
	}
	return s.db.Do(ctx, "record the steps of a run", task)
}

// asked adds the approvals that a response waits for as it ends.
func (s *Store) asked(ctx context.Context, b *sqldb.Batch, id run.ID, t *run.Trace) error {
	r, err := scanRun(b.Row(ctx, `SELECT `+runTable.Selected+` FROM runs WHERE id = ?`, string(id)))
	if err == nil {
		err = s.approvals.Ask(ctx, b, r, t.Asks)
	}
	return err
}

// leaveTrace records what entries leave beside the log.
func leaveTrace(ctx context.Context, b *sqldb.Batch, t *run.Trace) error {
	for _, row := range t.Rows {
		if err := auditdb.Insert(ctx, b, auditdb.StorableRow(row), time.Time{}); err != nil {
			return err
		}
	}
	for _, c := range t.Charges {
		if err := usagedb.AddCharge(ctx, b, c); err != nil {
			return err
		}
	}
	return nil
}

func insertEntries(ctx context.Context, b *sqldb.Batch, id run.ID, sealed []sealedEntry) error {
	for _, e := range sealed {
		if err := b.Later(ctx, `INSERT INTO run_entries (run, seq, entry) VALUES (?, ?, ?)`, string(id), e.seq, e.sealed); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) Release(ctx context.Context, id run.ID, l run.Lease, due time.Time) error {
	task := &sqldb.Change{Key: string(id)}
	task.Write = func(ctx context.Context, b *sqldb.Batch) error {
		// A cancelled run is due at once.
		n, err := b.Exec(ctx, `UPDATE runs SET holder = '', due_at = CASE WHEN cancelled = 1 THEN created_at ELSE CAST(? AS BIGINT) END WHERE id = ? AND holder = ? AND epoch = ? AND due_at IS NOT NULL`,
			sqldb.Micros(due), string(id), l.Holder, l.Epoch)
		if err == nil && n == 0 {
			task.Refused = run.ErrLeaseLost
		}
		return err
	}
	return s.db.Do(ctx, "give a run back", task)
}

func (s *Store) Renew(ctx context.Context, holder string) error {
	return s.db.Do(ctx, "renew the leases of runs", &sqldb.Change{Write: func(ctx context.Context, b *sqldb.Batch) error {
		now, err := b.Clock(ctx)
		if err != nil {
			return err
		}
		_, err = b.Exec(ctx, `UPDATE runs SET due_at = ? WHERE holder = ? AND due_at IS NOT NULL`, sqldb.Micros(now.Add(run.LeaseTime)), holder)
		return err
	}})
}

func (s *Store) Cancelled(ctx context.Context, holder string) ([]run.ID, error) {
	ids, err := sqldb.Select(ctx, s.db.Read, sqldb.Value[run.ID], `SELECT id FROM runs WHERE holder = ? AND due_at IS NOT NULL AND cancelled = 1`, holder)
	return ids, s.db.Read.Wrap("look for runs to cancel", err)
}

func (s *Store) Claim(ctx context.Context, holder string, limit int) (due []run.Due, next time.Time, err error) {
	err = s.db.Do(ctx, "take on runs", &sqldb.Change{Write: func(ctx context.Context, b *sqldb.Batch) error {
		due, next = nil, time.Time{}
		now, err := b.Clock(ctx)
		if err != nil {
			return err
		}
		lock := ""
		if b.Pool.Postgres {
			lock = ` FOR UPDATE SKIP LOCKED`
		}
		rows, err := b.Rows(ctx, `UPDATE runs SET holder = ?, epoch = epoch + 1, due_at = ?, status = ?
			WHERE id IN (SELECT id FROM runs WHERE due_at <= ? ORDER BY due_at LIMIT ?`+lock+`)
			RETURNING `+runTable.Selected+`, epoch, cancelled`,
			holder, sqldb.Micros(now.Add(run.LeaseTime)), string(run.InProgress), sqldb.Micros(now), limit)
		due, err = sqldb.Collect(rows, err, func(sc sqldb.Scanner) (d run.Due, err error) {
			var row runRow
			var cancelled int64
			err = sc.Scan(append(runTable.Dest(&row), &d.Lease.Epoch, &cancelled)...)
			d.Run, d.Lease.Holder, d.Lease.Tenant, d.Cancelled = row.Run, holder, row.Tenant, cancelled == 1
			return d, err
		})
		if err != nil {
			return err
		}
		var at sql.NullInt64
		err = b.Row(ctx, `SELECT min(due_at) FROM runs WHERE due_at > ?`, sqldb.Micros(now)).Scan(&at)
		if at.Valid {
			next = time.Now().Add(sqldb.Instant(at.Int64).Sub(now)) // by this process's clock
		}
		return err
	}})
	return due, next, err
}

func (s *Store) Abandon(ctx context.Context, holder string) error {
	return s.db.Do(ctx, "give up the runs of an earlier process", &sqldb.Change{Write: func(ctx context.Context, b *sqldb.Batch) error {
		_, err := b.Exec(ctx, `UPDATE runs SET due_at = created_at WHERE holder = ? AND due_at IS NOT NULL`, holder)
		return err
	}})
}

func (s *Store) Cancel(ctx context.Context, t tenant.ID, id run.ID) error {
	task := &sqldb.Change{Key: string(id)}
	task.Write = func(ctx context.Context, b *sqldb.Batch) error {
		// Also cancel the runs of its hand-offs, which other processes may drive.
		n, err := b.Exec(ctx, `UPDATE runs SET cancelled = 1, due_at = CASE WHEN holder = '' THEN created_at ELSE due_at END WHERE tenant = ? AND (id = ? OR top = ?) AND due_at IS NOT NULL`, t, string(id), string(id))
		if err != nil || n > 0 {
			return err
		}
		task.Refused, err = refusal(ctx, b, t, id, run.ErrEnded)
		return err
	}
	return s.db.Do(ctx, "cancel a run", task)
}

func (s *Store) Expire(ctx context.Context, limit int) (gone []run.ID, err error) {
	err = s.db.Do(ctx, "remove runs", &sqldb.Change{Write: func(ctx context.Context, b *sqldb.Batch) error {
		now, err := b.Clock(ctx)
		if err != nil {
			return err
		}
		// Keep the run of a hand-off while its top run may still read the result.
		gone, err = removeRuns(ctx, b, `expires_at <= ? AND NOT EXISTS (SELECT 1 FROM runs t WHERE t.id = runs.top AND t.due_at IS NOT NULL) ORDER BY expires_at LIMIT ?`, sqldb.Micros(now), limit)
		return err
	}})
	return gone, err
}

func (s *Store) Delete(ctx context.Context, t tenant.ID, id run.ID) error {
	task := &sqldb.Change{Key: string(id)}
	task.Write = func(ctx context.Context, b *sqldb.Batch) error {
		gone, err := removeRuns(ctx, b, `tenant = ? AND id = ? AND due_at IS NULL`, t, string(id))
		if err != nil || len(gone) > 0 {
			return err
		}
		task.Refused, err = refusal(ctx, b, t, id, run.ErrNotEnded)
		return err
	}
	return s.db.Do(ctx, "delete a run", task)
}

// HasSandbox implements run.Store.
func (s *Store) HasSandbox(ctx context.Context, t tenant.ID, sandbox string) (has bool, err error) {
	err = s.db.Read.Row(ctx, `SELECT EXISTS (SELECT 1 FROM runs WHERE sandbox = ? AND tenant = ?)`, sandbox, t).Scan(&has)
	return has, s.db.Read.Wrap("look for runs with a sandbox", err)
}

// refusal returns the reason that a run was not changed: not found, or otherwise.
func refusal(ctx context.Context, b *sqldb.Batch, t tenant.ID, id run.ID, otherwise error) (refused, err error) {
	var one int
	err = b.Row(ctx, `SELECT 1 FROM runs WHERE tenant = ? AND id = ?`, t, string(id)).Scan(&one)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return run.ErrNotFound, nil
	case err != nil:
		return nil, err
	}
	return otherwise, nil
}
