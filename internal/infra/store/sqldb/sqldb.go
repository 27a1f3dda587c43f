// Package sqldb is the part of the store that all records share: connections, transactions, the
// mapping of rows, and migrations.
//
// One set of queries serves SQLite and PostgreSQL. The engines differ in their migrations and in the
// few expressions of Pool. Times are stored as microseconds since 1970 in UTC. Decisions that must
// not depend on the clock of a process (expiry, windows, retention) use the database's clock.
//
// DB.Submit writes a Task in a transaction that concurrent tasks share.
package sqldb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

// Sealer encrypts secrets with the installation's key, and authenticates data. A seal.Box
// implements it.
type Sealer interface {
	// Seal encrypts plain for a place, such as a table and an id. Only Open with the same
	// place reads it, and only with the same key.
	Seal(plain []byte, place string) []byte
	Open(sealed []byte, place string) ([]byte, error)
	// SealFor and OpenFor use a tenant's own key. OpenFor also opens data from Seal.
	SealFor(tenant string, plain []byte, place string) []byte
	OpenFor(tenant string, sealed []byte, place string) ([]byte, error)
	Sum(data []byte, purpose string) []byte
	Check(data []byte, purpose string, sum []byte) bool
	// Fingerprint names the key.
	Fingerprint() string
}

// Config selects a database.
type Config struct {
	URL         string // of a PostgreSQL database (postgres://…); "" for SQLite
	Path        string // of SQLite's file
	Connections int    // to PostgreSQL at the same time; 0 for DefaultConnections
	Seal        Sealer // required
	Log         *slog.Logger
}

// DefaultConnections is the maximum number of connections to PostgreSQL that one process opens.
const DefaultConnections = 16

// DB is an open database. It is safe for concurrent use.
type DB struct {
	Write, Read *Pool // the same on PostgreSQL
	Seal        Sealer
	writer      *writer
	path        string // of SQLite's file
}

// Open opens the database, creates it or brings it up to date. It rejects a database that a newer
// version has written.
func Open(ctx context.Context, c Config) (_ *DB, err error) {
	if c.Seal == nil {
		return nil, errors.New("open the database: there is no key to seal secrets with")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	db := &DB{Seal: c.Seal}
	switch {
	case c.URL == "" && c.Path != "":
		db.path = c.Path
		db.Write, db.Read, err = openSQLite(ctx, c.Path)
	case strings.HasPrefix(c.URL, "postgres://"), strings.HasPrefix(c.URL, "postgresql://"):
		db.Write, err = openPostgres(ctx, c)
		db.Read = db.Write
	default:
		err = errors.New("its URL must begin with postgres://, or be empty")
	}
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	if err := migrate(ctx, db.Write, db.path, c.Log); err != nil {
		return nil, errors.Join(fmt.Errorf("bring the database up to date: %w", err), db.closePools())
	}
	db.writer = startWriter(db.Write)
	return db, nil
}

// Ping returns nil if the database answers.
func (db *DB) Ping(ctx context.Context) error {
	var one int
	return db.Write.Wrap("ping", db.Read.Row(ctx, `SELECT 1`).Scan(&one))
}

// Close writes waiting tasks and closes the database.
func (db *DB) Close() error {
	db.writer.close()
	return db.closePools()
}

func (db *DB) closePools() error {
	err := db.Write.close()
	if db.Read != db.Write {
		err = errors.Join(err, db.Read.close())
	}
	return err
}
