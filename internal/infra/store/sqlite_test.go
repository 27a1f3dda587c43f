package store_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/infra/store"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
)

func openFile(t testing.TB, path string) *store.DB {
	t.Helper()
	db, err := store.Open(context.WithoutCancel(t.Context()), store.Config{Path: path, Seal: storetest.Box(t)})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func TestSQLiteFilesAreTheOwners(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "data")
	db := openFile(t, filepath.Join(dir, "a b?c#d%.db")) // a name that is not to be taken for a URL's
	_, err := db.Executions().Admit(t.Context(), storetest.Execution("a"), execution.Admission{})
	must(t, err)
	entries, err := os.ReadDir(dir)
	must(t, err)
	if len(entries) < 3 {
		t.Errorf("%d files; the log is one of them", len(entries))
	}
	for _, e := range entries {
		info, err := e.Info()
		must(t, err)
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s is %v", e.Name(), info.Mode())
		}
	}
	info, err := os.Stat(dir)
	must(t, err)
	if info.Mode().Perm() != 0o700 {
		t.Errorf("the folder is %v", info.Mode())
	}
	must(t, db.Close())
}

func TestBackup(t *testing.T) {
	db := storetest.SQLite(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first := storetest.Execution("a")
	_, err := db.Executions().Admit(ctx, first, execution.Admission{})
	must(t, err)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { // it is in use meanwhile
		for ctx.Err() == nil {
			if _, err := db.Executions().Admit(ctx, storetest.Execution("a"), execution.Admission{}); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
	})
	dir := t.TempDir()
	for i := range 3 {
		path := filepath.Join(dir, fmt.Sprintf("it's %d.db", i))
		must(t, db.Backup(t.Context(), path))
		info, err := os.Stat(path)
		must(t, err)
		if info.Mode().Perm() != 0o600 {
			t.Errorf("the backup is %v", info.Mode())
		}
		if err := db.Backup(t.Context(), path); err == nil {
			t.Error("a backup was overwritten")
		}
		restored := openFile(t, path)
		if _, err := restored.Executions().Get(t.Context(), "a", first.TraceID); err != nil {
			t.Error(err)
		}
		var state string
		must(t, restored.SQL().QueryRowContext(t.Context(), `PRAGMA integrity_check`).Scan(&state))
		if state != "ok" {
			t.Errorf("integrity: %s", state)
		}
		must(t, restored.Close())
	}
}

// TestSQLiteSurvivesItsProcess reads what was committed when nothing was closed,
// as after a kill.
func TestSQLiteSurvivesItsProcess(t *testing.T) {
	dir := t.TempDir()
	db := openFile(t, filepath.Join(dir, "atoll.db"))
	defer db.Close()
	var ids []string
	for range 50 {
		e := storetest.Execution("a")
		_, err := db.Executions().Admit(t.Context(), e, execution.Admission{})
		must(t, err)
		ids = append(ids, e.TraceID)
	}
	other := t.TempDir()
	for _, name := range []string{"atoll.db", "atoll.db-wal"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(other, name), data, 0o600))
	}
	again := openFile(t, filepath.Join(other, "atoll.db"))
	defer again.Close()
	for _, id := range ids {
		if _, err := again.Executions().Get(t.Context(), "a", id); err != nil {
			t.Error(err)
		}
	}
}

// TestAnotherProgramKeepsTheTrail deletes audit rows with the sqlite3 of this
// machine, whose SQLite is not ours and may be years older.
func TestAnotherProgramKeepsTheTrail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "atoll.db")
	db := openFile(t, path)
	must(t, db.Audit().Append(t.Context(), auditRow("a")))
	must(t, sealAll(t.Context(), db, "a"))
	remove := func() (left string, err error) {
		out, err := exec.CommandContext(t.Context(), "sqlite3", path, `DELETE FROM audit_rows`).CombinedOutput()
		must(t, db.SQL().QueryRowContext(t.Context(), `SELECT count(*) FROM audit_rows`).Scan(&left))
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return left, err
	}
	for age, step := range []time.Duration{0, 24*time.Hour - time.Minute} {
		storetest.AgeAudit(t, db, step)
		if left, err := remove(); left != "1" || err == nil || !strings.Contains(err.Error(), "retention") {
			t.Errorf("step %d: %s rows are left, and it said %v", age, left, err)
		}
	}
	storetest.AgeAudit(t, db, 2*time.Minute)
	if left, err := remove(); left != "0" || err != nil {
		t.Errorf("after its time %s rows are left, and it said %v", left, err)
	}
	must(t, db.Close())
}
