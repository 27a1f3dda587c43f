package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/usage"
)

// tokenRow is a token with its place in lists.
type tokenRow struct {
	tenant.Token
	seq int64
}

// tokenTable is the table of tokens. What they have used and revoked_at change by themselves.
var tokenTable = newTable("tokens",
	col("seq", read, func(r *tokenRow) any { return &r.seq }),
	col("id", fixed, func(r *tokenRow) any { return &r.ID }),
	col("tenant", fixed, func(r *tokenRow) any { return &r.Tenant }),
	col("key_id", fixed, func(r *tokenRow) any { return &r.Key }),
	col("hash", fixed, func(r *tokenRow) any { return digestAt(&r.Hash) }),
	col("scopes", fixed, func(r *tokenRow) any { return namesAt(&r.Scopes) }),
	col("operations", fixed, func(r *tokenRow) any { return listAt(&r.Operations) }),
	col("rights", fixed, func(r *tokenRow) any { return namesAt(&r.Rights) }),
	col("session", fixed, func(r *tokenRow) any { return &r.Session }),
	col("sandbox", fixed, func(r *tokenRow) any { return &r.Sandbox.ID }),
	col("sandbox_session", fixed, func(r *tokenRow) any { return &r.Sandbox.Session }),
	col("sandbox_name", fixed, func(r *tokenRow) any { return &r.Sandbox.Name }),
	col("origins", fixed, func(r *tokenRow) any { return listAt(&r.Origins) }),
	col("max_cost", fixed, func(r *tokenRow) any { return &r.MaxCost }),
	col("cost", fixed, func(r *tokenRow) any { return &r.Cost }),
	col("max_executions", fixed, func(r *tokenRow) any { return &r.MaxExecutions }),
	col("executions", fixed, func(r *tokenRow) any { return &r.Executions }),
	col("created_at", fixed, func(r *tokenRow) any { return timeAt(&r.CreatedAt) }),
	col("expires_at", fixed, func(r *tokenRow) any { return timeAt(&r.ExpiresAt) }),
	col("revoked_at", fixed, func(r *tokenRow) any { return maybeTimeAt(&r.RevokedAt) }),
)

func scanToken(sc scanner) (r tokenRow, err error) { return r, tokenTable.scan(sc, &r) }

// maxPurgedTokens is how many old tokens are removed with each new one.
const maxPurgedTokens = 100

func (s *tenants) CreateToken(ctx context.Context, t tenant.Token, life time.Duration, most int, keep time.Duration) (tenant.Token, error) {
	err := s.db.write.transact(ctx, func(tx *tx) error {
		now, err := tx.pool.clock(ctx, tx)
		if err != nil {
			return err
		}
		if _, err := tx.exec(ctx, `DELETE FROM tokens WHERE seq IN (SELECT seq FROM tokens WHERE expires_at < ? ORDER BY expires_at LIMIT ?)`, micros(now.Add(-keep)), maxPurgedTokens); err != nil {
			return err
		}
		var living int
		var first sql.NullInt64
		if err := tx.row(ctx, `SELECT count(*), min(expires_at) FROM tokens WHERE key_id = ? AND expires_at > ? AND revoked_at IS NULL`, t.Key, micros(now)).Scan(&living, &first); err != nil {
			return err
		}
		if living >= most {
			return tenant.TooManyTokens(living, instant(first.Int64))
		}
		// The foreign key alone would take another tenant's, and one that is revoked.
		if err := tx.row(ctx, `SELECT id FROM keys WHERE id = ? AND tenant = ? AND revoked_at IS NULL`, t.Key, t.Tenant).Scan(new(string)); err != nil {
			return tx.pool.found("create a token", err, tenant.ErrNoKey)
		}
		t.CreatedAt, t.ExpiresAt = now, now.Add(life)
		values, err := tokenTable.values(insert, &tokenRow{Token: t})
		if err != nil {
			return err
		}
		_, err = tx.exec(ctx, tokenTable.insert, values...)
		return err
	})
	return t, s.db.write.wrap("create a token", err)
}

