package sandbox

import (
	"context"
	"database/sql"

	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

// ownedRoom refuses another sandbox of a session with an agent: one that there is not, that has
// ended, works in another environment, or has the most. The session's row is locked, so that
// none is made while the session ends.
func ownedRoom(ctx context.Context, t *sqldb.Tx, sb *sandbox.Sandbox) error {
	of := session.ID(sb.Session)
	if !of.Valid() {
		return nil
	}
	lock := ""
	if t.Pool.Postgres {
		lock = ` FOR SHARE`
	}
	var environment string
	var archived sql.NullInt64
	err := t.Row(ctx, `SELECT environment, archived_at FROM sessions WHERE tenant = ? AND id = ?`+lock, sb.Tenant, string(of)).Scan(&environment, &archived)
	switch {
	case err == sql.ErrNoRows:
		return session.ErrNotFound
	case err != nil:
		return err
	case environment != sb.Environment:
		return session.ErrElsewhere
	case archived.Valid:
		return session.ErrArchived
	}
	var n int
	if err := t.Row(ctx, `SELECT COUNT(*) FROM sandboxes WHERE tenant = ? AND environment = ? AND session = ? AND state <> 'destroyed'`, sb.Tenant, sb.Environment, string(of)).Scan(&n); err != nil {
		return err
	}
	if n >= session.MaxSandboxes {
		return session.TooManySandboxes(n)
	}
	return nil
}

// EndOfSession has servers destroy the sandboxes of a session that ends.
func EndOfSession(ctx context.Context, t *sqldb.Tx, id tenant.ID, of session.ID) error {
	_, err := t.Exec(ctx, `UPDATE sandboxes SET bereft = TRUE WHERE tenant = ? AND session = ? AND state <> 'destroyed'`, id, string(of))
	return err
}
