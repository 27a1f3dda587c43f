package store

import (
	"slices"
	"testing"

	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

// unlisted are columns that no list of a table has, because statements write them piece by piece.
var unlisted = map[string][]string{
	"audit_rows": {"expires_at"}, "plans": {"seq"}, "tenants": {"seq"}, "environments": {"seq"}, "keys": {"seq"}, "connections": {"seq"}, "grants": {"seq"},
	"sandboxes": {"seq", "bereft"}, "snapshots": {"seq"}, "threads": {"lease", "lease_until"}, "runs": {"cancelled", "expires_at"}, "models": {"seq"}, "model_keys": {"seq"}, "templates": {"seq"}, "files": {"state"},
}

// TestTablesListEveryColumn holds the lists of columns against the schema: a
// migration that adds a column to a table has to say what of a row it is.
func TestTablesListEveryColumn(t *testing.T) {
	migrationTargets(t, func(t *testing.T, fresh func() Config) {
		db := mustOpen(t, fresh())
		defer db.Close()
		for name, listed := range sqldb.Tables() {
			rows, err := db.SQL().QueryContext(t.Context(), `SELECT * FROM `+name+` LIMIT 0`)
			if err != nil {
				t.Fatal(err)
			}
			have, err := rows.Columns()
			if err != nil {
				t.Fatal(err)
			}
			rows.Close()
			listed = append(listed, unlisted[name]...)
			slices.Sort(have)
			slices.Sort(listed)
			if !slices.Equal(have, listed) {
				t.Errorf("table %s has the columns\n%q, listed are\n%q", name, have, listed)
			}
		}
	})
}
