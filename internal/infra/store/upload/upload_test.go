package upload

import (
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/infra/store/sqldb/sqldbtest"
)

// TestGonePlans checks that the sweep reads only deleted files and scans no table.
func TestGonePlans(t *testing.T) {
	db := sqldbtest.SQLite(t)
	for _, plan := range []string{sqldbtest.Plan(t, db, endFiles, fileDeleted, fileUploading, 1, fileThere, 1), sqldbtest.Plan(t, db, goneFiles, fileDeleted, 10)} {
		if !strings.Contains(plan, "files_gone") || strings.Contains(plan, "SCAN") {
			t.Error(plan)
		}
	}
}
