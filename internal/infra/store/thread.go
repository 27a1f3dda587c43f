package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/thread"
)

// threads is the thread.Records.
type threads struct{ db *DB }

var _ thread.Records = (*threads)(nil)

// Threads is the store of threads.
func (db *DB) Threads() thread.Records { return &threads{db} }

// threadTable is the table of threads. Its rows are made and changed piece by
// piece, by leases and by the ends of executions.
var threadTable = newTable("threads",
	col("tenant", read, func(r *thread.Thread) any { return &r.Tenant }),
	col("id", read, func(r *thread.Thread) any { return &r.ID }),
	col("state", read, func(r *thread.Thread) any { return &r.State }),
	col("bytes", read, func(r *thread.Thread) any { return &r.Bytes }),
	col("files", read, func(r *thread.Thread) any { return &r.Files }),
	col("created_at", read, func(r *thread.Thread) any { return timeAt(&r.CreatedAt) }),
	col("updated_at", read, func(r *thread.Thread) any { return zeroTimeAt(&r.UpdatedAt) }),
	col("expires_at", read, func(r *thread.Thread) any { return maybeTimeAt(&r.ExpiresAt) }),
)

func scanThread(s scanner) (*thread.Thread, error) {
	t := &thread.Thread{}
	return t, threadTable.scan(s, t)
}

func (s *threads) Thread(ctx context.Context, tenant, id string) (*thread.Thread, error) {
	t, err := scanThread(s.db.read.row(ctx, `SELECT `+threadTable.selected+` FROM threads WHERE tenant = ? AND id = ? AND updated_at IS NOT NULL`, tenant, id))
	return t, s.db.read.found("get a thread", err, thread.ErrNotFound)
}

func (s *threads) Threads(ctx context.Context, f thread.Filter) ([]*thread.Thread, string, error) {
	if f.Limit < 1 || f.Limit > maxPage {
		return nil, "", fault.New(fault.Invalid, "limit must be between 1 and %d", maxPage)
	}
	after := ""
	if f.Cursor != "" {
		p, err := decodeCursor(s.db.seal, threadList(f.Tenant), f.Cursor)
		if err != nil {
			return nil, "", err
		}
		after = p.id
	}
	// A prefix is a range of ids, which have no character above 'z'.
	rows, err := s.db.read.rows(ctx, `SELECT `+threadTable.selected+` FROM threads
		WHERE tenant = ? AND id >= ? AND id < ? AND id > ? AND updated_at IS NOT NULL ORDER BY id LIMIT ?`,
		f.Tenant, f.Prefix, f.Prefix+"{", after, f.Limit+1)
	page, err := collect(rows, err, scanThread)
	if err != nil {
		return nil, "", s.db.read.wrap("list threads", err)
	}
	if len(page) <= f.Limit {
		return page, "", nil
	}
	page = page[:f.Limit]
	return page, encodeCursor(s.db.seal, threadList(f.Tenant), place{id: page[len(page)-1].ID}), nil
}

func threadList(tenant string) string { return "threads/" + tenant }

// threadLock keeps admissions and edits of one thread apart.
func threadLock(tenant, id string) int64 { return lockOf("thread", tenant+"/"+id) }

// transact runs do while no execution with the thread is admitted and no edit begins.
func (s *threads) transact(ctx context.Context, step, tenant, id string, do func(t *tx) error) error {
	err := s.db.write.transact(ctx, func(t *tx) error {
		if t.pool.postgres {
			if _, err := t.exec(ctx, `SELECT pg_advisory_xact_lock(?)`, threadLock(tenant, id)); err != nil {
				return err
			}
		}
		return do(t)
	})
	return s.db.write.wrap(step, err)
}

// threadUse says in which state a thread is, whether it was ever saved, and
// whether it is in use. No other use may begin meanwhile, but an execution
// may end: its end is looked for first, so that the state is not the one before.
func threadUse(ctx context.Context, q querier, tenant, id string) (state string, known, busy bool, err error) {
	var leased, running bool
	err = q.row(ctx, `SELECT EXISTS (SELECT 1 FROM executions WHERE tenant = ? AND thread = ? AND thread <> '' AND status = 'running')`, tenant, id).Scan(&running)
	if err != nil {
		return "", false, false, err
	}
	err = q.row(ctx, `SELECT state, updated_at IS NOT NULL, lease <> '' AND lease_until > atoll_now() FROM threads WHERE tenant = ? AND id = ?`, tenant, id).
		Scan(&state, &known, &leased)
	if err == sql.ErrNoRows {
		err = nil
	}
	return state, known, leased || running, err
}

