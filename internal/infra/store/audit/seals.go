package audit

import (
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

// errStale says that another process has sealed in between.
var errStale = errors.New("store: the tenant's last seal is another one by now")

// Seal reads and computes without holding anything that an append needs: only
// the seal and the places of its rows are written, in one short transaction.
// Seals of a tenant wait for each other, in this process by a mutex and among
// processes by an advisory lock; a seal's number can be given only once.
func (s *Store) Seal(ctx context.Context, tenant string, most int, seal func(last audit.Seal, rows []audit.Row) audit.Seal) (int, error) {
	unlock := s.seals.lock(tenant)
	defer unlock()
	n := 0
	err := s.sealing(ctx, tenant, func(read sqldb.Querier, write func(func(t *sqldb.Tx) error) error) error {
		last, err := lastSeal(ctx, read, tenant)
		if err != nil {
			return err
		}
		covered, err := sqldb.Select(ctx, read, Table.Row, `SELECT `+Table.Selected+` FROM audit_rows
			WHERE id IN (SELECT u.id FROM audit_unsealed u WHERE u.tenant = ? ORDER BY u.id LIMIT ?) ORDER BY id`, tenant, most)
		if err != nil || len(covered) == 0 {
			return err
		}
		next := seal(last, covered)
		n = len(covered)
		return write(func(t *sqldb.Tx) error { return putSeal(ctx, t, tenant, last.Number+1, next, covered) })
	})
	if err != nil {
		return 0, s.db.Write.Wrap("seal audit rows", err)
	}
	return n, nil
}

// sealing gives do a consistent view and a way to write. PostgreSQL's appends
// do not wait for an open transaction, so that one holds all of it; SQLite's
// would.
func (s *Store) sealing(ctx context.Context, tenant string, do func(read sqldb.Querier, write func(func(t *sqldb.Tx) error) error) error) error {
	if !s.db.Write.Postgres {
		return do(s.db.Read, func(put func(t *sqldb.Tx) error) error { return s.db.Write.Transact(ctx, put) })
	}
	return s.db.Write.TransactLocked(ctx, "seal", tenant, func(t *sqldb.Tx) error {
		return do(t, func(put func(t *sqldb.Tx) error) error { return put(t) })
	})
}

func lastSeal(ctx context.Context, q sqldb.Querier, tenant string) (audit.Seal, error) {
	seal, err := sealTable.Row(q.Row(ctx, `SELECT `+sealTable.Selected+` FROM audit_seals WHERE tenant = ? ORDER BY number DESC LIMIT 1`, tenant))
	if err == sql.ErrNoRows {
		return audit.Seal{}, nil
	}
	return seal, err
}

func putSeal(ctx context.Context, t *sqldb.Tx, tenant string, number int64, s audit.Seal, rows []audit.Row) error {
	if s.CreatedAt.IsZero() {
		now, err := t.Clock(ctx)
		if err != nil {
			return err
		}
		s.CreatedAt = now
	}
	if s.Tenant != tenant || s.Number != number || s.Rows != len(rows) {
		return fmt.Errorf("store: a seal of %d rows of %s with number %d was made for %d of %s with %d", s.Rows, s.Tenant, s.Number, len(rows), tenant, number)
	}
	if err := sealTable.Add(ctx, t, &s); err != nil {
		if sqldb.Violates(err, sqldb.Unique) || sqldb.Violates(err, sqldb.Raised) {
			return errors.Join(errStale, err)
		}
		return err
	}
	members := make([]member, len(rows))
	for i, r := range rows {
		members[i] = member{ID: r.ID, Place: i, Expires: sqldb.Micros(r.CreatedAt.Add(r.Retention))}
	}
	list, err := json.Marshal(members)
	if err != nil {
		return err
	}
	table := listed(t.Pool)
	if _, err := t.Exec(ctx, `INSERT INTO audit_members (id, tenant, number, place, expires_at) SELECT id, ?, ?, place, expires FROM `+table,
		tenant, number, string(list)); err != nil {
		return err
	}
	_, err = t.Exec(ctx, `DELETE FROM audit_unsealed WHERE tenant = ? AND id IN (SELECT id FROM `+table+`)`, tenant, string(list))
	return err
}

// member is a row of a seal, on its way to the database in one list.
type member struct {
	ID      int64 `json:"id"`
	Place   int   `json:"place"`
	Expires int64 `json:"expires"`
}

// listed is a table of the members in a JSON list.
func listed(p *sqldb.Pool) string {
	if p.Postgres {
		return `json_to_recordset(?::json) AS listed (id bigint, place integer, expires bigint)`
	}
	return `(SELECT value ->> 'id' AS id, value ->> 'place' AS place, value ->> 'expires' AS expires FROM json_each(?)) AS listed`
}

var sealTable = sqldb.NewTable("audit_seals",
	sqldb.Col("tenant", sqldb.Fixed, func(s *audit.Seal) any { return &s.Tenant }),
	sqldb.Col("number", sqldb.Fixed, func(s *audit.Seal) any { return &s.Number }),
	sqldb.Col("row_count", sqldb.Fixed, func(s *audit.Seal) any { return &s.Rows }),
	sqldb.Col("previous", sqldb.Fixed, func(s *audit.Seal) any { return sqldb.DigestAt(&s.Previous) }),
	sqldb.Col("digests", sqldb.Fixed, func(s *audit.Seal) any { return digestsAt(&s.Digests) }),
	sqldb.Col("expires", sqldb.Fixed, func(s *audit.Seal) any { return timesAt(&s.Expires) }),
	sqldb.Col("hash", sqldb.Fixed, func(s *audit.Seal) any { return sqldb.DigestAt(&s.Hash) }),
	sqldb.Col("created_at", sqldb.Fixed, func(s *audit.Seal) any { return sqldb.TimeAt(&s.CreatedAt) }),
)

// digestsAt is a list of digests, each behind its length.
func digestsAt(d *[][]byte) sqldb.Codec {
	return sqldb.Coded(d, func(b []byte) ([][]byte, error) { return unpackDigests(b), nil }, func(d [][]byte) (any, error) { return packDigests(d), nil })
}

// timesAt is a list of times, in 8 bytes each.
func timesAt(t *[]int64) sqldb.Codec {
	return sqldb.Coded(t, func(b []byte) ([]int64, error) { return unpackTimes(b), nil }, func(t []int64) (any, error) { return packTimes(t), nil })
}

// Seals reads a seal and its rows at a time and holds nothing in between.
func (s *Store) Seals(ctx context.Context, tenant string) iter.Seq2[audit.Covered, error] {
	return func(yield func(audit.Covered, error) bool) {
		for number := int64(0); ; {
			c, err := s.nextSeal(ctx, tenant, number)
			if err == sql.ErrNoRows {
				return
			}
			if err != nil {
				yield(audit.Covered{}, s.db.Read.Wrap("read seals", err))
				return
			}
			if !yield(c, nil) {
				return
			}
			number = c.Number
		}
	}
}

func (s *Store) nextSeal(ctx context.Context, tenant string, after int64) (c audit.Covered, err error) {
	if c.Seal, err = sealTable.Row(s.db.Read.Row(ctx, `SELECT `+sealTable.Selected+` FROM audit_seals WHERE tenant = ? AND number > ? ORDER BY number LIMIT 1`, tenant, after)); err != nil {
		return c, err
	}
	c.Left = map[int]audit.Row{}
	rows, err := s.db.Read.Rows(ctx, `SELECT `+Table.Of("r")+`, m.place FROM audit_members m JOIN audit_rows r ON r.id = m.id
		WHERE m.tenant = ? AND m.number = ?`, tenant, c.Number)
	_, err = sqldb.Collect(rows, err, func(sc sqldb.Scanner) (struct{}, error) {
		var r audit.Row
		var place int
		err := sc.Scan(append(Table.Dest(&r), &place)...)
		c.Left[place] = r
		return struct{}{}, err
	})
	return c, err
}

// packDigests writes each digest behind its length.
func packDigests(digests [][]byte) []byte {
	var b []byte
	for _, d := range digests {
		b = binary.AppendUvarint(b, uint64(len(d)))
		b = append(b, d...)
	}
	return sqldb.BytesOf(b)
}

// unpackDigests reads as far as it can: who checks a seal sees what is wrong
// with one that was tampered with.
func unpackDigests(b []byte) [][]byte {
	var digests [][]byte
	for len(b) > 0 {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return digests
		}
		digests = append(digests, b[n:n+int(size)])
		b = b[n+int(size):]
	}
	return digests
}

func packTimes(times []int64) []byte {
	b := make([]byte, 0, 8*len(times))
	for _, t := range times {
		b = binary.BigEndian.AppendUint64(b, uint64(t))
	}
	return b
}

func unpackTimes(b []byte) []int64 {
	times := make([]int64, 0, len(b)/8)
	for ; len(b) >= 8; b = b[8:] {
		times = append(times, int64(binary.BigEndian.Uint64(b)))
	}
	return times
}

// keyedMutex is a mutex for each name.
type keyedMutex struct {
	mu    sync.Mutex
	locks map[string]*keyedLock // guarded by mu
}

type keyedLock struct {
	sync.Mutex
	users int // guarded by keyedMutex.mu
}

func (k *keyedMutex) lock(name string) (unlock func()) {
	k.mu.Lock()
	l := k.locks[name]
	if l == nil {
		if k.locks == nil {
			k.locks = map[string]*keyedLock{}
		}
		l = &keyedLock{}
		k.locks[name] = l
	}
	l.users++
	k.mu.Unlock()
	l.Lock()
	return func() {
		l.Unlock()
		k.mu.Lock()
		defer k.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(k.locks, name)
		}
	}
}
