package store

import (
	"context"
	"database/sql"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// querier is what queries run on: a pool or a transaction. Queries have ? for
// their parameters, whatever the engine.
type querier interface {
	exec(ctx context.Context, query string, args ...any) (int64, error)
	rows(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	row(ctx context.Context, query string, args ...any) scanner
	dialect() *pool
}

// scanner is a *sql.Row, or the refusal of a query.
type scanner interface{ Scan(dest ...any) error }

type refused struct{ err error }

func (r refused) Scan(...any) error { return r.err }

// pool is a database with its engine. It keeps the statements of SQLite
// prepared; pgx does so by itself.
type pool struct {
	db       *sql.DB
	postgres bool
	stmts    sync.Map // query → *sql.Stmt, or its text with $1 for PostgreSQL
	wanted   sync.Map // queries of transactions that are to be kept prepared
	changed  atomic.Pointer[func(id string)]
}

func newPool(db *sql.DB, postgres bool) *pool { return &pool{db: db, postgres: postgres} }

func (p *pool) dialect() *pool { return p }

func (p *pool) close() error { return p.db.Close() } // with it its statements

// prepare returns a statement that is kept. Only queries that are constants, or
// of which there are few, may come here.
func (p *pool) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	if s, ok := p.stmts.Load(query); ok {
		return s.(*sql.Stmt), nil
	}
	s, err := p.db.PrepareContext(ctx, query)
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
func (p *pool) numbered(query string) string {
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

func (p *pool) exec(ctx context.Context, query string, args ...any) (int64, error) {
	if err := checkText(args); err != nil {
		return 0, err
	}
	if p.postgres {
		return affected(p.db.ExecContext(ctx, p.numbered(query), args...))
	}
	s, err := p.prepare(ctx, query)
	if err != nil {
		return 0, err
	}
	return affected(s.ExecContext(ctx, args...))
}

func (p *pool) rows(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := checkText(args); err != nil {
		return nil, err
	}
	if p.postgres {
		return p.db.QueryContext(ctx, p.numbered(query), args...)
	}
	s, err := p.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.QueryContext(ctx, args...)
}

func (p *pool) row(ctx context.Context, query string, args ...any) scanner {
	if err := checkText(args); err != nil {
		return refused{err}
	}
	if p.postgres {
		return p.db.QueryRowContext(ctx, p.numbered(query), args...)
	}
	s, err := p.prepare(ctx, query)
	if err != nil {
		return refused{err}
	}
	return s.QueryRowContext(ctx, args...)
}

// tx is a transaction of a pool.
type tx struct {
	*sql.Tx
	pool    *pool
	changed []string // ids of sessions and runs, see DB.OnChange
}

// changes notes that the transaction changes a session, or ends a run.
func (t *tx) changes(id string) { t.changed = append(t.changed, id) }

// commit commits the transaction, and announces its changes.
func (t *tx) commit() error {
	if err := t.Commit(); err != nil {
		return err
	}
	if announce := t.pool.changed.Load(); announce != nil {
		slices.Sort(t.changed)
		for _, id := range slices.Compact(t.changed) {
			(*announce)(id)
		}
	}
	return nil
}

func (t *tx) dialect() *pool { return t.pool }

func (t *tx) stmt(ctx context.Context, query string) (*sql.Stmt, error) {
	// The pool's one connection is ours; keeping a statement has to wait until
	// the next transaction begins.
	if s, ok := t.pool.stmts.Load(query); ok {
		return t.StmtContext(ctx, s.(*sql.Stmt)), nil
	}
	t.pool.wanted.Store(query, nil)
	return t.PrepareContext(ctx, query) // closed with the transaction
}

func (t *tx) exec(ctx context.Context, query string, args ...any) (int64, error) {
	if err := checkText(args); err != nil {
		return 0, err
	}
	if t.pool.postgres {
		return affected(t.ExecContext(ctx, t.pool.numbered(query), args...))
	}
	s, err := t.stmt(ctx, query)
	if err != nil {
		return 0, err
	}
	return affected(s.ExecContext(ctx, args...))
}

func (t *tx) rows(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := checkText(args); err != nil {
		return nil, err
	}
	if t.pool.postgres {
		return t.QueryContext(ctx, t.pool.numbered(query), args...)
	}
	s, err := t.stmt(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.QueryContext(ctx, args...)
}

func (t *tx) row(ctx context.Context, query string, args ...any) scanner {
	if err := checkText(args); err != nil {
		return refused{err}
	}
	if t.pool.postgres {
		return t.QueryRowContext(ctx, t.pool.numbered(query), args...)
	}
	s, err := t.stmt(ctx, query)
	if err != nil {
		return refused{err}
	}
	return s.QueryRowContext(ctx, args...)
}

func affected(r sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// begin starts a transaction. A connection that turns out to be dead before
// anything was done on it is replaced once.
func (p *pool) begin(ctx context.Context) (*tx, error) {
	for query := range p.wanted.Range {
		if _, err := p.prepare(ctx, query.(string)); err != nil {
			return nil, err
		}
		p.wanted.Delete(query)
	}
	t, err := p.db.BeginTx(ctx, nil)
	if err != nil && ctx.Err() == nil && unreachable(err) {
		t, err = p.db.BeginTx(ctx, nil)
	}
	if err != nil {
		return nil, err
	}
	return &tx{Tx: t, pool: p}, nil
}

// transact runs do in a transaction and commits it unless do fails.
func (p *pool) transact(ctx context.Context, do func(t *tx) error) error {
	t, err := p.begin(ctx)
	if err != nil {
		return err
	}
	if err := do(t); err != nil {
		t.Rollback() //nolint:errcheck // do's error says more
		return err
	}
	return t.commit()
}

// transactOn is transact with the connection that the transaction is on.
func (p *pool) transactOn(ctx context.Context, do func(conn *sql.Conn, t *tx) error) error {
	conn, err := p.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	t, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	own := &tx{Tx: t, pool: p}
	if err := do(conn, own); err != nil {
		t.Rollback() //nolint:errcheck // do's error says more
		return err
	}
	return own.commit()
}

// collect returns what scan makes of every row.
func collect[T any](rows *sql.Rows, err error, scan func(scanner) (T, error)) ([]T, error) {
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

// checkText refuses text that PostgreSQL would not take, on both engines.
func checkText(args []any) error {
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

// clock reads the database's clock. SQLite's is this process's.
func (p *pool) clock(ctx context.Context, q querier) (time.Time, error) {
	if !p.postgres {
		return time.UnixMicro(time.Now().UnixMicro()).UTC(), nil
	}
	var us int64
	err := q.row(ctx, `SELECT atoll_now()`).Scan(&us)
	return time.UnixMicro(us).UTC(), err
}

// orNow makes a time that is not said the database's.
func (t *tx) orNow(ctx context.Context, at *time.Time) (err error) {
	if at.IsZero() {
		*at, err = t.pool.clock(ctx, t)
	}
	return err
}

// execOne runs a statement that must change a row; otherwise it returns missing.
func execOne(ctx context.Context, q querier, missing error, query string, args ...any) error {
	n, err := q.exec(ctx, query, args...)
	if err == nil && n == 0 {
		return missing
	}
	return err
}

// tenantsIn lists the tenants of a table whose primary key begins with tenant:
// one step of the index for each, however many rows they have.
func (p *pool) tenantsIn(ctx context.Context, table string) ([]string, error) {
	rows, err := p.rows(ctx, `WITH RECURSIVE found (tenant) AS (
			SELECT min(tenant) FROM `+table+`
			UNION ALL
			SELECT (SELECT min(x.tenant) FROM `+table+` x WHERE x.tenant > f.tenant) FROM found f WHERE f.tenant IS NOT NULL
		) SELECT tenant FROM found WHERE tenant IS NOT NULL`)
	return collect(rows, err, func(sc scanner) (t string, err error) { return t, sc.Scan(&t) })
}

// byIDOrName finds the row of a tenant whose id or else whose name is given:
// tenant, and three times the latter.
const byIDOrName = ` WHERE tenant = ? AND (id = ? OR name = ?) ORDER BY CASE WHEN id = ? THEN 0 ELSE 1 END LIMIT 1`

// micros is a time as it is stored.
func micros(t time.Time) int64 { return t.UnixMicro() }

// maybeMicros is a time that may be missing.
func maybeMicros(t *time.Time) any {
	if t == nil || t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// instant is a stored time.
func instant(us int64) time.Time { return time.UnixMicro(us).UTC() }
