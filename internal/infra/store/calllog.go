package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// Until version 16 of the schema, calls of tools were written to a file beside
// SQLite's, atoll.db-calls, and moved into the database later. drainCallLog moves
// what such a version has left. Nothing writes the file any more.
//
//	head    magic, the name of the log, the name of the log that stood in the file
//	        before, and their CRC-32
//	record  the length of the call, the CRC-32 of what follows, the time in µs
//	        since 1970, the call as JSON
//
// The table call_log has the name of the log and how far the database has got in it.
type logName [16]byte

const (
	logMagic  = "atollcl\x01"
	logHead   = len(logMagic) + 2*len(logName{}) + 4
	callHead  = 4 + 4 + 8
	maxLogged = 1 << 20 // bytes of a call
)

var errForeignLog = errors.New("the log of calls belongs to another database")

// drainCallLog puts what is left in a log of calls into the database, and removes
// the log. A log that another process has open is left to that process.
func drainCallLog(ctx context.Context, db *DB, log *slog.Logger) error {
	path := db.path + "-calls"
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == unix.EWOULDBLOCK {
		return nil
	} else if err != nil {
		return err
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	task := &drained{log: log}
	task.left, task.name, task.place, err = db.leftCalls(ctx, data)
	if errors.Is(err, errForeignLog) {
		aside := path + time.Now().UTC().Format(".20060102T150405.000000000")
		log.WarnContext(ctx, "a log of calls belongs to another database, and was put aside", "path", aside)
		return os.Rename(path, aside)
	}
	if err != nil {
		return err
	}
	if len(task.left) > 0 {
		if err := db.writer.write(ctx, task); err != nil {
			return err
		}
		log.InfoContext(ctx, "calls that an earlier version has left were put on record", "calls", len(task.left))
	}
	return os.Remove(path)
}

// leftCalls returns the calls of a log that the database does not have, the name
// of the log and where it ends.
func (db *DB) leftCalls(ctx context.Context, data []byte) (left []*call, name logName, end int64, err error) {
	var has logName
	var stored []byte
	var place int64
	if err := db.write.row(ctx, `SELECT name, place FROM call_log`).Scan(&stored, &place); err != nil {
		return nil, name, 0, err
	}
	copy(has[:], stored)
	name, before, ok := parseHead(data)
	switch {
	case !ok: // nothing was acted upon
		return nil, name, 0, nil
	case name == has:
	case before == has: // it was begun anew, and the database has nothing of that
		place = 0
	default:
		return nil, name, 0, errForeignLog
	}
	left, end, err = parseCalls(data, max(place, int64(logHead)))
	return left, name, end, err
}

func parseHead(data []byte) (name, before logName, ok bool) {
	if len(data) < logHead || !bytes.HasPrefix(data, []byte(logMagic)) {
		return name, before, false
	}
	names, sum := data[len(logMagic):logHead-4], data[logHead-4:]
	copy(name[:], names)
	copy(before[:], names[len(name):])
	return name, before, binary.LittleEndian.Uint32(sum) == crc32.ChecksumIEEE(names)
}

// parseCalls returns the calls from a place on, and where the last whole one ends.
// A killed process can leave a last one that is cut short; its caller got no answer.
func parseCalls(data []byte, at int64) (all []*call, end int64, err error) {
	for at < int64(len(data))-int64(callHead) {
		head := data[at:][:callHead]
		n := int64(binary.LittleEndian.Uint32(head))
		next := at + int64(callHead) + n
		if n > maxLogged || next > int64(len(data)) {
			break
		}
		if binary.LittleEndian.Uint32(head[4:]) != crc32.ChecksumIEEE(data[at+8:next]) {
			break
		}
		c := &call{}
		if err := json.Unmarshal(data[at+int64(callHead):next], c); err != nil {
			return nil, 0, fmt.Errorf("the call at byte %d cannot be read: %w", at, err)
		}
		c.At = time.UnixMicro(int64(binary.LittleEndian.Uint64(head[8:]))).UTC()
		at = next
		all = append(all, c)
	}
	return all, at, nil
}

// drained is the task of calls that come from a log.
type drained struct {
	left  []*call
	name  logName // of the log
	place int64   // where it ends
	log   *slog.Logger
}

func (t *drained) locks() []int64 { return nil }
func (t *drained) order() string  { return "c" }

func (t *drained) do(ctx context.Context, b *batch) error {
	if _, err := b.exec(ctx, `UPDATE call_log SET name = ?, place = ?`, t.name[:], t.place); err != nil {
		return err
	}
	for _, c := range t.left {
		if err := t.one(ctx, b, c); err != nil {
			return err
		}
	}
	return nil
}

// one writes one call. A call that the database refuses, though the version that
// wrote the log had checked it, is only in the server's log from then on.
func (t *drained) one(ctx context.Context, b *batch, c *call) error {
	if _, err := b.exec(ctx, `SAVEPOINT one`); err != nil {
		return err
	}
	err := c.do(ctx, b)
	if err != nil && refusedByDatabase(err) {
		t.log.ErrorContext(ctx, "the database does not take a call", "call", c, "error", err)
		_, err = b.exec(ctx, `ROLLBACK TO one`)
	}
	if err != nil {
		return err
	}
	_, err = b.exec(ctx, `RELEASE one`)
	return err
}

func refusedByDatabase(err error) bool {
	return violates(err, unique) || violates(err, check) || violates(err, foreign) || fault.KindOf(err) == fault.Invalid
}
