// Package store keeps Atoll's records in SQL: SQLite by default, PostgreSQL
// when given a URL.
//
// One schema and one set of queries serve both engines; they differ in their
// migrations and in the few expressions of dialect. Times are stored as
// microseconds since 1970 in UTC. What must not depend on the clock of a
// process (expiry, windows, retention) goes by the database's.
//
// Executions are recorded through a writer that puts what waits into one
// transaction; see writer.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/breaker"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/usage"
)

// Sealer encrypts secrets with the installation's key, and authenticates data; a
// seal.Box does.
type Sealer interface {
	// Seal encrypts plain for a place, such as a table and an id. Only Open with the same
	// place reads it, and only with the same key.
	Seal(plain []byte, place string) []byte
	Open(sealed []byte, place string) ([]byte, error)
	// SealFor and OpenFor do so with a key of a tenant's own. OpenFor reads what Seal made,
	// too.
	SealFor(tenant string, plain []byte, place string) []byte
	OpenFor(tenant string, sealed []byte, place string) ([]byte, error)
	Sum(data []byte, purpose string) []byte
	Check(data []byte, purpose string, sum []byte) bool
	// Fingerprint names the key.
	Fingerprint() string
}

// Config says where the records are.
type Config struct {
	// URL of a PostgreSQL database (postgres://…); with none, Path is the file of
	// a SQLite database.
	URL  string
	Path string

	Seal Sealer // seals secrets; required
	Log  *slog.Logger

	// Enqueue adds the delivery of an ended execution's webhook to the queue, in
	// the transaction that records its end. It may be called again when that
	// transaction is not committed. Nil if no execution has a webhook.
	Enqueue func(ctx context.Context, tx *sql.Tx, e *execution.Execution) error
	// Tell does the same for a sealed message about a session; DB.OpenNotice opens it.
	Tell func(ctx context.Context, tx *sql.Tx, t tenant.ID, id string, sealed []byte) error

	// Connections to PostgreSQL at the same time; 0 for DefaultConnections.
	Connections int
}

// DefaultConnections is how many connections to PostgreSQL one process opens
// at most.
const DefaultConnections = 16

// DB is an open database. Its stores are safe for concurrent use.
type DB struct {
	write, read *pool // the same on PostgreSQL
	writer      *writer
	seal        Sealer
	enqueue     func(ctx context.Context, tx *sql.Tx, e *execution.Execution) error
	tell        func(ctx context.Context, tx *sql.Tx, t tenant.ID, id string, sealed []byte) error
	path        string // of SQLite's file
	seals       keyedMutex
}

// Open opens the database, makes it or brings it up to date. A database that a
// newer version has written is refused, and so is one that another key has
// sealed (ErrOtherKey).
func Open(ctx context.Context, c Config) (_ *DB, err error) {
	if c.Seal == nil {
		return nil, errors.New("open the database: there is no key to seal secrets with")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	db := &DB{seal: c.Seal, enqueue: c.Enqueue, tell: c.Tell}
	switch {
	case c.URL == "" && c.Path != "":
		db.path = c.Path
		db.write, db.read, err = openSQLite(ctx, c.Path)
	case strings.HasPrefix(c.URL, "postgres://"), strings.HasPrefix(c.URL, "postgresql://"):
		db.write, err = openPostgres(ctx, c)
		db.read = db.write
	default:
		err = errors.New("its URL must begin with postgres://, or be empty")
	}
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.closePools())
		}
	}()
	if err := migrate(ctx, db.write, db.path, c.Log); err != nil {
		return nil, fmt.Errorf("bring the database up to date: %w", err)
	}
	if err := db.checkKey(ctx); err != nil {
		return nil, fmt.Errorf("check the key for secrets: %w", err)
	}
	if err := db.putBuiltInPlans(ctx); err != nil {
		return nil, fmt.Errorf("write the built-in plans: %w", err)
	}
	db.writer = startWriter(db.write)
	return db, nil
}

// Tenants, Executions, Audit, Usage and Breakers are the stores of the domain.
func (db *DB) Tenants() tenant.Store       { return &tenants{db} }
func (db *DB) Executions() execution.Store { return &executions{db} }
func (db *DB) Audit() audit.Store          { return &auditStore{db} }
func (db *DB) Usage() usage.Store          { return &usageStore{db} }
func (db *DB) Breakers() breaker.Store     { return &breakers{db} }

// SQL is the database for those who bring their own queries and tables, such
// as the queue of jobs.
func (db *DB) SQL() *sql.DB { return db.write.db }

// Postgres reports whether the database is PostgreSQL, not SQLite.
func (db *DB) Postgres() bool { return db.write.postgres }

// OnChange has f called with the id of each session that this process changes, after the change
// is committed: a session has other events, or its turn or one of its threads began or ended. It
// is called with the ids of runs that end, too. f must not block. Call it before the first change.
func (db *DB) OnChange(f func(id string)) { db.write.changed.Store(&f) }

// Ping reports whether the database answers.
func (db *DB) Ping(ctx context.Context) error {
	var one int
	return db.write.wrap("ping", db.read.row(ctx, `SELECT 1`).Scan(&one))
}

// Close writes what is on its way and closes the database.
func (db *DB) Close() error {
	db.writer.close()
	return db.closePools()
}

func (db *DB) closePools() error {
	err := db.write.close()
	if db.read != db.write {
		err = errors.Join(err, db.read.close())
	}
	return err
}
