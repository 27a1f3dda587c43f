package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/tenant"
)

// keyRow is a key with what of it is stored sealed.
type keyRow struct {
	tenant.Key
	secret, secrets, bound []byte
}

// keyTable is the table of keys. revoked_at changes by itself.
var keyTable = newTable("keys",
	col("id", fixed, func(r *keyRow) any { return &r.ID }),
	col("tenant", fixed, func(r *keyRow) any { return &r.Tenant }),
	col("environment", fixed, func(r *keyRow) any { return maybeTextAt(&r.Environment) }),
	col("name", all, func(r *keyRow) any { return &r.Name }),
	col("hash", fixed, func(r *keyRow) any { return digestAt(&r.Hash) }),
	col("hint", fixed, func(r *keyRow) any { return &r.Hint }),
	col("scopes", all, func(r *keyRow) any { return namesAt(&r.Scopes) }),
	col("webhook_url", all, func(r *keyRow) any { return &r.WebhookURL }),
	col("webhook_secret", all, func(r *keyRow) any { return &r.secret }),
	col("env", all, func(r *keyRow) any { return mapAt(&r.Env) }),
	col("secrets", all, func(r *keyRow) any { return &r.secrets }),
	col("bound", all, func(r *keyRow) any { return &r.bound }),
	col("created_at", fixed, func(r *keyRow) any { return timeAt(&r.CreatedAt) }),
	col("expires_at", all, func(r *keyRow) any { return maybeTimeAt(&r.ExpiresAt) }),
	col("revoked_at", fixed, func(r *keyRow) any { return maybeTimeAt(&r.RevokedAt) }),
)

// namesAt is a list of names of one kind, as JSON; "" for none.
func namesAt[T ~string](l *[]T) codec {
	read := func(text string) (l []T, err error) {
		if text != "" {
			err = json.Unmarshal([]byte(text), &l)
		}
		return l, err
	}
	return coded[[]T, string]{l, read, func(l []T) (any, error) { return jsonOf(l, len(l) == 0) }}
}

// openKey opens what of a row is sealed.
func (s *tenants) openKey(r *keyRow) (k tenant.Key, err error) {
	k = r.Key
	if k.Secrets, k.Bound, err = s.db.openSecrets(r.secrets, r.bound, keySecretsPlace(k.ID)); err != nil {
		return k, about(err, "variables", k.ID)
	}
	k.WebhookSecret, err = s.db.openText(r.secret, keyPlace(k.ID))
	return k, about(err, "secret", k.ID)
}

// sealKey is the way back.
func (s *tenants) sealKey(k tenant.Key) (r keyRow, err error) {
	r.Key, r.secret = k, s.db.sealText(k.WebhookSecret, keyPlace(k.ID))
	r.secrets, r.bound, err = s.db.sealSecrets(k.Secrets, k.Bound, keySecretsPlace(k.ID))
	return r, err
}

func keyPlace(id string) string { return "keys/webhook_secret/" + id }

func keySecretsPlace(id string) string { return "keys/secrets/" + id }

func (s *tenants) scanKey(sc scanner) (tenant.Key, error) {
	var r keyRow
	if err := keyTable.scan(sc, &r); err != nil {
		return tenant.Key{}, err
	}
	return s.openKey(&r)
}

func (s *tenants) CreateKey(ctx context.Context, k tenant.Key, events ...tenant.PolicyEvent) error {
	row, err := s.sealKey(k)
	if err != nil {
		return s.db.write.wrap("create a key", err)
	}
	err = s.db.write.transact(ctx, func(t *tx) error {
		if err := t.orNow(ctx, &row.CreatedAt); err != nil {
			return err
		}
		if k.Environment != "" {
			// The foreign key alone would take another tenant's.
			if err := t.row(ctx, `SELECT id FROM environments WHERE id = ? AND tenant = ?`, k.Environment, k.Tenant).Scan(new(string)); err != nil {
				return t.pool.found("create a key", err, tenant.ErrNoEnvironment)
			}
		}
		values, err := keyTable.values(insert, &row)
		if err != nil {
			return err
		}
		if _, err = t.exec(ctx, keyTable.insert, values...); err != nil {
			return err
		}
		return insertEvents(ctx, t, events)
	})
	return s.db.write.named("create a key", err, "key", k.Name)
}