// threadRoom refuses a new thread beyond most. One that an edit is about to make counts,
// so that edits at the same time do not make more together.
func threadRoom(ctx context.Context, q querier, tenant string, most int) (refusal, err error) {
	if most <= 0 {
		return nil, nil
	}
	var n int
	if err := q.row(ctx, `SELECT count(*) FROM (SELECT 1 FROM threads
		WHERE tenant = ? AND (updated_at IS NOT NULL OR lease <> '' AND lease_until > atoll_now()) LIMIT ?) AS few`, tenant, most).Scan(&n); err != nil {
		return nil, err
	}
	if n >= most {
		return thread.TooMany(most), nil
	}
	return nil, nil
}

func (s *threads) Lease(ctx context.Context, tenant, id, token string, d time.Duration, most int) (*thread.Thread, error) {
	var leased *thread.Thread
	err := s.transact(ctx, "lease a thread", tenant, id, func(t *tx) error {
		_, known, busy, err := threadUse(ctx, t, tenant, id)
		if err != nil {
			return err
		}
		if busy {
			return thread.InUse(id)
		}
		if !known {
			if refusal, err := threadRoom(ctx, t, tenant, most); err != nil || refusal != nil {
				return errors.Join(err, refusal)
			}
		}
		leased, err = scanThread(t.row(ctx, `INSERT INTO threads (tenant, id, state, bytes, files, created_at, lease, lease_until)
			VALUES (?, ?, '', 0, 0, atoll_now(), ?, atoll_now() + ?)
			ON CONFLICT (tenant, id) DO UPDATE SET lease = excluded.lease, lease_until = excluded.lease_until RETURNING `+threadTable.selected,
			tenant, id, token, d.Microseconds()))
		return err
	})
	return leased, err
}

// held is a condition of rows that a lease holds: tenant, id and token.
const held = ` WHERE tenant = ? AND id = ? AND lease = ? AND lease_until > atoll_now()`

func (s *threads) Extend(ctx context.Context, tenant, id, token string, d time.Duration) error {
	n, err := s.db.write.exec(ctx, `UPDATE threads SET lease_until = atoll_now() + ?`+held, d.Microseconds(), tenant, id, token)
	if err == nil && n == 0 {
		return thread.ErrLeaseLost
	}
	return s.db.write.wrap("extend a lease", err)
}

func (s *threads) Commit(ctx context.Context, tenant, id, token string, state execution.ThreadState) error {
	return s.transact(ctx, "save a thread", tenant, id, func(t *tx) error {
		n, err := t.exec(ctx, `UPDATE threads SET state = ?, bytes = ?, files = ?, updated_at = atoll_now(), lease = '', lease_until = 0`+held,
			state.State, state.Bytes, state.Files, tenant, id, token)
		if err != nil {
			return err
		}
		if n == 0 {
			return thread.ErrLeaseLost
		}
		return litter(ctx, t, tenant)
	})
}

func (s *threads) Release(ctx context.Context, tenant, id, token string) error {
	return s.transact(ctx, "release a thread", tenant, id, func(t *tx) error {
		if _, err := t.exec(ctx, `DELETE FROM threads WHERE tenant = ? AND id = ? AND lease = ? AND updated_at IS NULL`, tenant, id, token); err != nil {
			return err
		}
		if _, err := t.exec(ctx, `UPDATE threads SET lease = '', lease_until = 0 WHERE tenant = ? AND id = ? AND lease = ?`, tenant, id, token); err != nil {
			return err
		}
		return litter(ctx, t, tenant)
	})
}

func (s *threads) SetExpiry(ctx context.Context, tenant, id string, at *time.Time) error {
	err := execOne(ctx, s.db.write, thread.ErrNotFound, `UPDATE threads SET expires_at = ? WHERE tenant = ? AND id = ? AND updated_at IS NOT NULL`, maybeMicros(at), tenant, id)
	return s.db.write.wrap("set a thread's expiry", err)
}

