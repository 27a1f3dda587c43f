package store

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// What the version before left when it was killed: testdata/calls.log has the calls
// trc_000001 to trc_000005, and its database had those up to trc_000003.
const (
	leftName   = "ae84b55f2563d5f5d77ae092e45b6360" // of the log
	leftBefore = "6c47debb54b139c7df45a8edfc2fa97f" // of the log before it
	leftPlace  = 2359
)

// leave makes a data folder with a database that has got as far as place in the log
// of that name, and a log beside it.
func leave(t *testing.T, name string, place int64, log []byte) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "atoll.db")
	db := openWithCalls(t, path, nil)
	bytes, err := hex.DecodeString(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.SQL().ExecContext(t.Context(), `UPDATE call_log SET name = ?, place = ?`, bytes, place); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+"-calls", log, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func openWithCalls(t *testing.T, path string, log *slog.Logger) *DB {
	t.Helper()
	db, err := Open(context.WithoutCancel(t.Context()), Config{Path: path, Seal: testBox(t), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// drains opens the database twice and expects these calls on record, and no log.
func drains(t *testing.T, path string, log *slog.Logger, want ...string) {
	t.Helper()
	for range 2 {
		db := openWithCalls(t, path, log)
		var got []string
		var last time.Time
		for r, err := range db.Audit().Export(t.Context(), "ten_1", time.Time{}, time.Time{}) {
			if err != nil {
				t.Fatal(err)
			}
			if r.CreatedAt.Before(last) || r.CreatedAt.Year() != 2026 || r.CodeSHA256 != [32]byte{1, 255} || r.Metadata["k"] != "ü" || !slices.Equal(r.OutboundHosts, []string{"a.example"}) {
				t.Errorf("a row: %+v", r)
			}
			last = r.CreatedAt
			got = append(got, r.TraceID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("on record: %q; want %q", got, want)
		}
		var credits float64
		if err := db.SQL().QueryRowContext(t.Context(), `SELECT coalesce(sum(credits), 0) FROM usage_entries`).Scan(&credits); err != nil || credits != float64(len(want))/4 {
			t.Errorf("%v credits for %d calls, %v", credits, len(want), err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path + "-calls"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the log is still there: %v", err)
		}
	}
}

func leftLog(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/calls.log")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestCallLogIsDrained(t *testing.T) {
	log := leftLog(t)
	all := []string{"trc_000001", "trc_000002", "trc_000003", "trc_000004", "trc_000005"}
	t.Run("what the database does not have", func(t *testing.T) { drains(t, leave(t, leftName, leftPlace, log), nil, all[3:]...) })
	t.Run("begun anew", func(t *testing.T) { drains(t, leave(t, leftBefore, 816, log), nil, all...) })
	t.Run("the database has all", func(t *testing.T) { drains(t, leave(t, leftName, int64(len(log)), log), nil) })
	t.Run("empty", func(t *testing.T) { drains(t, leave(t, leftName, leftPlace, nil), nil) })
	t.Run("cut short", func(t *testing.T) {
		for _, size := range []int{1, logHead - 1, logHead, logHead + 3, 814, len(log) - 1} {
			var want []string
			if size == len(log)-1 {
				want = all[:4]
			}
			drains(t, leave(t, leftBefore, 816, log[:size]), nil, want...)
		}
	})
	t.Run("overwritten", func(t *testing.T) {
		bad := slices.Clone(log)
		bad[len(bad)-3] = 'X'
		drains(t, leave(t, leftName, leftPlace, bad), nil, all[3])
	})
}

// TestCallLogOfAnotherDatabase puts the log of one database beside another.
func TestCallLogOfAnotherDatabase(t *testing.T) {
	path := leave(t, strings.Repeat("07", 16), 100, leftLog(t))
	var said bytes.Buffer
	drains(t, path, slog.New(slog.NewTextHandler(&said, nil)))
	aside, err := filepath.Glob(path + "-calls.*")
	if err != nil || len(aside) != 1 || !strings.Contains(said.String(), aside[0]) {
		t.Errorf("put aside: %q, %v: %s", aside, err, said.String())
	}
}

// TestCallLogWithARefusedCall keeps the others.
func TestCallLogWithARefusedCall(t *testing.T) {
	log := leftLog(t)
	path := leave(t, leftName, leftPlace, nil)
	db := openWithCalls(t, path, nil)
	left, _, err := parseCalls(log, leftPlace)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Sandboxes().Record(t.Context(), left[0].Row, left[0].Entry); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+"-calls", log, 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	db = openWithCalls(t, path, slog.New(slog.NewTextHandler(&said, nil)))
	var n int
	if err := db.SQL().QueryRowContext(t.Context(), `SELECT count(*) FROM audit_rows WHERE trace_id IN ('trc_000004', 'trc_000005')`).Scan(&n); err != nil || n != 2 {
		t.Errorf("%d rows, %v", n, err)
	}
	if !strings.Contains(said.String(), "does not take a call") || !strings.Contains(said.String(), "trc_000004") {
		t.Errorf("said: %s", said.String())
	}
}

func FuzzCallLog(f *testing.F) {
	whole := leftLog(f)
	f.Add(whole, int64(logHead))
	f.Add(whole[:len(whole)-1], int64(0))
	f.Fuzz(func(t *testing.T, data []byte, from int64) {
		parseHead(data)
		if from < 0 {
			return // the database has none
		}
		all, end, err := parseCalls(data, from)
		if err == nil && (end < from || end > max(from, int64(len(data))) || len(all) > 0 && end == from) {
			t.Errorf("%d calls to byte %d of %d", len(all), end, len(data))
		}
	})
}
