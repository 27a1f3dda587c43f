package store

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
)

// errStale says that another process has sealed in between.
var errStale = errors.New("store: the tenant's last seal is another one by now")

// Seal reads and computes without holding anything that an append needs: only
// the seal and the places of its rows are written, in one short transaction.
// Seals of a tenant wait for each other, in this process by a mutex and among
// processes by an advisory lock; a seal's number can be given only once.
func (s *auditStore) Seal(ctx context.Context, tenant string, most int, seal func(last audit.Seal, rows []audit.Row) audit.Seal) (int, error) {
	unlock := s.db.seals.lock(tenant)
	defer unlock()
	n := 0
	err := s.sealing(ctx, tenant, func(read querier, write func(func(t *tx) error) error) error {
		last, err := lastSeal(ctx, read, tenant)
		if err != nil {
			return err
		}
		rows, err := read.rows(ctx, `SELECT `+auditTable.selected+` FROM audit_rows
			WHERE id IN (SELECT u.id FROM audit_unsealed u WHERE u.tenant = ? ORDER BY u.id LIMIT ?) ORDER BY id`, tenant, most)
		covered, err := collect(rows, err, scanAudit)
		if err != nil || len(covered) == 0 {
			return err
		}
		next := seal(last, covered)
		n = len(covered)
		return write(func(t *tx) error { return putSeal(ctx, t, tenant, last.Number+1, next, covered) })
	})
	if err != nil {
		return 0, s.db.write.wrap("seal audit rows", err)
	}
	return n, nil
}

// sealing gives do a consistent view and a way to write. PostgreSQL's appends
// do not wait for an open transaction, so that one holds all of it; SQLite's
// would.
func (s *auditStore) sealing(ctx context.Context, tenant string, do func(read querier, write func(func(t *tx) error) error) error) error {
	if !s.db.Postgres() {
		return do(s.db.read, func(put func(t *tx) error) error { return s.db.write.transact(ctx, put) })
	}
	return s.db.write.transact(ctx, func(t *tx) error {
		if _, err := t.exec(ctx, `SELECT pg_advisory_xact_lock(?)`, lockOf("seal", tenant)); err != nil {
			return err
		}
		return do(t, func(put func(t *tx) error) error { return put(t) })
	})
}

func lastSeal(ctx context.Context, q querier, tenant string) (audit.Seal, error) {
	seal, err := scanSeal(q.row(ctx, `SELECT `+sealColumns+` FROM audit_seals WHERE tenant = ? ORDER BY number DESC LIMIT 1`, tenant))
	if err == sql.ErrNoRows {
		return audit.Seal{}, nil
	}
	return seal, err
}

func putSeal(ctx context.Context, t *tx, tenant string, number int64, s audit.Seal, rows []audit.Row) error {
	if s.CreatedAt.IsZero() {
		now, err := t.pool.clock(ctx, t)
		if err != nil {
			return err
		}
		s.CreatedAt = now
	}
	if s.Tenant != tenant || s.Number != number || s.Rows != len(rows) {
		return fmt.Errorf("store: a seal of %d rows of %s with number %d was made for %d of %s with %d", s.Rows, s.Tenant, s.Number, len(rows), tenant, number)
	}
	if _, err := t.exec(ctx, `INSERT INTO audit_seals (tenant, number, row_count, previous, digests, expires, hash, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		tenant, number, s.Rows, s.Previous[:], packDigests(s.Digests), packTimes(s.Expires), s.Hash[:], micros(s.CreatedAt)); err != nil {
		if violates(err, unique) || violates(err, raised) {
			return errors.Join(errStale, err)
		}
		return err
	}
	members := make([]member, len(rows))
	for i, r := range rows {
		members[i] = member{ID: r.ID, Place: i, Expires: micros(r.CreatedAt.Add(r.Retention))}
	}
	list, err := json.Marshal(members)
	if err != nil {
		return err
	}
	listed := t.pool.listed()
	if _, err := t.exec(ctx, `INSERT INTO audit_members (id, tenant, number, place, expires_at) SELECT id, ?, ?, place, expires FROM `+listed,
		tenant, number, string(list)); err != nil {
		return err
	}
	_, err = t.exec(ctx, `DELETE FROM audit_unsealed WHERE tenant = ? AND id IN (SELECT id FROM `+listed+`)`, tenant, string(list))
	return err
}

// member is a row of a seal, on its way to the database in one list.
type member struct {
	ID      int64 `json:"id"`
	Place   int   `json:"place"`
	Expires int64 `json:"expires"`
}

// listed is a table of the members in a JSON list.
func (p *pool) listed() string {
	if p.postgres {
		return `json_to_recordset(?::json) AS listed (id bigint, place integer, expires bigint)`
	}
	return `(SELECT value ->> 'id' AS id, value ->> 'place' AS place, value ->> 'expires' AS expires FROM json_each(?)) AS listed`
}

const sealColumns = `tenant, number, row_count, previous, digests, expires, hash, created_at`

func scanSeal(sc scanner) (s audit.Seal, err error) {
	var previous, digests, expires, hash []byte
	var created int64
	if err := sc.Scan(&s.Tenant, &s.Number, &s.Rows, &previous, &digests, &expires, &hash, &created); err != nil {
		return s, err
	}
	copy(s.Previous[:], previous)
	copy(s.Hash[:], hash)
	s.CreatedAt = instant(created)
	s.Digests, s.Expires = unpackDigests(digests), unpackTimes(expires)
	return s, nil
}

// Seals reads a seal and its rows at a time and holds nothing in between.
func (s *auditStore) Seals(ctx context.Context, tenant string) iter.Seq2[audit.Covered, error] {
	return func(yield func(audit.Covered, error) bool) {
		for number := int64(0); ; {
			c, err := s.nextSeal(ctx, tenant, number)
			if err == sql.ErrNoRows {
				return
			}
			if err != nil {
				yield(audit.Covered{}, s.db.read.wrap("read seals", err))
				return
			}
			if !yield(c, nil) {
				return
			}
			number = c.Number
		}
	}
}

func (s *auditStore) nextSeal(ctx context.Context, tenant string, after int64) (c audit.Covered, err error) {
	if c.Seal, err = scanSeal(s.db.read.row(ctx, `SELECT `+sealColumns+` FROM audit_seals WHERE tenant = ? AND number > ? ORDER BY number LIMIT 1`, tenant, after)); err != nil {
		return c, err
	}
	c.Left = map[int]audit.Row{}
	rows, err := s.db.read.rows(ctx, `SELECT `+auditTable.of("r")+`, m.place FROM audit_members m JOIN audit_rows r ON r.id = m.id
		WHERE m.tenant = ? AND m.number = ?`, tenant, c.Number)
	_, err = collect(rows, err, func(sc scanner) (struct{}, error) {
		var r audit.Row
		var place int
		err := sc.Scan(append(auditTable.dest(&r), &place)...)
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
	return bytesOf(b)
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
