package audit

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

// A text says what an execution or a call did. It stays as long as the audit rows of its tenant.

func textPlace(traceID string) string { return "activity_texts/" + traceID }

// SealText encrypts a text. It returns nil for "".
func SealText(db *sqldb.DB, of tenant.ID, traceID, text string) []byte {
	if text == "" {
		return nil
	}
	return db.Seal.SealFor(of, []byte(text), textPlace(traceID))
}

// KeepText stores a text with the retention of the tenant's audit rows.
func KeepText(ctx context.Context, b *sqldb.Batch, of tenant.ID, traceID string, sealed []byte) error {
	if sealed == nil {
		return nil
	}
	return b.Later(ctx, `INSERT INTO activity_texts (tenant, trace_id, text, expires_at)
		VALUES (?, ?, ?, atoll_now() + 86400000000 * coalesce((SELECT audit_days FROM tenants WHERE id = ?), ?)) ON CONFLICT (tenant, trace_id) DO NOTHING`,
		of, traceID, sealed, of, int64(audit.DefaultRetention/sqldb.Day))
}

// OpenText opens a text that SealText has sealed.
func OpenText(db *sqldb.DB, of tenant.ID, traceID string, sealed []byte) (string, error) {
	plain, err := db.Seal.OpenFor(of, sealed, textPlace(traceID))
	return string(plain), sqldb.About(err, "the text of", traceID)
}
