package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/tenant"
)

const keyColumns = `id, tenant, environment, name, hash, hint, scopes, webhook_url, webhook_secret, env, secrets, created_at, expires_at, revoked_at, bound`

// keyScan holds what of a key needs another look after it was read.
type keyScan struct {
	k                tenant.Key
	environment      sql.NullString
	hash, secret     []byte
	env              string
	secrets, bound   []byte // sealed
	scopes           string
	created          int64
	expires, revoked sql.NullInt64
}

func (s *keyScan) dest() []any {
	k := &s.k
	return []any{&k.ID, &k.Tenant, &s.environment, &k.Name, &s.hash, &k.Hint, &s.scopes, &k.WebhookURL, &s.secret, &s.env, &s.secrets, &s.created, &s.expires, &s.revoked, &s.bound}
}

func (s *tenants) finishKey(r *keyScan) (tenant.Key, error) {
	k := r.k
	k.Environment = r.environment.String
	copy(k.Hash[:], r.hash)
	k.CreatedAt, k.ExpiresAt, k.RevokedAt = instant(r.created), maybeInstant(r.expires), maybeInstant(r.revoked)
	if r.scopes != "" {
		if err := json.Unmarshal([]byte(r.scopes), &k.Scopes); err != nil {
			return k, err
		}
	}
	var err error
	if k.Env, k.Secrets, k.Bound, err = s.db.variablesOf(r.env, r.secrets, r.bound, keySecretsPlace(k.ID)); err != nil {
		return k, fmt.Errorf("variables of %s: %w", k.ID, err)
	}
	if len(r.secret) > 0 {
		secret, err := s.db.seal.Open(r.secret, keyPlace(k.ID))
		if err != nil {
			return k, fmt.Errorf("secret of %s: %w", k.ID, err)
		}
		k.WebhookSecret = string(secret)
	}
	return k, nil
}

func keyPlace(id string) string { return "keys/webhook_secret/" + id }

func keySecretsPlace(id string) string { return "keys/secrets/" + id }

func (s *tenants) scanKey(sc scanner) (tenant.Key, error) {
	var r keyScan
	if err := sc.Scan(r.dest()...); err != nil {
		return tenant.Key{}, err
	}
	return s.finishKey(&r)
}

// keyValues are what can be changed of a key, as it is stored.
func (s *tenants) keyValues(k tenant.Key) ([]any, error) {
	scopes, err := jsonOf(k.Scopes, len(k.Scopes) == 0)
	if err != nil {
		return nil, err
	}
	env, secrets, bound, err := s.db.variableValues(k.Env, k.Secrets, k.Bound, keySecretsPlace(k.ID))
	if err != nil {
		return nil, err
	}
	var secret []byte
	if k.WebhookSecret != "" {
		secret = s.db.seal.Seal([]byte(k.WebhookSecret), keyPlace(k.ID))
	}
	return []any{k.Name, scopes, k.WebhookURL, secret, env, secrets, bound, maybeMicros(k.ExpiresAt)}, nil
}

