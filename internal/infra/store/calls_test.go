package store

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/usage"
)

// openCallsIn opens the database in a folder.
func openCallsIn(t *testing.T, dir string, log *slog.Logger) *DB {
	t.Helper()
	db, err := Open(context.WithoutCancel(t.Context()), Config{Path: filepath.Join(dir, "atoll.db"), Seal: testBox(t), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// callOf is the row of a call and what it used.
func callOf(id string) (audit.Row, usage.Entry) {
	return audit.Row{
			TraceID: id, Tenant: "ten_1", Key: "key_1", Environment: "env_1", Source: "shell", SessionID: "s", CodeSHA256: [32]byte{1, 255}, ExitStatus: audit.OK,
			OutboundHosts: []string{"a.example"}, Metadata: map[string]string{"k": "ü"}, Retention: 7 * 24 * time.Hour,
		}, usage.Entry{
			TraceID: id, Tenant: "ten_1", Key: "key_1", Source: "shell", Credits: 0.25, At: time.Now().UTC(),
		}
}

func record(t *testing.T, db *DB, ids ...string) {
	t.Helper()
	for _, id := range ids {
		row, entry := callOf(id)
		if err := db.Sandboxes().Record(t.Context(), row, entry); err != nil {
			t.Fatal(err)
		}
	}
}

func numbered(from, to int) (ids []string) {
	for i := from; i < to; i++ {
		ids = append(ids, fmt.Sprintf("trc_%06d", i))
	}
	return ids
}

// recorded reads the trail, oldest first, and what its calls have cost.
func recorded(t *testing.T, db *DB) (ids []string, credits float64) {
	t.Helper()
	credits, err := db.Usage().Month(t.Context(), "ten_1")
	if err != nil {
		t.Fatal(err)
	}
	var last time.Time
	for r, err := range db.Audit().Export(t.Context(), "ten_1", time.Time{}, time.Time{}) {
		if err != nil {
			t.Fatal(err)
		}
		if r.CreatedAt.Before(last) || time.Since(r.CreatedAt) > time.Hour || r.CodeSHA256 != [32]byte{1, 255} || r.Metadata["k"] != "ü" || len(r.OutboundHosts) != 1 {
			t.Errorf("a row: %+v", r)
		}
		last = r.CreatedAt
		ids = append(ids, r.TraceID)
	}
	return ids, credits
}

func isRecorded(t *testing.T, db *DB, want []string) {
	t.Helper()
	if got, credits := recorded(t, db); !slices.Equal(got, want) || credits != float64(len(want))/4 {
		t.Errorf("on record: %q, %v; want %q", got, credits, want)
	}
}

// unsettled keeps calls from the database until the function is called.
func unsettled(db *DB) func() {
	db.calls.turn <- struct{}{}
	return func() { <-db.calls.turn }
}

// killed is a copy of what a process would leave that was killed now.
func killed(t *testing.T, dir string) string {
	t.Helper()
	other := t.TempDir()
	for _, name := range []string{"atoll.db", "atoll.db-wal", "atoll.db-calls"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(other, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return other
}

// again opens what a killed process has left, twice, and looks what is on record.
func again(t *testing.T, dir string, want []string) {
	t.Helper()
	for range 2 {
		db := openCallsIn(t, dir, nil)
		isRecorded(t, db, want)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCallsOutliveTheProcess(t *testing.T) {
	dir := t.TempDir()
	db := openCallsIn(t, dir, nil)
	letGo := unsettled(db)
	record(t, db, numbered(0, 5)...)
	var n int
	if err := db.SQL().QueryRowContext(t.Context(), `SELECT count(*) FROM audit_rows`).Scan(&n); err != nil || n != 0 {
		t.Fatalf("%d rows are in the database, %v", n, err)
	}
	again(t, killed(t, dir), numbered(0, 5)) // all in the log
	letGo()
	isRecorded(t, db, numbered(0, 5))
	again(t, killed(t, dir), numbered(0, 5)) // in both

	letGo = unsettled(db)
	record(t, db, numbered(5, 8)...)
	again(t, killed(t, dir), numbered(0, 8)) // some in the log alone
	letGo()
	isRecorded(t, db, numbered(0, 8))

	if err := db.calls.anew(0); err != nil {
		t.Fatal(err)
	}
	again(t, killed(t, dir), numbered(0, 8)) // none in the log
	letGo = unsettled(db)
	record(t, db, numbered(8, 9)...)
	next := killed(t, dir)
	again(t, next, numbered(0, 9)) // one in the log that was begun anew
	letGo()

	other := openCallsIn(t, next, nil)
	record(t, other, numbered(9, 12)...)
	isRecorded(t, other, numbered(0, 12))
}

// TestCallsCutShort cuts the log of a killed process at every byte of its last call.
func TestCallsCutShort(t *testing.T) {
	dir := t.TempDir()
	db := openCallsIn(t, dir, nil)
	defer unsettled(db)()
	record(t, db, numbered(0, 2)...)
	whole := db.calls.file.size
	record(t, db, numbered(2, 3)...)
	end := db.calls.file.size
	for _, size := range []int64{0, 1, int64(logHead) - 1, int64(logHead), whole - 1, whole, whole + 1, whole + 8, whole + int64(callHead), end - 1} {
		left := killed(t, dir)
		if err := os.Truncate(filepath.Join(left, "atoll.db-calls"), size); err != nil {
			t.Fatal(err)
		}
		want := numbered(0, 2)
		switch {
		case size <= int64(logHead):
			want = nil
		case size < whole:
			want = numbered(0, 1)
		}
		again(t, left, want)
		last := openCallsIn(t, left, nil)
		record(t, last, "trc_after")
		isRecorded(t, last, append(want, "trc_after"))
	}
	left := killed(t, dir)
	f, err := os.OpenFile(filepath.Join(left, "atoll.db-calls"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{'X'}, end-3); err != nil {
		t.Fatal(err)
	}
	f.Close()
	again(t, left, numbered(0, 2))
}

// TestCallsOfAnotherDatabase puts the log of one database beside another.
func TestCallsOfAnotherDatabase(t *testing.T) {
	dir, mine := t.TempDir(), t.TempDir()
	db := openCallsIn(t, dir, nil)
	defer unsettled(db)()
	record(t, db, numbered(0, 3)...)
	own := openCallsIn(t, mine, nil)
	record(t, own, "trc_mine")
	if err := own.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "atoll.db-calls"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(mine, "atoll.db-calls"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	own = openCallsIn(t, mine, slog.New(slog.NewTextHandler(&said, nil)))
	isRecorded(t, own, []string{"trc_mine"})
	aside, err := filepath.Glob(filepath.Join(mine, "atoll.db-calls.*"))
	if err != nil || len(aside) != 1 || !strings.Contains(said.String(), aside[0]) {
		t.Errorf("put aside: %q, %v: %s", aside, err, said.String())
	}
}

// TestCallsOfTwoProcesses: one that finds the log in use does without.
func TestCallsOfTwoProcesses(t *testing.T) {
	dir := t.TempDir()
	first, second := openCallsIn(t, dir, nil), openCallsIn(t, dir, nil)
	if first.calls == nil || second.calls != nil {
		t.Fatal("both have the log, or none")
	}
	record(t, first, "trc_1")
	isRecorded(t, first, []string{"trc_1"})
	record(t, second, "trc_2")
	isRecorded(t, first, []string{"trc_1", "trc_2"})
	isRecorded(t, second, []string{"trc_1", "trc_2"})
}

// TestCallsThatTheDatabaseRefuses keeps the others.
func TestCallsThatTheDatabaseRefuses(t *testing.T) {
	var said bytes.Buffer
	db := openCallsIn(t, t.TempDir(), slog.New(slog.NewTextHandler(&said, nil)))
	letGo := unsettled(db)
	record(t, db, "trc_1")
	row, entry := callOf("trc_twice")
	for range 2 {
		if err := db.Sandboxes().Record(t.Context(), row, entry); err != nil {
			t.Fatal(err)
		}
	}
	record(t, db, "trc_2")
	letGo()
	isRecorded(t, db, []string{"trc_1", "trc_twice", "trc_2"})
	if !strings.Contains(said.String(), "trc_twice") {
		t.Errorf("said: %s", said.String())
	}
	row.ExitStatus = "odd"
	if err := db.Sandboxes().Record(t.Context(), row, entry); err == nil {
		t.Error("a row with no known status was taken")
	}
	row, entry = callOf("trc_long")
	row.FailureReason = strings.Repeat("x", maxLogged)
	if err := db.Sandboxes().Record(t.Context(), row, entry); err != nil {
		t.Error(err)
	}
	isRecorded(t, db, []string{"trc_1", "trc_twice", "trc_2", "trc_long"})
}

// TestCallsWaitForRoom fills the log of a database that takes nothing.
func TestCallsWaitForRoom(t *testing.T) {
	db := openCallsIn(t, t.TempDir(), nil)
	letGo := unsettled(db)
	all := numbered(0, maxWaiting)
	record(t, db, all...)
	late := errors.New("late")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(late)
	row, entry := callOf("trc_refused")
	if err := db.Sandboxes().Record(ctx, row, entry); !errors.Is(err, late) {
		t.Errorf("got %v", err)
	}
	done := make(chan error)
	go func() { done <- db.Sandboxes().Record(t.Context(), row, entry) }()
	letGo()
	if err := <-done; err != nil {
		t.Error(err)
	}
	isRecorded(t, db, append(all, "trc_refused"))
	if err := db.calls.anew(1); err != nil || db.calls.file.size != 0 {
		t.Errorf("the log has %d bytes, %v", db.calls.file.size, err)
	}
}

// TestCallsAreNotLost kills a process that records as fast as it can.
func TestCallsAreNotLost(t *testing.T) {
	if dir := os.Getenv("ATOLL_TEST_CALLS"); dir != "" {
		db := openCallsIn(t, dir, nil)
		for i := 0; ; i++ {
			id := fmt.Sprintf("trc_%d_%06d", os.Getpid(), i)
			record(t, db, id)
			fmt.Println("recorded", id)
		}
	}
	dir := t.TempDir()
	var want []string
	for round := range 4 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestCallsAreNotLost$")
		cmd.Env = append(os.Environ(), "ATOLL_TEST_CALLS="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			if id, ok := strings.CutPrefix(lines.Text(), "recorded "); ok {
				want = append(want, id)
			}
			if n == 500*round+100 {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := cmd.Wait(); err == nil {
			t.Fatal("it was not killed")
		}
	}
	got, credits := recorded(t, openCallsIn(t, dir, nil))
	there := map[string]int{}
	for _, id := range got {
		there[id]++
	}
	for _, id := range want {
		if there[id] != 1 {
			t.Errorf("%s is on record %d times", id, there[id])
		}
	}
	// One more each time, whose caller was not told.
	if len(there) != len(got) || len(got) < len(want) || len(got) > len(want)+4 || credits != float64(len(got))/4 {
		t.Errorf("%d of %d, %v credits", len(got), len(want), credits)
	}
}

func FuzzCallLog(f *testing.F) {
	path := filepath.Join(f.TempDir(), "log")
	l, _, err := openCallLog(path, logName{1}, 0)
	if err != nil {
		f.Fatal(err)
	}
	defer l.close()
	for _, data := range []string{`{"Row":{"TraceID":"trc_1","ExitStatus":"ok"}}`, `{}`} {
		if _, err := l.append(time.UnixMicro(1), []byte(data)); err != nil {
			f.Fatal(err)
		}
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole, int64(logHead))
	f.Add(whole[:len(whole)-1], int64(0))
	f.Fuzz(func(t *testing.T, data []byte, from int64) {
		parseHead(data)
		if from < 0 {
			return // the database has none
		}
		all, end, err := parseCalls(data, from)
		if err == nil && (end < from || len(all) > 0 && all[len(all)-1].end != end || end > max(from, int64(len(data)))) {
			t.Errorf("%d calls to byte %d of %d", len(all), end, len(data))
		}
	})
}
