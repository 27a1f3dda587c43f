package tenant

import (
	"context"
	"database/sql"
	"time"

	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/usage"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

// tokenRow is a token with its place in lists.
type tokenRow struct {
	tenant.Token
	seq int64
}

// tokenTable is the table of tokens. Separate statements update usage and revoked_at.
var tokenTable = sqldb.NewTable("tokens",
	sqldb.Col("seq", sqldb.Read, func(r *tokenRow) any { return &r.seq }),
	sqldb.Col("id", sqldb.Fixed, func(r *tokenRow) any { return &r.ID }),
	sqldb.Col("tenant", sqldb.Fixed, func(r *tokenRow) any { return &r.Tenant }),
	sqldb.Col("key_id", sqldb.Fixed, func(r *tokenRow) any { return &r.Key }),
	sqldb.Col("hash", sqldb.Fixed, func(r *tokenRow) any { return sqldb.DigestAt(&r.Hash) }),
	sqldb.Col("scopes", sqldb.Fixed, func(r *tokenRow) any { return sqldb.TextsAt(&r.Scopes) }),
	sqldb.Col("operations", sqldb.Fixed, func(r *tokenRow) any { return sqldb.ListAt(&r.Operations) }),
	sqldb.Col("rights", sqldb.Fixed, func(r *tokenRow) any { return sqldb.TextsAt(&r.Rights) }),
	sqldb.Col("session", sqldb.Fixed, func(r *tokenRow) any { return &r.Session }),
	sqldb.Col("sandbox", sqldb.Fixed, func(r *tokenRow) any { return &r.Sandbox.ID }),
	sqldb.Col("sandbox_session", sqldb.Fixed, func(r *tokenRow) any { return &r.Sandbox.Session }),
	sqldb.Col("sandbox_name", sqldb.Fixed, func(r *tokenRow) any { return &r.Sandbox.Name }),
	sqldb.Col("origins", sqldb.Fixed, func(r *tokenRow) any { return sqldb.ListAt(&r.Origins) }),
	sqldb.Col("max_cost", sqldb.Fixed, func(r *tokenRow) any { return &r.MaxCost }),
	sqldb.Col("cost", sqldb.Fixed, func(r *tokenRow) any { return &r.Cost }),
	sqldb.Col("max_executions", sqldb.Fixed, func(r *tokenRow) any { return &r.MaxExecutions }),
	sqldb.Col("executions", sqldb.Fixed, func(r *tokenRow) any { return &r.Executions }),
	sqldb.Col("created_at", sqldb.Fixed, func(r *tokenRow) any { return sqldb.TimeAt(&r.CreatedAt) }),
	sqldb.Col("expires_at", sqldb.Fixed, func(r *tokenRow) any { return sqldb.TimeAt(&r.ExpiresAt) }),
	sqldb.Col("revoked_at", sqldb.Fixed, func(r *tokenRow) any { return sqldb.MaybeTimeAt(&r.RevokedAt) }),
)

// maxPurgedTokens is how many old tokens are removed with each new one.
const maxPurgedTokens = 100

func (s *Store) CreateToken(ctx context.Context, t tenant.Token, life time.Duration, most int, keep time.Duration) (tenant.Token, error) {
	err := s.db.Write.Transact(ctx, func(tx *sqldb.Tx) error {
		now, err := tx.Clock(ctx)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM tokens WHERE seq IN (SELECT seq FROM tokens WHERE expires_at < ? ORDER BY expires_at LIMIT ?)`, sqldb.Micros(now.Add(-keep)), maxPurgedTokens); err != nil {
			return err
		}
		var living int
		var first sql.NullInt64
		if err := tx.Row(ctx, `SELECT count(*), min(expires_at) FROM tokens WHERE key_id = ? AND expires_at > ? AND revoked_at IS NULL`, t.Key, sqldb.Micros(now)).Scan(&living, &first); err != nil {
			return err
		}
		if living >= most {
			return tenant.TooManyTokens(living, sqldb.Instant(first.Int64))
		}
		// The foreign key alone would take another tenant's, and one that is revoked.
		if err := tx.Row(ctx, `SELECT id FROM keys WHERE id = ? AND tenant = ? AND revoked_at IS NULL`, t.Key, t.Tenant).Scan(new(string)); err != nil {
			return tx.Pool.Found("create a token", err, tenant.ErrNoKey)
		}
		t.CreatedAt, t.ExpiresAt = now, now.Add(life)
		return tokenTable.Add(ctx, tx, &tokenRow{Token: t})
	})
	return t, s.db.Write.Wrap("create a token", err)
}

func (s *Store) Tokens(ctx context.Context, tenantID tenant.ID, key, cursor string, limit int) (page []tenant.Token, next string, err error) {
	rows, next, err := sqldb.PageOf(ctx, s.db, sqldb.Page{Cursor: cursor, Limit: limit}, "tokens/"+key, `SELECT `+tokenTable.Selected+` FROM tokens WHERE tenant = ? AND key_id = ? AND expires_at > atoll_now() AND revoked_at IS NULL`,
		"seq", []any{tenantID, key}, tokenTable.Row, func(r *tokenRow) int64 { return r.seq })
	for i := range rows {
		page = append(page, rows[i].Token)
	}
	return page, next, s.db.Read.Wrap("list tokens", err)
}

func (s *Store) RevokeToken(ctx context.Context, tenantID tenant.ID, key, id string) (tenant.Token, error) {
	r, err := tokenTable.Row(s.db.Write.Row(ctx, `UPDATE tokens SET revoked_at = coalesce(revoked_at, atoll_now()) WHERE id = ? AND tenant = ? AND key_id = ? RETURNING `+tokenTable.Selected, id, tenantID, key))
	return r.Token, s.db.Write.Found("revoke a token", err, tenant.ErrNoToken)
}

func (s *Store) Bearer(ctx context.Context, hash [32]byte) (tenant.Principal, time.Duration, error) {
	p, left, err := s.bearer(ctx, `hash = ?`, hash[:])
	if err == nil && left <= 0 {
		err = sql.ErrNoRows
	}
	return p, left, s.db.Read.Found("find a caller", err, tenant.ErrNoToken)
}

func (s *Store) TokenHolder(ctx context.Context, tenantID tenant.ID, id string, begun bool) (tenant.Principal, error) {
	p, left, err := s.bearer(ctx, `id = ? AND tenant = ?`, id, tenantID)
	if err == nil && left <= 0 && !begun {
		err = sql.ErrNoRows
	}
	return p, s.db.Read.Found("find a caller", err, tenant.ErrNoToken)
}

// bearer finds the caller who has a token that is not revoked. left is how long that is
// valid, not above 0 for one that has expired.
func (s *Store) bearer(ctx context.Context, where string, args ...any) (p tenant.Principal, left time.Duration, err error) {
	var r tokenRow
	var us int64
	err = s.db.Read.Row(ctx, `SELECT `+tokenTable.Selected+`, expires_at - atoll_now() FROM tokens WHERE `+where+` AND revoked_at IS NULL`, args...).Scan(append(tokenTable.Dest(&r), &us)...)
	if err != nil {
		return p, 0, err
	}
	p, keyLeft, err := s.principal(ctx, `k.id = ?`, r.Key)
	if err != nil {
		return p, 0, err
	}
	left = time.Duration(us) * time.Microsecond
	if keyLeft > 0 {
		left = min(left, keyLeft)
	}
	p.Narrow(&r.Token)
	return p, left, nil
}

func (s *Store) TokenSpent(ctx context.Context, id string) (used, most usage.Money, err error) {
	err = s.db.Read.Row(ctx, `SELECT max_cost, cost FROM tokens WHERE id = ?`, id).Scan(&most, &used)
	if err == sql.ErrNoRows {
		return 0, 0, nil
	}
	return used, most, s.db.Read.Wrap("look at what a token has spent", err)
}
