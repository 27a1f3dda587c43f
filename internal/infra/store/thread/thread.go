// Package thread stores threads and the leases of edits.
package thread

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/thread"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

// Store implements thread.Records.
type Store struct{ db *sqldb.DB }

var _ thread.Records = (*Store)(nil)

// New returns the store in a database.
func New(db *sqldb.DB) *Store { return &Store{db} }

// threadTable is the table of threads. Its rows are made and changed piece by
// piece, by leases and by the ends of executions.
var threadTable = sqldb.NewTable("threads",
	sqldb.Col("tenant", sqldb.Read, func(r *thread.Thread) any { return &r.Tenant }),
	sqldb.Col("id", sqldb.Read, func(r *thread.Thread) any { return &r.ID }),
	sqldb.Col("state", sqldb.Read, func(r *thread.Thread) any { return &r.State }),
	sqldb.Col("bytes", sqldb.Read, func(r *thread.Thread) any { return &r.Bytes }),
	sqldb.Col("files", sqldb.Read, func(r *thread.Thread) any { return &r.Files }),
	sqldb.Col("created_at", sqldb.Read, func(r *thread.Thread) any { return sqldb.TimeAt(&r.CreatedAt) }),
	sqldb.Col("updated_at", sqldb.Read, func(r *thread.Thread) any { return sqldb.ZeroTimeAt(&r.UpdatedAt) }),
	sqldb.Col("expires_at", sqldb.Read, func(r *thread.Thread) any { return sqldb.MaybeTimeAt(&r.ExpiresAt) }),
)

func (s *Store) Thread(ctx context.Context, tenant, id string) (*thread.Thread, error) {
	t, err := threadTable.Pointer(s.db.Read.Row(ctx, `SELECT `+threadTable.Selected+` FROM threads WHERE tenant = ? AND id = ? AND updated_at IS NOT NULL`, tenant, id))
	return t, s.db.Read.Found("get a thread", err, thread.ErrNotFound)
}

func (s *Store) Threads(ctx context.Context, f thread.Filter) ([]*thread.Thread, string, error) {
	if f.Limit < 1 || f.Limit > sqldb.MaxPage {
		return nil, "", fault.New(fault.Invalid, "limit must be between 1 and %d", sqldb.MaxPage)
	}
	after := ""
	if f.Cursor != "" {
		p, err := sqldb.DecodeCursor(s.db.Seal, threadList(f.Tenant), f.Cursor)
		if err != nil {
			return nil, "", err
		}
		after = p.ID
	}
	// A prefix is a range of ids, which have no character above 'z'.
	page, err := sqldb.Select(ctx, s.db.Read, threadTable.Pointer, `SELECT `+threadTable.Selected+` FROM threads
		WHERE tenant = ? AND id >= ? AND id < ? AND id > ? AND updated_at IS NOT NULL ORDER BY id LIMIT ?`,
		f.Tenant, f.Prefix, f.Prefix+"{", after, f.Limit+1)
	if err != nil {
		return nil, "", s.db.Read.Wrap("list threads", err)
	}
	if len(page) <= f.Limit {
		return page, "", nil
	}
	page = page[:f.Limit]
	return page, sqldb.EncodeCursor(s.db.Seal, threadList(f.Tenant), sqldb.Place{ID: page[len(page)-1].ID}), nil
}

func threadList(tenant string) string { return "threads/" + tenant }

// ThreadLock is the lock that admissions and edits of a thread take.
func ThreadLock(tenant, id string) int64 { return sqldb.LockOf("thread", tenant+"/"+id) }

// transact runs do while no execution with the thread is admitted and no edit begins.
func (s *Store) transact(ctx context.Context, step, tenant, id string, do func(t *sqldb.Tx) error) error {
	err := s.db.Write.TransactLocked(ctx, "thread", tenant+"/"+id, do)
	return s.db.Write.Wrap(step, err)
}