func (s *tenants) Tokens(ctx context.Context, tenantID tenant.ID, key, cursor string, limit int) (page []tenant.Token, next string, err error) {
	rows, next, err := pageOf(ctx, s.db, skill.Page{Cursor: cursor, Limit: limit}, "tokens/"+key, `SELECT `+tokenTable.selected+` FROM tokens WHERE tenant = ? AND key_id = ? AND expires_at > atoll_now() AND revoked_at IS NULL`,
		"seq", []any{tenantID, key}, scanToken, func(r *tokenRow) int64 { return r.seq })
	for i := range rows {
		page = append(page, rows[i].Token)
	}
	return page, next, s.db.read.wrap("list tokens", err)
}

func (s *tenants) RevokeToken(ctx context.Context, tenantID tenant.ID, key, id string) (tenant.Token, error) {
	r, err := scanToken(s.db.write.row(ctx, `UPDATE tokens SET revoked_at = coalesce(revoked_at, atoll_now()) WHERE id = ? AND tenant = ? AND key_id = ? RETURNING `+tokenTable.selected, id, tenantID, key))
	return r.Token, s.db.write.found("revoke a token", err, tenant.ErrNoToken)
}

func (s *tenants) Bearer(ctx context.Context, hash [32]byte) (tenant.Principal, time.Duration, error) {
	p, left, err := s.bearer(ctx, `hash = ?`, hash[:])
	if err == nil && left <= 0 {
		err = sql.ErrNoRows
	}
	return p, left, s.db.read.found("find a caller", err, tenant.ErrNoToken)
}

func (s *tenants) TokenHolder(ctx context.Context, tenantID tenant.ID, id string, begun bool) (tenant.Principal, error) {
	p, left, err := s.bearer(ctx, `id = ? AND tenant = ?`, id, tenantID)
	if err == nil && left <= 0 && !begun {
		err = sql.ErrNoRows
	}
	return p, s.db.read.found("find a caller", err, tenant.ErrNoToken)
}

// bearer finds the caller who has a token that is not revoked. left is how long that is
// valid, not above 0 for one that has expired.
func (s *tenants) bearer(ctx context.Context, where string, args ...any) (p tenant.Principal, left time.Duration, err error) {
	var r tokenRow
	var us int64
	err = s.db.read.row(ctx, `SELECT `+tokenTable.selected+`, expires_at - atoll_now() FROM tokens WHERE `+where+` AND revoked_at IS NULL`, args...).Scan(append(tokenTable.dest(&r), &us)...)
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

func (s *tenants) TokenSpent(ctx context.Context, id string) (used, most usage.Money, err error) {
	err = s.db.read.row(ctx, `SELECT max_cost, cost FROM tokens WHERE id = ?`, id).Scan(&most, &used)
	if err == sql.ErrNoRows {
		return 0, 0, nil
	}
	return used, most, s.db.read.wrap("look at what a token has spent", err)
}

// token counts an execution that a token asks for, if its bound has room.
func (t *admit) token(ctx context.Context, b *batch) (refusal, err error) {
	if !tenant.IsToken(t.e.Key) {
		return nil, nil
	}
	err = b.row(ctx, `UPDATE tokens SET executions = executions + 1 WHERE id = ? AND (max_executions = 0 OR executions < max_executions) RETURNING executions`, t.e.Key).Scan(new(int64))
	if err != sql.ErrNoRows {
		return nil, err
	}
	var most int64
	if err := b.row(ctx, `SELECT max_executions FROM tokens WHERE id = ?`, t.e.Key).Scan(&most); err == sql.ErrNoRows {
		return tenant.ErrKeyInvalid, nil // it was removed meanwhile
	} else if err != nil {
		return nil, err
	}
	return tenant.Executed(most), nil
}

// spend adds a charge to what a token has spent, at the end of the batch.
func (b *batch) spend(c *usage.Charge) {
	if c.Cost <= 0 || !tenant.IsToken(c.Key) {
		return
	}
	if b.spent == nil {
		b.spent = map[string]usage.Money{}
	}
	b.spent[c.Key] = b.spent[c.Key].Plus(c.Cost)
}