func (s *tenants) UpdateKey(ctx context.Context, k tenant.Key) error {
	row, err := s.sealKey(k)
	if err != nil {
		return s.db.write.wrap("update a key", err)
	}
	values, err := keyTable.values(update, &row, k.ID, k.Tenant)
	if err != nil {
		return s.db.write.wrap("update a key", err)
	}
	err = execOne(ctx, s.db.write, tenant.ErrNoKey, `UPDATE keys SET `+keyTable.set+` WHERE id = ? AND tenant = ?`, values...)
	return s.db.write.named("update a key", err, "key", k.Name)
}

func (s *tenants) Key(ctx context.Context, tenantID tenant.ID, idOrName string) (tenant.Key, error) {
	k, err := s.scanKey(s.db.read.row(ctx, `SELECT `+keyTable.selected+` FROM keys`+byIDOrName, tenantID, idOrName, idOrName, idOrName))
	return k, s.db.read.found("get a key", err, tenant.ErrNoKey)
}

func (s *tenants) Keys(ctx context.Context, tenantID tenant.ID) ([]tenant.Key, error) {
	rows, err := s.db.read.rows(ctx, `SELECT `+keyTable.selected+` FROM keys WHERE tenant = ? ORDER BY seq`, tenantID)
	all, err := collect(rows, err, s.scanKey)
	return all, s.db.read.wrap("list keys", err)
}

func (s *tenants) RevokeKey(ctx context.Context, tenantID tenant.ID, id string, events ...tenant.PolicyEvent) error {
	err := s.db.write.transact(ctx, func(t *tx) error {
		if err := execOne(ctx, t, tenant.ErrNoKey, `UPDATE keys SET revoked_at = coalesce(revoked_at, atoll_now()) WHERE id = ? AND tenant = ?`, id, tenantID); err != nil {
			return err
		}
		return insertEvents(ctx, t, events)
	})
	return s.db.write.wrap("revoke a key", err)
}

// principalQuery is to be completed with what names the key.
var principalQuery = `SELECT ` + keyTable.of("k") + `, ` + tenantTable.of("t") + `, ` + planTable.of("p") + `, ` + environmentTable.of("e") + `,
	k.expires_at - atoll_now(), EXISTS (SELECT 1 FROM grants g WHERE g.key_id = k.id OR g.environment = k.environment) FROM keys k JOIN tenants t ON t.id = k.tenant JOIN plans p ON p.name = t.plan
	LEFT JOIN environments e ON e.id = k.environment
	WHERE k.revoked_at IS NULL AND t.disabled_at IS NULL`

func (s *tenants) Principal(ctx context.Context, hash [32]byte) (tenant.Principal, time.Duration, error) {
	p, left, err := s.principal(ctx, `k.hash = ?`, hash[:])
	return p, left, s.db.read.found("find a caller", err, tenant.ErrNoKey)
}

func (s *tenants) Enter(ctx context.Context, p *tenant.Principal, idOrName string) error {
	e, err := s.Environment(ctx, p.Tenant.ID, idOrName)
	if err != nil {
		return err
	}
	p.Entered(e)
	p.Storage, err = s.granted(ctx, p)
	return s.db.read.wrap("enter an environment", err)
}

func (s *tenants) principal(ctx context.Context, where string, arg any) (p tenant.Principal, left time.Duration, err error) {
	var key keyRow
	var env environmentRow
	var expiresIn sql.NullInt64
	var mounts bool
	dest := slices.Concat(keyTable.dest(&key), tenantTable.dest(&p.Tenant), planTable.dest(&p.Plan), environmentTable.dest(&env), []any{&expiresIn, &mounts})
	if err := s.db.read.row(ctx, principalQuery+` AND `+where, arg).Scan(dest...); err != nil {
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
