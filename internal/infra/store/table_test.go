package store

import (
	"slices"
	"testing"
)

// TestTablesListEveryColumn holds the lists of columns against the schema: a
// migration that adds a column to a table has to say what of a row it is.
func TestTablesListEveryColumn(t *testing.T) {
	tables := map[string][]string{}
	list := func(name string, columns ...string) { tables[name] = columns }
	list(executionTable.name, allNames(executionTable)...)
	list(auditTable.name, append(allNames(auditTable), "expires_at")...)
	list(planTable.name, append(allNames(planTable), "seq")...)
	list(tenantTable.name, append(allNames(tenantTable), "seq")...)
	list(environmentTable.name, append(allNames(environmentTable), "seq")...)
	list(keyTable.name, append(allNames(keyTable), "seq")...)
	list(connectionTable.name, append(allNames(connectionTable), "seq")...)
	list(grantTable.name, append(allNames(grantTable), "seq")...)
	list(sandboxTable.name, append(allNames(sandboxTable), "seq", "bereft")...)
	list(snapshotTable.name, append(allNames(snapshotTable), "seq")...)
	list(threadTable.name, append(allNames(threadTable), "lease", "lease_until")...)
	list(previewTable.name, allNames(previewTable)...)
	migrationTargets(t, func(t *testing.T, fresh func() Config) {
		db := mustOpen(t, fresh())
		defer db.Close()
		for name, listed := range tables {
			rows, err := db.SQL().QueryContext(t.Context(), `SELECT * FROM `+name+` LIMIT 0`)
			if err != nil {
				t.Fatal(err)
			}
			have, err := rows.Columns()
			if err != nil {
				t.Fatal(err)
			}
			rows.Close()
			slices.Sort(have)
			slices.Sort(listed)
			if !slices.Equal(have, listed) {
				t.Errorf("table %s has the columns\n%q, listed are\n%q", name, have, listed)
			}
		}
	})
}

func allNames[R any](t *table[R]) []string { return t.names(all) }