// Use returns the state of a thread, and whether it was saved before and is in use. The caller holds
// ThreadLock, so that no other use begins. An execution may still end: Use looks for it first, and so
// never returns the state from before its end.
func Use(ctx context.Context, q sqldb.Querier, tenant, id string) (state string, known, busy bool, err error) {
	var leased, running bool
	err = q.Row(ctx, `SELECT EXISTS (SELECT 1 FROM executions WHERE tenant = ? AND thread = ? AND thread <> '' AND status = 'running')`, tenant, id).Scan(&running)
	if err != nil {
		return "", false, false, err
	}
	err = q.Row(ctx, `SELECT state, updated_at IS NOT NULL, lease <> '' AND lease_until > atoll_now() FROM threads WHERE tenant = ? AND id = ?`, tenant, id).
		Scan(&state, &known, &leased)
	if err == sql.ErrNoRows {
		err = nil
	}
	return state, known, leased || running, err
}

// Room refuses a new thread beyond most. It counts threads that edits are making, so that concurrent
// edits cannot exceed the limit together.
func Room(ctx context.Context, q sqldb.Querier, tenant string, most int) (refusal, err error) {
	if most <= 0 {
		return nil, nil
	}
	var n int
	if err := q.Row(ctx, `SELECT count(*) FROM (SELECT 1 FROM threads
		WHERE tenant = ? AND (updated_at IS NOT NULL OR lease <> '' AND lease_until > atoll_now()) LIMIT ?) AS few`, tenant, most).Scan(&n); err != nil {
		return nil, err
	}
	if n >= most {
		return thread.TooMany(most), nil
	}
	return nil, nil
}

func (s *Store) Lease(ctx context.Context, tenant, id, token string, d time.Duration, most int) (*thread.Thread, error) {
	var leased *thread.Thread
	err := s.transact(ctx, "lease a thread", tenant, id, func(t *sqldb.Tx) error {
		_, known, busy, err := Use(ctx, t, tenant, id)
		if err != nil {
			return err
		}
		if busy {
			return thread.InUse(id)
		}
		if !known {
			if refusal, err := Room(ctx, t, tenant, most); err != nil || refusal != nil {
				return errors.Join(err, refusal)
			}
		}
		leased, err = threadTable.Pointer(t.Row(ctx, `INSERT INTO threads (tenant, id, state, bytes, files, created_at, lease, lease_until)
			VALUES (?, ?, '', 0, 0, atoll_now(), ?, atoll_now() + ?)
			ON CONFLICT (tenant, id) DO UPDATE SET lease = excluded.lease, lease_until = excluded.lease_until RETURNING `+threadTable.Selected,
			tenant, id, token, d.Microseconds()))
		return err
	})
	return leased, err
}

// held is a condition of rows that a lease holds: tenant, id and token.
const held = ` WHERE tenant = ? AND id = ? AND lease = ? AND lease_until > atoll_now()`

func (s *Store) Extend(ctx context.Context, tenant, id, token string, d time.Duration) error {
	n, err := s.db.Write.Exec(ctx, `UPDATE threads SET lease_until = atoll_now() + ?`+held, d.Microseconds(), tenant, id, token)
	if err == nil && n == 0 {
		return thread.ErrLeaseLost
	}
	return s.db.Write.Wrap("extend a lease", err)
}

