package tenant

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/tenant"
	policydb "github.com/atoll-run/atoll/internal/infra/store/policy"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

// keyRow is a key with what of it is stored sealed.
type keyRow struct {
	tenant.Key
	secret, secrets, bound []byte
}

// keyTable is the table of keys. revoked_at changes by itself.
var keyTable = sqldb.NewTable("keys",
	sqldb.Col("id", sqldb.Fixed, func(r *keyRow) any { return &r.ID }),
	sqldb.Col("tenant", sqldb.Fixed, func(r *keyRow) any { return &r.Tenant }),
	sqldb.Col("environment", sqldb.Fixed, func(r *keyRow) any { return sqldb.MaybeTextAt(&r.Environment) }),
	sqldb.Col("name", sqldb.All, func(r *keyRow) any { return &r.Name }),
	sqldb.Col("hash", sqldb.Fixed, func(r *keyRow) any { return sqldb.DigestAt(&r.Hash) }),
	sqldb.Col("hint", sqldb.Fixed, func(r *keyRow) any { return &r.Hint }),
	sqldb.Col("scopes", sqldb.All, func(r *keyRow) any { return sqldb.TextsAt(&r.Scopes) }),
	sqldb.Col("webhook_url", sqldb.All, func(r *keyRow) any { return &r.WebhookURL }),
	sqldb.Col("webhook_secret", sqldb.All, func(r *keyRow) any { return &r.secret }),
	sqldb.Col("env", sqldb.All, func(r *keyRow) any { return sqldb.MapAt(&r.Env) }),
	sqldb.Col("secrets", sqldb.All, func(r *keyRow) any { return &r.secrets }),
	sqldb.Col("bound", sqldb.All, func(r *keyRow) any { return &r.bound }),
	sqldb.Col("created_at", sqldb.Fixed, func(r *keyRow) any { return sqldb.TimeAt(&r.CreatedAt) }),
	sqldb.Col("expires_at", sqldb.All, func(r *keyRow) any { return sqldb.MaybeTimeAt(&r.ExpiresAt) }),
	sqldb.Col("revoked_at", sqldb.Fixed, func(r *keyRow) any { return sqldb.MaybeTimeAt(&r.RevokedAt) }),
)

// openKey opens what of a row is sealed.
func (s *Store) openKey(r *keyRow) (k tenant.Key, err error) {
	k = r.Key
	if k.Secrets, k.Bound, err = s.openSecrets(r.secrets, r.bound, keySecretsPlace(k.ID)); err != nil {
		return k, sqldb.About(err, "variables", k.ID)
	}
	k.WebhookSecret, err = s.db.OpenText(r.secret, KeyPlace(k.ID))
	return k, sqldb.About(err, "secret", k.ID)
}

// sealKey is the way back.
func (s *Store) sealKey(k tenant.Key) (r keyRow, err error) {
	r.Key, r.secret = k, s.db.SealText(k.WebhookSecret, KeyPlace(k.ID))
	r.secrets, r.bound, err = s.sealSecrets(k.Secrets, k.Bound, keySecretsPlace(k.ID))
	return r, err
}

// KeyPlace is the place that a key's webhook secret is sealed for.
func KeyPlace(id string) string { return "keys/webhook_secret/" + id }

func keySecretsPlace(id string) string { return "keys/secrets/" + id }

func (s *Store) scanKey(sc sqldb.Scanner) (tenant.Key, error) {
	var r keyRow
	if err := keyTable.Scan(sc, &r); err != nil {
		return tenant.Key{}, err
	}
	return s.openKey(&r)
}

func (s *Store) CreateKey(ctx context.Context, k tenant.Key, events ...tenant.PolicyEvent) error {
	row, err := s.sealKey(k)
	if err != nil {
		return s.db.Write.Wrap("create a key", err)
	}
	err = s.db.Write.Transact(ctx, func(t *sqldb.Tx) error {
		if err := t.OrNow(ctx, &row.CreatedAt); err != nil {
			return err
		}
		if k.Environment != "" {
			// The foreign key alone would take another tenant's.
			if err := t.Row(ctx, `SELECT id FROM environments WHERE id = ? AND tenant = ?`, k.Environment, k.Tenant).Scan(new(string)); err != nil {
				return t.Pool.Found("create a key", err, tenant.ErrNoEnvironment)
			}
		}
		if err := keyTable.Add(ctx, t, &row); err != nil {
			return err
		}
		return policydb.Insert(ctx, t, events...)
	})
	return s.db.Write.Named("create a key", err, "key", k.Name)
}

