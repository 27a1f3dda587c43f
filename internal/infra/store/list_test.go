package store

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
)

// TestListPlans asks SQLite how it would answer: through one index, in its
// order, without sorting or reading a table.
func TestListPlans(t *testing.T) {
	db := mustOpen(t, Config{Path: filepath.Join(t.TempDir(), "atoll.db"), Seal: testBox(t)})
	defer db.Close()
	s := &executions{db}
	pairs := map[string]string{"a": "1", "b": "2"}
	for _, c := range []struct {
		f     execution.Filter
		first string // the pair to begin with
		index string
	}{
		{execution.Filter{}, "", "executions_newest"},
		{execution.Filter{Since: time.Unix(1, 0), Before: time.Unix(2, 0)}, "", "executions_newest"},
		{execution.Filter{Status: execution.Success}, "", "executions_newest"},
		{execution.Filter{Status: execution.Running}, "", "executions_running"},
		{execution.Filter{Status: execution.OOM}, "", "executions_status"},
		{execution.Filter{Language: execution.Node}, "", "executions_language"},
		{execution.Filter{Language: execution.Python}, "", "executions_newest"},
		{execution.Filter{Key: "key_1"}, "", "executions_key"},
		{execution.Filter{Metadata: pairs}, "a", "SEARCH m USING PRIMARY KEY"},
		{execution.Filter{Metadata: pairs}, "b", "SEARCH m USING PRIMARY KEY"},
		{execution.Filter{Metadata: pairs, Status: execution.OOM}, "", "executions_status"},
		{execution.Filter{Metadata: pairs, Status: execution.OOM}, "a", "SEARCH m USING PRIMARY KEY"},
	} {
		for _, after := range []*place{nil, {at: 1, id: "trc_1"}} {
			c.f.Tenant, c.f.Limit = "a", 10
			q := s.listQuery(c.f, c.first, after)
			all := planOf(t, db, q.text.String(), q.args...)
			if !strings.Contains(all, c.index) || strings.Contains(all, "SCAN") && !strings.Contains(all, "SCAN CONSTANT") || strings.Contains(all, "TEMP B-TREE") {
				t.Errorf("%+v beginning with %q: %s", c.f, c.first, all)
			}
		}
	}
}

// planOf is how SQLite would answer a query.
func planOf(t *testing.T, db *DB, query string, args ...any) string {
	t.Helper()
	rows, err := db.write.db.QueryContext(t.Context(), `EXPLAIN QUERY PLAN `+query, args...)
	plan, err := collect(rows, err, func(sc scanner) (line string, err error) {
		var id, parent, unused int
		return line, sc.Scan(&id, &parent, &unused, &line)
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(plan, "; ")
}

// TestGonePlans: the sweep of files reads those that are gone, and no table.
func TestGonePlans(t *testing.T) {
	db := mustOpen(t, Config{Path: filepath.Join(t.TempDir(), "atoll.db"), Seal: testBox(t)})
	defer db.Close()
	for _, plan := range []string{planOf(t, db, endFiles, fileDeleted, fileUploading, 1, fileThere, 1), planOf(t, db, goneFiles, fileDeleted, 10)} {
		if !strings.Contains(plan, "files_gone") || strings.Contains(plan, "SCAN") {
			t.Error(plan)
		}
	}
}

func FuzzCursor(f *testing.F) {
	box := testBox(f)
	for _, p := range []place{{}, {1, "trc_1"}, {-1, "\x00\xff"}} {
		f.Add(encodeCursor(box, "executions/a", p))
		f.Add(encodeCursor(box, "executions/b", p))
	}
	f.Add("")
	f.Add("====")
	f.Add(strings.Repeat("A", 600))
	f.Fuzz(func(t *testing.T, token string) {
		p, err := decodeCursor(box, "executions/a", token)
		if err != nil {
			if p != (place{}) {
				t.Errorf("%v with an error", p)
			}
			return
		}
		if again := encodeCursor(box, "executions/a", p); again != token {
			t.Errorf("%q is taken for %q", token, again)
		}
		if _, err := decodeCursor(box, "executions/b", token); err == nil {
			t.Errorf("%q is good for two lists", fmt.Sprint(token))
		}
	})
}
