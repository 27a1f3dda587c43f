package execution

import (
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb/sqldbtest"
)

// TestListPlans asks SQLite how it would answer: through one index, in its
// order, without sorting or reading a table.
func TestListPlans(t *testing.T) {
	db := sqldbtest.SQLite(t)
	s := New(db, nil)
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
		for _, after := range []*sqldb.Place{nil, {At: 1, ID: "trc_1"}} {
			c.f.Tenant, c.f.Limit = "a", 10
			q := s.listQuery(c.f, c.first, after)
			all := sqldbtest.Plan(t, db, q.Text(), q.Args()...)
			if !strings.Contains(all, c.index) || strings.Contains(all, "SCAN") && !strings.Contains(all, "SCAN CONSTANT") || strings.Contains(all, "TEMP B-TREE") {
				t.Errorf("%+v beginning with %q: %s", c.f, c.first, all)
			}
		}
	}
}
