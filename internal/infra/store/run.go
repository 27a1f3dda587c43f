package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// runs is the run.Store.
type runs struct{ db *DB }

var _ run.Store = (*runs)(nil)

// Runs is the store of runs.
func (db *DB) Runs() run.Store { return &runs{db} }

// runRow is a run with its first lease.
type runRow struct {
	run.Run
	holder string
	epoch  int64
	due    time.Time
}

// runTable is the table of runs. Who drives them is changed piece by piece.
var runTable = newTable("runs",
	col("holder", insert, func(r *runRow) any { return &r.holder }),
	col("epoch", insert, func(r *runRow) any { return &r.epoch }),
	col("due_at", insert, func(r *runRow) any { return timeAt(&r.due) }),
	col("id", fixed, func(r *runRow) any { return &r.ID }),
	col("tenant", fixed, func(r *runRow) any { return &r.Tenant }),
	col("key_id", fixed, func(r *runRow) any { return &r.Key }),
	col("environment", fixed, func(r *runRow) any { return &r.Environment }),
	col("sandbox", fixed, func(r *runRow) any { return &r.Sandbox }),
	col("session", fixed, func(r *runRow) any { return &r.Session }),
	col("top", fixed, func(r *runRow) any { return &r.Top }),
	col("keep", fixed, func(r *runRow) any { return durationAt(&r.Keep) }),
	col("status", fixed, func(r *runRow) any { return &r.Status }),
	col("seq", fixed, func(r *runRow) any { return &r.Seq }),
	col("created_at", fixed, func(r *runRow) any { return timeAt(&r.CreatedAt) }),
	col("ended_at", read, func(r *runRow) any { return zeroTimeAt(&r.EndedAt) }),
)

func scanRun(s scanner) (*run.Run, error) {
	r := &runRow{}
	return &r.Run, runTable.scan(s, r)
}

func (s *runs) Run(ctx context.Context, t tenant.ID, id run.ID) (*run.Run, error) {
	r, err := scanRun(s.db.read.row(ctx, `SELECT `+runTable.selected+` FROM runs WHERE tenant = ? AND id = ?`, t, string(id)))
	return r, s.db.read.found("get a run", err, run.ErrNotFound)
}

func (s *runs) Log(ctx context.Context, id run.ID) ([]run.Entry, error) {
	rows, err := s.db.read.rows(ctx, `SELECT r.tenant, e.seq, e.entry FROM run_entries e JOIN runs r ON r.id = e.run WHERE e.run = ? ORDER BY e.seq`, string(id))
	entries, err := collect(rows, err, func(sc scanner) (e run.Entry, err error) {
		var of tenant.ID
		var seq int64
		var sealed []byte
		if err := sc.Scan(&of, &seq, &sealed); err != nil {
			return e, err
		}
		err = s.db.openEntry(of, id, seq, sealed, &e)
		return e, err
	})
	if err != nil {
		return nil, s.db.read.wrap("read the log of a run", err)
	}
	return entries, nil
}

// runTask writes to a run in a transaction that others share. A refusal is in err, and
// has written nothing.
type runTask struct {
	id    run.ID
	of    tenant.ID // "" for a task of the server
	lock  []int64
	write func(ctx context.Context, b *batch) error
	err   error
}

func (t *runTask) locks() []int64 { return t.lock }
func (t *runTask) order() string  { return "r" + string(t.id) }
func (t *runTask) owner() string  { return t.of }
func (t *runTask) do(ctx context.Context, b *batch) error {
	t.err = nil
	return t.write(ctx, b)
}

func (s *runs) write(ctx context.Context, step string, t *runTask) error {
	if err := s.db.writer.write(ctx, t); err != nil {
		return s.db.write.wrap(step, err)
	}
	return t.err
}