func (s *threads) DeleteThread(ctx context.Context, tenant, id string) error {
	return s.delete(ctx, tenant, id, func(*tx) (bool, error) { return true, nil })
}

// delete deletes a thread that is not in use, if really says so.
func (s *threads) delete(ctx context.Context, tenant, id string, really func(t *tx) (bool, error)) error {
	return s.transact(ctx, "delete a thread", tenant, id, func(t *tx) error {
		_, known, busy, err := threadUse(ctx, t, tenant, id)
		switch {
		case err != nil:
			return err
		case busy:
			return thread.InUse(id)
		case !known:
			return thread.ErrNotFound
		}
		if ok, err := really(t); err != nil || !ok {
			return err
		}
		if _, err := t.exec(ctx, `DELETE FROM threads WHERE tenant = ? AND id = ?`, tenant, id); err != nil {
			return err
		}
		return litter(ctx, t, tenant)
	})
}

// expired are threads whose own time has come, idle ones that have none and were
// saved before a time.
const (
	expired = ` expires_at IS NOT NULL AND expires_at <= atoll_now()`
	idle    = ` expires_at IS NULL AND updated_at < ?`
)

func (s *threads) ExpireThreads(ctx context.Context, keep time.Duration, most int) (int, error) {
	var before int64 // no thread is older
	if keep > 0 {
		now, err := s.db.read.clock(ctx, s.db.read)
		if err != nil {
			return 0, s.db.read.wrap("list expired threads", err)
		}
		before = micros(now.Add(-keep))
	}
	type key struct{ tenant, id string }
	rows, err := s.db.read.rows(ctx, `SELECT tenant, id FROM threads WHERE`+expired+` UNION ALL SELECT tenant, id FROM threads WHERE`+idle+` LIMIT ?`, before, most)
	old, err := collect(rows, err, func(sc scanner) (k key, err error) { return k, sc.Scan(&k.tenant, &k.id) })
	if err != nil {
		return 0, s.db.read.wrap("list expired threads", err)
	}
	n := 0
	for _, k := range old {
		err := s.delete(ctx, k.tenant, k.id, func(t *tx) (still bool, err error) { // it may have been used since
			err = t.row(ctx, `SELECT`+expired+` OR`+idle+` FROM threads WHERE tenant = ? AND id = ?`, before, k.tenant, k.id).Scan(&still)
			if still {
				n++
			}
			return still, err
		})
		if f, ok := errors.AsType[*fault.Error](err); ok && (f.Kind == fault.Conflict || f.Kind == fault.NotFound) {
			continue
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// litter notes that a tenant has, or may have, states that no record refers to.
func litter(ctx context.Context, q querier, tenant string) error {
	_, err := q.exec(ctx, litterQuery, tenant)
	return err
}

const litterQuery = `INSERT INTO thread_litter (tenant, last) VALUES (?, atoll_now()) ON CONFLICT (tenant) DO UPDATE SET last = excluded.last`

func (s *threads) TenantsWithGarbage(ctx context.Context) ([]string, error) {
	rows, err := s.db.read.rows(ctx, `SELECT tenant FROM thread_litter ORDER BY last`)
	all, err := collect(rows, err, func(sc scanner) (t string, err error) { return t, sc.Scan(&t) })
	return all, s.db.read.wrap("list tenants with litter", err)
}

func (s *threads) ReferencedStates(ctx context.Context, tenant string) ([]string, error) {
	rows, err := s.db.read.rows(ctx, `SELECT state FROM threads WHERE tenant = ? AND state <> ''`, tenant)
	all, err := collect(rows, err, func(sc scanner) (t string, err error) { return t, sc.Scan(&t) })
	return all, s.db.read.wrap("list states of threads", err)
}

func (s *threads) ClearGarbage(ctx context.Context, tenant string, age time.Duration) error {
	_, err := s.db.write.exec(ctx, `DELETE FROM thread_litter WHERE tenant = ? AND last < atoll_now() - ?`, tenant, age.Microseconds())
	return s.db.write.wrap("forget litter", err)
}