func (s *tenants) CreateKey(ctx context.Context, k tenant.Key) error {
	values, err := s.keyValues(k)
	if err != nil {
		return s.db.write.wrap("create a key", err)
	}
	err = s.db.write.transact(ctx, func(t *tx) error {
		if err := t.orNow(ctx, &k.CreatedAt); err != nil {
			return err
		}
		var environment any
		if k.Environment != "" {
			environment = k.Environment
			// The foreign key alone would take another tenant's.
			if err := t.row(ctx, `SELECT id FROM environments WHERE id = ? AND tenant = ?`, k.Environment, k.Tenant).Scan(new(string)); err != nil {
				return t.pool.found("create a key", err, "no such environment")
			}
		}
		_, err := t.exec(ctx, `INSERT INTO keys (name, scopes, webhook_url, webhook_secret, env, secrets, bound, expires_at, id, tenant, environment, hash, hint, created_at, revoked_at)
				VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			append(values, k.ID, k.Tenant, environment, k.Hash[:], k.Hint, micros(k.CreatedAt), maybeMicros(k.RevokedAt))...)
		return err
	})
	return s.db.write.named("create a key", err, "key", k.Name)
}

func (s *tenants) UpdateKey(ctx context.Context, k tenant.Key) error {
	values, err := s.keyValues(k)
	if err != nil {
		return s.db.write.wrap("update a key", err)
	}
	err = execOne(ctx, s.db.write, "key", `UPDATE keys SET name = ?, scopes = ?, webhook_url = ?, webhook_secret = ?, env = ?, secrets = ?, bound = ?, expires_at = ? WHERE id = ? AND tenant = ?`,
		append(values, k.ID, k.Tenant)...)
	return s.db.write.named("update a key", err, "key", k.Name)
}

func (s *tenants) Key(ctx context.Context, tenantID tenant.ID, idOrName string) (tenant.Key, error) {
	k, err := s.scanKey(s.db.read.row(ctx, `SELECT `+keyColumns+` FROM keys`+byIDOrName, tenantID, idOrName, idOrName, idOrName))
	return k, s.db.read.found("get a key", err, "no such key")
}

func (s *tenants) Keys(ctx context.Context, tenantID tenant.ID) ([]tenant.Key, error) {
	rows, err := s.db.read.rows(ctx, `SELECT `+keyColumns+` FROM keys WHERE tenant = ? ORDER BY seq`, tenantID)
	all, err := collect(rows, err, s.scanKey)
	return all, s.db.read.wrap("list keys", err)
}

func (s *tenants) RevokeKey(ctx context.Context, tenantID tenant.ID, id string) error {
	err := execOne(ctx, s.db.write, "key", `UPDATE keys SET revoked_at = coalesce(revoked_at, atoll_now()) WHERE id = ? AND tenant = ?`, id, tenantID)
	return s.db.write.wrap("revoke a key", err)
}

var principalQuery = `SELECT ` + prefixed("k", keyColumns) + `, ` + prefixed("t", tenantColumns) + `, ` + prefixed("p", planColumns) + `, ` + prefixed("e", environmentColumns) + `,
	k.expires_at - atoll_now(), EXISTS (SELECT 1 FROM grants g WHERE g.key_id = k.id OR g.environment = k.environment) FROM keys k JOIN tenants t ON t.id = k.tenant JOIN plans p ON p.name = t.plan
	LEFT JOIN environments e ON e.id = k.environment
	WHERE k.hash = ? AND k.revoked_at IS NULL AND t.disabled_at IS NULL`

// prefixed qualifies columns with a table's alias.
func prefixed(alias, columns string) string {
	return alias + "." + strings.Join(strings.Fields(strings.ReplaceAll(columns, ",", " ")), ", "+alias+".")
}

func (s *tenants) Principal(ctx context.Context, hash [32]byte) (tenant.Principal, time.Duration, error) {
	p, left, err := s.principal(ctx, hash)
	return p, left, s.db.read.found("find a caller", err, "no such key")
}

func (s *tenants) principal(ctx context.Context, hash [32]byte) (p tenant.Principal, left time.Duration, err error) {
	var key keyScan
	var of tenantScan
	var plan planScan
	var env environmentScan
	var expiresIn sql.NullInt64
	var mounts bool
	dest := append(append(append(append(key.dest(), of.dest()...), plan.dest()...), env.dest()...), &expiresIn, &mounts)
	if err := s.db.read.row(ctx, principalQuery, hash[:]).Scan(dest...); err != nil {
		return p, 0, err
	}
	if expiresIn.Valid && expiresIn.Int64 <= 0 {
		return p, 0, sql.ErrNoRows
	}
	if p.Key, err = s.finishKey(&key); err != nil {
		return p, 0, err
	}
	if p.Tenant, err = of.finish(); err != nil {
		return p, 0, err
	}
	if p.Environment, err = s.finishEnvironment(&env); err != nil {
		return p, 0, err
	}
	p.Plan = plan.finish()
	if mounts {
		if p.Storage, err = s.granted(ctx, &p); err != nil {
			return p, 0, err
		}
	}
	return p, time.Duration(expiresIn.Int64) * time.Microsecond, nil
}