func (s *Store) Commit(ctx context.Context, tenant, id, token string, state execution.ThreadState) error {
	return s.transact(ctx, "save a thread", tenant, id, func(t *sqldb.Tx) error {
		n, err := t.Exec(ctx, `UPDATE threads SET state = ?, bytes = ?, files = ?, updated_at = atoll_now(), lease = '', lease_until = 0`+held,
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

func (s *Store) Release(ctx context.Context, tenant, id, token string) error {
	return s.transact(ctx, "release a thread", tenant, id, func(t *sqldb.Tx) error {
		if _, err := t.Exec(ctx, `DELETE FROM threads WHERE tenant = ? AND id = ? AND lease = ? AND updated_at IS NULL`, tenant, id, token); err != nil {
			return err
		}
		if _, err := t.Exec(ctx, `UPDATE threads SET lease = '', lease_until = 0 WHERE tenant = ? AND id = ? AND lease = ?`, tenant, id, token); err != nil {
			return err
		}
		return litter(ctx, t, tenant)
	})
}

func (s *Store) SetExpiry(ctx context.Context, tenant, id string, at *time.Time) error {
	err := sqldb.ExecOne(ctx, s.db.Write, thread.ErrNotFound, `UPDATE threads SET expires_at = ? WHERE tenant = ? AND id = ? AND updated_at IS NOT NULL`, sqldb.MaybeMicros(at), tenant, id)
	return s.db.Write.Wrap("set a thread's expiry", err)
}

func (s *Store) DeleteThread(ctx context.Context, tenant, id string) error {
	return s.delete(ctx, tenant, id, func(*sqldb.Tx) (bool, error) { return true, nil })
}

// delete deletes a thread that is not in use, if really says so.
func (s *Store) delete(ctx context.Context, tenant, id string, really func(t *sqldb.Tx) (bool, error)) error {
	return s.transact(ctx, "delete a thread", tenant, id, func(t *sqldb.Tx) error {
		_, known, busy, err := Use(ctx, t, tenant, id)
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
		if _, err := t.Exec(ctx, `DELETE FROM threads WHERE tenant = ? AND id = ?`, tenant, id); err != nil {
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

// key names a thread.
type key struct{ tenant, id string }

var keyView = sqldb.NewView(
	sqldb.Col("tenant", sqldb.Read, func(k *key) any { return &k.tenant }),
	sqldb.Col("id", sqldb.Read, func(k *key) any { return &k.id }),
)

func (s *Store) ExpireThreads(ctx context.Context, keep time.Duration, most int) (int, error) {
	var before int64 // no thread is older
	if keep > 0 {
		now, err := s.db.Read.Clock(ctx, s.db.Read)
		if err != nil {
			return 0, s.db.Read.Wrap("list expired threads", err)
		}
		before = sqldb.Micros(now.Add(-keep))
	}
	old, err := sqldb.Select(ctx, s.db.Read, keyView.Row, `SELECT `+keyView.Selected+` FROM threads WHERE`+expired+` UNION ALL SELECT `+keyView.Selected+` FROM threads WHERE`+idle+` LIMIT ?`, before, most)
	if err != nil {
		return 0, s.db.Read.Wrap("list expired threads", err)
	}
	n := 0
	for _, k := range old {
		err := s.delete(ctx, k.tenant, k.id, func(t *sqldb.Tx) (still bool, err error) { // it may have been used since
			err = t.Row(ctx, `SELECT`+expired+` OR`+idle+` FROM threads WHERE tenant = ? AND id = ?`, before, k.tenant, k.id).Scan(&still)
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
func litter(ctx context.Context, q sqldb.Querier, tenant string) error {
	_, err := q.Exec(ctx, GarbageQuery, tenant)
	return err
}

// GarbageQuery notes that a tenant may have states that no record refers to.
const GarbageQuery = `INSERT INTO thread_litter (tenant, last) VALUES (?, atoll_now()) ON CONFLICT (tenant) DO UPDATE SET last = excluded.last`

func (s *Store) TenantsWithGarbage(ctx context.Context) ([]string, error) {
	all, err := sqldb.Select(ctx, s.db.Read, sqldb.Value[string], `SELECT tenant FROM thread_litter ORDER BY last`)
	return all, s.db.Read.Wrap("list tenants with litter", err)
}

func (s *Store) ReferencedStates(ctx context.Context, tenant string) ([]string, error) {
	all, err := sqldb.Select(ctx, s.db.Read, sqldb.Value[string], `SELECT state FROM threads WHERE tenant = ? AND state <> ''`, tenant)
	return all, s.db.Read.Wrap("list states of threads", err)
}

func (s *Store) ClearGarbage(ctx context.Context, tenant string, age time.Duration) error {
	return s.db.Exec(ctx, "forget litter", `DELETE FROM thread_litter WHERE tenant = ? AND last < atoll_now() - ?`, tenant, age.Microseconds())
}
