package sqldb

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// Querier runs queries: a Pool, a Tx or a Batch. Queries have ? for their parameters on both engines.
type Querier interface {
	Exec(ctx context.Context, query string, args ...any) (int64, error)
	Rows(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	Row(ctx context.Context, query string, args ...any) Scanner
	Dialect() *Pool
}

// Scanner reads the columns of a row. It is a *sql.Row, *sql.Rows or the refusal of a query.
type Scanner interface{ Scan(dest ...any) error }

type refused struct{ err error }

func (r refused) Scan(...any) error { return r.err }

// Pool is the connections to a database. It keeps the statements of SQLite prepared; pgx keeps those
// of PostgreSQL.
type Pool struct {
	DB       *sql.DB
	Postgres bool
	stmts    sync.Map // query → *sql.Stmt, or its text with $1 for PostgreSQL
	wanted   sync.Map // queries of transactions that are to be kept prepared
	changed  atomic.Pointer[func(id string)]
}

func newPool(db *sql.DB, postgres bool) *Pool { return &Pool{DB: db, Postgres: postgres} }

func (p *Pool) Dialect() *Pool { return p }

func (p *Pool) close() error { return p.DB.Close() } // with it its statements

// prepare returns a cached prepared statement. The cache never evicts, so pass only constant queries or
// few variants.
func (p *Pool) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	if s, ok := p.stmts.Load(query); ok {
		return s.(*sql.Stmt), nil
	}
	s, err := p.DB.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	if other, loaded := p.stmts.LoadOrStore(query, s); loaded {
		s.Close()
		return other.(*sql.Stmt), nil
	}
	return s, nil
}

// numbered returns a query with PostgreSQL's parameters.
func (p *Pool) numbered(query string) string {
	if s, ok := p.stmts.Load(query); ok {
		return s.(string)
	}
	s := number(query)
	p.stmts.Store(query, s)
	return s
}

func number(query string) string {
	var b strings.Builder
	n := 0
	for part := range strings.SplitSeq(query, "?") {
		if n > 0 {
			b.WriteByte('$')
			b.WriteString(strconv.Itoa(n))
		}
		b.WriteString(part)
		n++
	}
	return b.String()
}

func (p *Pool) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	if err := CheckText(args); err != nil {
		return 0, err
	}
	if p.Postgres {
		return affected(p.DB.ExecContext(ctx, p.numbered(query), args...))
	}
	s, err := p.prepare(ctx, query)
	if err != nil {
		return 0, err
	}
	return affected(s.ExecContext(ctx, args...))
}

func (p *Pool) Rows(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := CheckText(args); err != nil {
		return nil, err
	}
	if p.Postgres {
		return p.DB.QueryContext(ctx, p.numbered(query), args...)
	}
	s, err := p.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.QueryContext(ctx, args...)
}

func (p *Pool) Row(ctx context.Context, query string, args ...any) Scanner {
	if err := CheckText(args); err != nil {
		return refused{err}
	}
	if p.Postgres {
		return p.DB.QueryRowContext(ctx, p.numbered(query), args...)
	}
	s, err := p.prepare(ctx, query)
	if err != nil {
		return refused{err}
	}
	return s.QueryRowContext(ctx, args...)
}

// OnChange sets the function that gets each id of Tx.Changes after the transaction is committed.
func (p *Pool) OnChange(f func(id string)) { p.changed.Store(&f) }

func affected(r sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// Collect reads each row with scan, and closes rows. err is the error of the query.
func Collect[T any](rows *sql.Rows, err error, scan func(Scanner) (T, error)) ([]T, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}

// Select runs a query and reads each row with scan.
func Select[T any](ctx context.Context, q Querier, scan func(Scanner) (T, error), query string, args ...any) ([]T, error) {
	rows, err := q.Rows(ctx, query, args...)
	return Collect(rows, err, scan)
}

// Value reads the only column of a row.
func Value[T any](s Scanner) (T, error) {
	var v T
	err := s.Scan(&v)
	return v, err
}

// CheckText rejects strings that PostgreSQL cannot store, on both engines: the error is a
// fault.Invalid.
func CheckText(args []any) error {
	for _, a := range args {
		if s, ok := a.(string); ok {
			if strings.IndexByte(s, 0) >= 0 {
				return fault.New(fault.Invalid, "text must not contain a NUL character")
			}
			if !utf8.ValidString(s) {
				return fault.New(fault.Invalid, "text must be valid UTF-8")
			}
		}
	}
	return nil
}

// Clock reads the database's clock with a query of q. For SQLite, it reads the clock of this process.
func (p *Pool) Clock(ctx context.Context, q Querier) (time.Time, error) {
	if !p.Postgres {
		return time.UnixMicro(time.Now().UnixMicro()).UTC(), nil
	}
	var us int64
	err := q.Row(ctx, `SELECT atoll_now()`).Scan(&us)
	return time.UnixMicro(us).UTC(), err
}

// LockOf returns the number of the advisory lock for a name of a kind.
func LockOf(kind, name string) int64 {
	sum := sha256.Sum256([]byte(kind + "/" + name))
	return int64(binary.BigEndian.Uint64(sum[:]))
}

// Exec runs a statement. Its error names the step, see Pool.Wrap.
func (db *DB) Exec(ctx context.Context, step, query string, args ...any) error {
	_, err := db.Write.Exec(ctx, query, args...)
	return db.Write.Wrap(step, err)
}

// ExecOne runs a statement that changes one row. It returns missing if the row does not exist.
func ExecOne(ctx context.Context, q Querier, missing error, query string, args ...any) error {
	n, err := q.Exec(ctx, query, args...)
	if err == nil && n == 0 {
		return missing
	}
	return err
}

// TenantsIn lists the tenants of a table whose primary key begins with tenant:
// one step of the index for each, however many rows they have.
func (p *Pool) TenantsIn(ctx context.Context, table string) ([]string, error) {
	return Select(ctx, p, Value[string], `WITH RECURSIVE found (tenant) AS (
			SELECT min(tenant) FROM `+table+`
			UNION ALL
			SELECT (SELECT min(x.tenant) FROM `+table+` x WHERE x.tenant > f.tenant) FROM found f WHERE f.tenant IS NOT NULL
		) SELECT tenant FROM found WHERE tenant IS NOT NULL`)
}

// Micros returns a time as it is stored, in microseconds since 1970.
func Micros(t time.Time) int64 { return t.UnixMicro() }

// MaybeMicros is Micros for times that may be missing: it returns nil for nil and for the zero time.
func MaybeMicros(t *time.Time) any {
	if t == nil || t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// Instant returns a time that Micros has made.
func Instant(us int64) time.Time { return time.UnixMicro(us).UTC() }

// ForUpdate ends a SELECT that locks its rows until the end of the transaction. Other transactions
// can still add rows that refer to them.
func (p *Pool) ForUpdate() string {
	if p.Postgres {
		return ` FOR NO KEY UPDATE`
	}
	return ``
}

// LockRow is ForUpdate that also delays new rows which refer to the locked ones.
func (p *Pool) LockRow() string {
	if p.Postgres {
		return ` FOR UPDATE`
	}
	return ``
}