func (s *runs) Create(ctx context.Context, r *run.Run, first []run.Entry, holder string, limit int, cause error, left ...run.Trace) (run.Lease, error) {
	if !r.ID.Valid() || len(first) == 0 || first[0].Begun == nil {
		return run.Lease{}, run.ErrEmpty
	}
	sealed, err := s.db.sealEntries(r.Tenant, r.ID, first)
	if err != nil {
		return run.Lease{}, err
	}
	told, err := s.db.sealTrace(r.Tenant, left)
	if err != nil {
		return run.Lease{}, err
	}
	r.Seq = first[len(first)-1].Seq
	lease := run.Lease{Holder: holder, Tenant: r.Tenant, Epoch: 1}
	task := &runTask{id: r.ID, of: r.Tenant}
	if limit > 0 {
		task.lock = []int64{lockOf("runs", r.Tenant)}
	}
	if r.Session != "" {
		task.lock = append(task.lock, lockOf("session", r.Session))
	}
	task.write = func(ctx context.Context, b *batch) error {
		if task.err, err = runsLeft(ctx, b, r.Tenant, limit, cause); task.err != nil || err != nil {
			return err
		}
		now, err := b.clock(ctx)
		if err != nil {
			return err
		}
		if task.err, err = goesOn(ctx, b, r.Tenant, r.Top); task.err != nil || err != nil {
			return err
		}
		if task.err, err = s.db.settle(ctx, b, r, first[0].Begun.Verdicts); task.err != nil || err != nil {
			return err
		}
		if turn := first[0].Begun.Turn; turn != nil {
			if task.err, err = s.db.beginTurn(ctx, b, r, turn, now); task.err != nil || err != nil {
				return err
			}
		}
		values, err := runTable.values(insert, &runRow{*r, holder, lease.Epoch, now.Add(run.LeaseTime)})
		if err != nil {
			return err
		}
		if err := b.later(ctx, runTable.insert, values...); err != nil {
			return err
		}
		if told != nil {
			if err := s.db.tellSession(ctx, b, r.ID, told); err != nil {
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
	return lease, s.write(ctx, "record a run", task)
}

// runsLeft refuses another run of a tenant that has limit of them under way.
func runsLeft(ctx context.Context, b *batch, t tenant.ID, limit int, cause error) (refused, err error) {
	if limit == 0 {
		return nil, nil
	}
	if err := b.flush(ctx); err != nil { // this batch may have others of the tenant
		return nil, err
	}
	var n int
	if err := b.row(ctx, `SELECT count(*) FROM runs WHERE tenant = ? AND due_at IS NOT NULL`, t).Scan(&n); err != nil || n < limit {
		return nil, err
	}
	return run.TooMany(n, cause), nil
}

// goesOn refuses work for a run that has ended, which can neither wait for it nor end it. top is ""
// for work that no run has handed on.
func goesOn(ctx context.Context, b *batch, t tenant.ID, top run.ID) (refused, err error) {
	if top == "" {
		return nil, nil
	}
	var one int
	err = b.row(ctx, `SELECT 1 FROM runs WHERE tenant = ? AND id = ? AND due_at IS NOT NULL`, t, string(top)).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return run.ErrParentEnded, nil
	}
	return nil, err
}

func (s *runs) Append(ctx context.Context, id run.ID, l run.Lease, entries []run.Entry, left ...run.Trace) error {
	if len(entries) == 0 {
		return nil
	}
	sealed, err := s.db.sealEntries(l.Tenant, id, entries)
	if err != nil {
		return err
	}
	first, last := entries[0].Seq, &entries[len(entries)-1]
	task := &runTask{id: id, of: l.Tenant}
	told, err := s.db.sealTrace(l.Tenant, left)
	if err != nil {
		return err
	}
	if told != nil {
		task.lock = []int64{lockOf("session", told.session)}
	}
	task.write = func(ctx context.Context, b *batch) error {
		query := `UPDATE runs SET seq = ? WHERE id = ? AND holder = ? AND epoch = ? AND seq = ? AND due_at IS NOT NULL`
		args := []any{last.Seq, string(id), l.Holder, l.Epoch, first - 1}
		if last.Ended != nil {
			query = `UPDATE runs SET seq = ?, status = ?, ended_at = ?, due_at = NULL, expires_at = ? + CASE WHEN keep > 0 THEN keep ELSE CAST(? AS BIGINT) END WHERE id = ? AND holder = ? AND epoch = ? AND seq = ? AND due_at IS NOT NULL`
			args = append([]any{last.Seq, string(last.Ended.Status), micros(last.At), micros(last.At), run.Unkept.Microseconds()}, args[1:]...)
		}
		switch n, err := b.exec(ctx, query, args...); {
		case err != nil:
			return err
		case n == 0:
			task.err = run.ErrLeaseLost
			return nil
		}
		if last.Ended != nil {
			b.changes(string(id))
		}
		if told != nil {
			if err := s.db.tellSession(ctx, b, id, told); err != nil {
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
	return s.write(ctx, "record the steps of a run", task)
}

// asked adds the approvals that a response waits for as it ends.
func (s *runs) asked(ctx context.Context, b *batch, id run.ID, t *run.Trace) error {
	r, err := scanRun(b.row(ctx, `SELECT `+runTable.selected+` FROM runs WHERE id = ?`, string(id)))
	if err == nil {
		err = s.db.ask(ctx, b, r, t.Asks)
	}
	return err
}

// leaveTrace records what entries leave beside the log.
func leaveTrace(ctx context.Context, b *batch, t *run.Trace) error {
	for _, row := range t.Rows {
		if err := insertAudit(ctx, b, storableRow(row), time.Time{}); err != nil {
			return err
		}
	}
	for _, c := range t.Charges {
		if err := addCharge(ctx, b, c); err != nil {
			return err
		}
	}
	return nil
}

func insertEntries(ctx context.Context, b *batch, id run.ID, sealed []sealedEntry) error {
	for _, e := range sealed {
		if err := b.later(ctx, `INSERT INTO run_entries (run, seq, entry) VALUES (?, ?, ?)`, string(id), e.seq, e.sealed); err != nil {
			return err
		}
	}
	return nil
}

func (s *runs) Release(ctx context.Context, id run.ID, l run.Lease, due time.Time) error {
	task := &runTask{id: id}
	task.write = func(ctx context.Context, b *batch) error {
		// One that is to be cancelled waits for nothing.
		n, err := b.exec(ctx, `UPDATE runs SET holder = '', due_at = CASE WHEN cancelled = 1 THEN created_at ELSE CAST(? AS BIGINT) END WHERE id = ? AND holder = ? AND epoch = ? AND due_at IS NOT NULL`,
			micros(due), string(id), l.Holder, l.Epoch)
		if err == nil && n == 0 {
			task.err = run.ErrLeaseLost
		}
		return err
	}
	return s.write(ctx, "give a run back", task)
}

func (s *runs) Renew(ctx context.Context, holder string) error {
	return s.write(ctx, "renew the leases of runs", &runTask{write: func(ctx context.Context, b *batch) error {
		now, err := b.clock(ctx)
		if err != nil {
			return err
		}
		_, err = b.exec(ctx, `UPDATE runs SET due_at = ? WHERE holder = ? AND due_at IS NOT NULL`, micros(now.Add(run.LeaseTime)), holder)
		return err
	}})
}

func (s *runs) Cancelled(ctx context.Context, holder string) ([]run.ID, error) {
	rows, err := s.db.read.rows(ctx, `SELECT id FROM runs WHERE holder = ? AND due_at IS NOT NULL AND cancelled = 1`, holder)
	ids, err := collect(rows, err, func(sc scanner) (id run.ID, err error) { return id, sc.Scan(&id) })
	return ids, s.db.read.wrap("look for runs to cancel", err)
}

func (s *runs) Claim(ctx context.Context, holder string, limit int) (due []run.Due, next time.Time, err error) {
	err = s.write(ctx, "take on runs", &runTask{write: func(ctx context.Context, b *batch) error {
		due, next = nil, time.Time{}
		now, err := b.clock(ctx)
		if err != nil {
			return err
		}
		lock := ""
		if b.pool.postgres {
			lock = ` FOR UPDATE SKIP LOCKED`
		}
		rows, err := b.rows(ctx, `UPDATE runs SET holder = ?, epoch = epoch + 1, due_at = ?, status = ?
			WHERE id IN (SELECT id FROM runs WHERE due_at <= ? ORDER BY due_at LIMIT ?`+lock+`)
			RETURNING `+runTable.selected+`, epoch, cancelled`,
			holder, micros(now.Add(run.LeaseTime)), string(run.InProgress), micros(now), limit)
		due, err = collect(rows, err, func(sc scanner) (d run.Due, err error) {
			var row runRow
			var cancelled int64
			err = sc.Scan(append(runTable.dest(&row), &d.Lease.Epoch, &cancelled)...)
			d.Run, d.Lease.Holder, d.Lease.Tenant, d.Cancelled = row.Run, holder, row.Tenant, cancelled == 1
			return d, err
		})
		if err != nil {
			return err
		}
		var at sql.NullInt64
		err = b.row(ctx, `SELECT min(due_at) FROM runs WHERE due_at > ?`, micros(now)).Scan(&at)
		if at.Valid {
			next = time.Now().Add(instant(at.Int64).Sub(now)) // by this process's clock
		}
		return err
	}})
	return due, next, err
}

func (s *runs) Abandon(ctx context.Context, holder string) error {
	return s.write(ctx, "give up the runs of an earlier process", &runTask{write: func(ctx context.Context, b *batch) error {
		_, err := b.exec(ctx, `UPDATE runs SET due_at = created_at WHERE holder = ? AND due_at IS NOT NULL`, holder)
		return err
	}})
}

func (s *runs) Cancel(ctx context.Context, t tenant.ID, id run.ID) error {
	task := &runTask{id: id}
	task.write = func(ctx context.Context, b *batch) error {
		// With those that it has handed work to, wherever they are driven.
		n, err := b.exec(ctx, `UPDATE runs SET cancelled = 1, due_at = CASE WHEN holder = '' THEN created_at ELSE due_at END WHERE tenant = ? AND (id = ? OR top = ?) AND due_at IS NOT NULL`, t, string(id), string(id))
		if err != nil || n > 0 {
			return err
		}
		task.err, err = refusal(ctx, b, t, id, run.ErrEnded)
		return err
	}
	return s.write(ctx, "cancel a run", task)
}

func (s *runs) Expire(ctx context.Context, limit int) (gone []run.ID, err error) {
	err = s.write(ctx, "remove runs", &runTask{write: func(ctx context.Context, b *batch) error {
		now, err := b.clock(ctx)
		if err != nil {
			return err
		}
		// One that did work for another stays as long as that may ask what came of it.
		gone, err = removeRuns(ctx, b, `expires_at <= ? AND NOT EXISTS (SELECT 1 FROM runs t WHERE t.id = runs.top AND t.due_at IS NOT NULL) ORDER BY expires_at LIMIT ?`, micros(now), limit)
		return err
	}})
	return gone, err
}

func (s *runs) Delete(ctx context.Context, t tenant.ID, id run.ID) error {
	task := &runTask{id: id}
	task.write = func(ctx context.Context, b *batch) error {
		gone, err := removeRuns(ctx, b, `tenant = ? AND id = ? AND due_at IS NULL`, t, string(id))
		if err != nil || len(gone) > 0 {
			return err
		}
		task.err, err = refusal(ctx, b, t, id, run.ErrNotEnded)
		return err
	}
	return s.write(ctx, "delete a run", task)
}

// HasSandbox implements run.Store.
func (s *runs) HasSandbox(ctx context.Context, t tenant.ID, sandbox string) (has bool, err error) {
	err = s.db.read.row(ctx, `SELECT EXISTS (SELECT 1 FROM runs WHERE sandbox = ? AND tenant = ?)`, sandbox, t).Scan(&has)
	return has, s.db.read.wrap("look for runs with a sandbox", err)
}

// refusal says why a run was not changed: there is none, or it is at another point of
// its life.
func refusal(ctx context.Context, b *batch, t tenant.ID, id run.ID, otherwise error) (refused, err error) {
	var one int
	err = b.row(ctx, `SELECT 1 FROM runs WHERE tenant = ? AND id = ?`, t, string(id)).Scan(&one)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return run.ErrNotFound, nil
	case err != nil:
		return nil, err
	}
	return otherwise, nil
}
