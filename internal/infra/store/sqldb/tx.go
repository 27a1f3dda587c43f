package sqldb

import (
	"context"
	"database/sql"
	"slices"
	"time"
)

// Tx is a transaction of a Pool.
type Tx struct {
	*sql.Tx
	Pool    *Pool
	changed []string // ids of sessions and runs, see Pool.OnChange
}

// SQL returns the transaction for packages that bring their own statements, such as the queue of
// jobs.
func (t *Tx) SQL() *sql.Tx { return t.Tx }

// Changes notes the id of a session that the transaction changes, or of a run that it ends.
func (t *Tx) Changes(id string) { t.changed = append(t.changed, id) }

// commit commits the transaction, and announces its changes.
func (t *Tx) commit() error {
	if err := t.Commit(); err != nil {
		return err
	}
	if announce := t.Pool.changed.Load(); announce != nil {
		slices.Sort(t.changed)
		for _, id := range slices.Compact(t.changed) {
			(*announce)(id)
		}
	}
	return nil
}

func (t *Tx) Dialect() *Pool { return t.Pool }

func (t *Tx) stmt(ctx context.Context, query string) (*sql.Stmt, error) {
	// The pool's one connection is ours; keeping a statement has to wait until
	// the next transaction begins.
	if s, ok := t.Pool.stmts.Load(query); ok {
		return t.StmtContext(ctx, s.(*sql.Stmt)), nil
	}
	t.Pool.wanted.Store(query, nil)
	return t.PrepareContext(ctx, query) // closed with the transaction
}

func (t *Tx) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	if err := CheckText(args); err != nil {
		return 0, err
	}
	if t.Pool.Postgres {
		return affected(t.ExecContext(ctx, t.Pool.numbered(query), args...))
	}
	s, err := t.stmt(ctx, query)
	if err != nil {
		return 0, err
	}
	return affected(s.ExecContext(ctx, args...))
}

func (t *Tx) Rows(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := CheckText(args); err != nil {
		return nil, err
	}
	if t.Pool.Postgres {
		return t.QueryContext(ctx, t.Pool.numbered(query), args...)
	}
	s, err := t.stmt(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.QueryContext(ctx, args...)
}

func (t *Tx) Row(ctx context.Context, query string, args ...any) Scanner {
	if err := CheckText(args); err != nil {
		return refused{err}
	}
	if t.Pool.Postgres {
		return t.QueryRowContext(ctx, t.Pool.numbered(query), args...)
	}
	s, err := t.stmt(ctx, query)
	if err != nil {
		return refused{err}
	}
	return s.QueryRowContext(ctx, args...)
}

// begin starts a transaction. A connection that turns out to be dead before
// anything was done on it is replaced once.
func (p *Pool) begin(ctx context.Context) (*Tx, error) {
	for query := range p.wanted.Range {
		if _, err := p.prepare(ctx, query.(string)); err != nil {
			return nil, err
		}
		p.wanted.Delete(query)
	}
	t, err := p.DB.BeginTx(ctx, nil)
	if err != nil && ctx.Err() == nil && unreachable(err) {
		t, err = p.DB.BeginTx(ctx, nil)
	}
	if err != nil {
		return nil, err
	}
	return &Tx{Tx: t, Pool: p}, nil
}

// Transact runs do in a transaction and commits it unless do fails.
func (p *Pool) Transact(ctx context.Context, do func(t *Tx) error) error {
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

// Transact runs do in a transaction. Its error names the step, see Pool.Wrap.
func (db *DB) Transact(ctx context.Context, step string, do func(t *Tx) error) error {
	return db.Write.Wrap(step, db.Write.Transact(ctx, do))
}

// TransactLocked is Transact while no other transaction locks the same name of a kind.
func (p *Pool) TransactLocked(ctx context.Context, kind, name string, do func(t *Tx) error) error {
	return p.Transact(ctx, func(t *Tx) error {
		if err := t.Lock(ctx, kind, name); err != nil {
			return err
		}
		return do(t)
	})
}

// transactOn is transact with the connection that the transaction is on.
func (p *Pool) transactOn(ctx context.Context, do func(conn *sql.Conn, t *Tx) error) error {
	conn, err := p.DB.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	t, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	own := &Tx{Tx: t, Pool: p}
	if err := do(conn, own); err != nil {
		t.Rollback() //nolint:errcheck // do's error says more
		return err
	}
	return own.commit()
}

// Clock reads the database's clock in the transaction.
func (t *Tx) Clock(ctx context.Context) (time.Time, error) { return t.Pool.Clock(ctx, t) }

// OrNow sets a zero time to the time of the database.
func (t *Tx) OrNow(ctx context.Context, at *time.Time) (err error) {
	if at.IsZero() {
		*at, err = t.Clock(ctx)
	}
	return err
}

// Lock delays other transactions that lock the same name of a kind until t ends. SQLite needs no lock,
// because it runs one write transaction at a time.
func (t *Tx) Lock(ctx context.Context, kind, name string) error {
	if !t.Pool.Postgres {
		return nil
	}
	_, err := t.Exec(ctx, `SELECT pg_advisory_xact_lock(?)`, LockOf(kind, name))
	return err
}
