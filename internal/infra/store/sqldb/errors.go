package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	"modernc.org/sqlite/lib"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// Wrap adds the step that failed to an error. Errors that a caller can act on become faults:
// fault.Unavailable, Conflict, Invalid or NotFound. It returns faults unchanged.
func (p *Pool) Wrap(step string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	err = fmt.Errorf("store: %s: %w", step, err)
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, context.DeadlineExceeded): // also of a batch, which outlives its callers
		return fault.Wrap(fault.Unavailable, err, "the database does not answer; retry in a few seconds")
	case unreachable(err):
		return fault.Wrap(fault.Unavailable, err, "the database cannot be reached; try again")
	case Violates(err, Unique):
		return fault.Wrap(fault.Conflict, err, "the name or id is taken")
	case Violates(err, check):
		return fault.Wrap(fault.Invalid, err, "a value is out of bounds")
	case Violates(err, Foreign):
		return fault.Wrap(fault.NotFound, err, "the object that this refers to does not exist")
	}
	return err
}

// unreachable reports whether err is about the way to the database, or its
// being closed, locked or full, and not about what it was asked.
func unreachable(err error) bool {
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) {
		return true
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch e.Code {
		case "57P01", "57P02", "57P03", // shutting down, crashed, starting
			"53300", "53100", "53200", // too many connections, disk full, out of memory
			"25006",          // read-only: a standby
			"40001", "40P01", // serialization, deadlock
			"55P03": // lock not available
			return true
		}
		return strings.HasPrefix(e.Code, "08")
	}
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		switch e.Code() & 0xff {
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY:
			return true
		}
		return false
	}
	return pgconn.SafeToRetry(err) || strings.Contains(err.Error(), "conn closed")
}

// deadlocked reports whether PostgreSQL has ended a transaction for the sake of
// another; it was undone.
func deadlocked(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (e.Code == "40001" || e.Code == "40P01")
}

type violation int

const (
	Unique violation = iota
	check
	Foreign
	Raised // by a trigger
)

var (
	sqliteViolations = map[int]violation{
		sqlite3.SQLITE_CONSTRAINT_UNIQUE:     Unique,
		sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY: Unique,
		sqlite3.SQLITE_CONSTRAINT_ROWID:      Unique,
		sqlite3.SQLITE_CONSTRAINT_CHECK:      check,
		sqlite3.SQLITE_CONSTRAINT_NOTNULL:    check,
		sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY: Foreign,
		sqlite3.SQLITE_CONSTRAINT_TRIGGER:    Raised,
	}
	postgresViolations = map[string]violation{"23505": Unique, "23514": check, "23502": check, "23503": Foreign, "P0001": Raised}
)

// Violates reports whether a constraint of a kind caused err.
func Violates(err error, v violation) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		got, known := postgresViolations[e.Code]
		return known && got == v
	}
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		got, known := sqliteViolations[e.Code()]
		return known && got == v
	}
	return false
}

// Found is Wrap that returns missing for sql.ErrNoRows.
func (p *Pool) Found(step string, err, missing error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return missing
	}
	return p.Wrap(step, err)
}

// Named is Wrap that says which name of a kind of thing is taken.
func (p *Pool) Named(step string, err error, kind, name string) error {
	switch {
	case Violates(err, Unique):
		return fault.Wrap(fault.Conflict, err, kind+" "+name+" exists already")
	default:
		return p.Wrap(step, err)
	}
}