func (s *Store) UpdateKey(ctx context.Context, k tenant.Key) error {
	row, err := s.sealKey(k)
	if err != nil {
		return s.db.Write.Wrap("update a key", err)
	}
	values, err := keyTable.Values(sqldb.Update, &row, k.ID, k.Tenant)
	if err != nil {
		return s.db.Write.Wrap("update a key", err)
	}
	err = sqldb.ExecOne(ctx, s.db.Write, tenant.ErrNoKey, `UPDATE keys SET `+keyTable.Set+` WHERE id = ? AND tenant = ?`, values...)
	return s.db.Write.Named("update a key", err, "key", k.Name)
}

func (s *Store) Key(ctx context.Context, tenantID tenant.ID, idOrName string) (tenant.Key, error) {
	k, err := s.scanKey(s.db.Read.Row(ctx, `SELECT `+keyTable.Selected+` FROM keys`+byIDOrName, tenantID, idOrName, idOrName, idOrName))
	return k, s.db.Read.Found("get a key", err, tenant.ErrNoKey)
}

func (s *Store) Keys(ctx context.Context, tenantID tenant.ID) ([]tenant.Key, error) {
	all, err := sqldb.Select(ctx, s.db.Read, s.scanKey, `SELECT `+keyTable.Selected+` FROM keys WHERE tenant = ? ORDER BY seq`, tenantID)
	return all, s.db.Read.Wrap("list keys", err)
}

func (s *Store) RevokeKey(ctx context.Context, tenantID tenant.ID, id string, events ...tenant.PolicyEvent) error {
	return s.db.Transact(ctx, "revoke a key", func(t *sqldb.Tx) error {
		if err := sqldb.ExecOne(ctx, t, tenant.ErrNoKey, `UPDATE keys SET revoked_at = coalesce(revoked_at, atoll_now()) WHERE id = ? AND tenant = ?`, id, tenantID); err != nil {
			return err
		}
		return policydb.Insert(ctx, t, events...)
	})
}

// principalQuery selects a principal. Append the condition that selects the key.
var principalQuery = `SELECT ` + keyTable.Of("k") + `, ` + tenantTable.Of("t") + `, ` + planTable.Of("p") + `, ` + environmentTable.Of("e") + `,
	k.expires_at - atoll_now(), EXISTS (SELECT 1 FROM grants g WHERE g.key_id = k.id OR g.environment = k.environment) FROM keys k JOIN tenants t ON t.id = k.tenant JOIN plans p ON p.name = t.plan
	LEFT JOIN environments e ON e.id = k.environment
	WHERE k.revoked_at IS NULL AND t.disabled_at IS NULL`

func (s *Store) Principal(ctx context.Context, hash [32]byte) (tenant.Principal, time.Duration, error) {
	p, left, err := s.principal(ctx, `k.hash = ?`, hash[:])
	return p, left, s.db.Read.Found("find a caller", err, tenant.ErrNoKey)
}

func (s *Store) Enter(ctx context.Context, p *tenant.Principal, idOrName string) error {
	e, err := s.Environment(ctx, p.Tenant.ID, idOrName)
	if err != nil {
		return err
	}
	p.Entered(e)
	p.Storage, err = s.granted(ctx, p)
	return s.db.Read.Wrap("enter an environment", err)
}

func (s *Store) principal(ctx context.Context, where string, arg any) (p tenant.Principal, left time.Duration, err error) {
	var key keyRow
	var env environmentRow
	var expiresIn sql.NullInt64
	var mounts bool
	dest := slices.Concat(keyTable.Dest(&key), tenantTable.Dest(&p.Tenant), planTable.Dest(&p.Plan), environmentTable.Dest(&env), []any{&expiresIn, &mounts})
	if err := s.db.Read.Row(ctx, principalQuery+` AND `+where, arg).Scan(dest...); err != nil {
		return p, 0, err
	}
	if expiresIn.Valid && expiresIn.Int64 <= 0 {
		return p, 0, sql.ErrNoRows
	}
	if p.Key, err = s.openKey(&key); err != nil {
		return p, 0, err
	}
	if env.ID != "" {
		if p.Environment, err = s.openEnvironment(&env); err != nil {
			return p, 0, err
		}
	}
	if mounts {
		if p.Storage, err = s.granted(ctx, &p); err != nil {
			return p, 0, err
		}
	}
	return p, time.Duration(expiresIn.Int64) * time.Microsecond, nil
}
