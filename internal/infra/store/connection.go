package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

const connectionColumns = `id, tenant, slug, kind, prefix, read_only, target, credentials, created_at`

// targetRow is how a connection's target is stored, without its credentials. A
// name is never given another meaning; likewise in credentialsRow.
type targetRow struct {
	Bucket    string `json:"bucket,omitempty"`
	Region    string `json:"region,omitempty"`
	Endpoint  string `json:"endpoint,omitempty"`
	PathStyle bool   `json:"path_style,omitempty"`
	Account   string `json:"account,omitempty"`
}

type credentialsRow struct {
	AccessKeyID     string `json:"access_key_id,omitempty"`
	SecretAccessKey string `json:"secret_access_key,omitempty"`
	ServiceAccount  string `json:"service_account,omitempty"`
	AccountKey      string `json:"account_key,omitempty"`
}

func credentialsPlace(id string) string { return "connections/credentials/" + id }

// connectionScan holds what of a connection needs another look after it was read.
type connectionScan struct {
	c       storage.Connection
	target  string
	sealed  []byte
	created int64
}

func (s *connectionScan) dest() []any {
	c := &s.c
	return []any{&c.ID, &c.Tenant, &c.Slug, &c.Kind, &c.Prefix, &c.ReadOnly, &s.target, &s.sealed, &s.created}
}

func (s *tenants) finishConnection(r *connectionScan) (storage.Connection, error) {
	c := r.c
	c.CreatedAt = instant(r.created)
	var t targetRow
	if err := json.Unmarshal([]byte(r.target), &t); err != nil {
		return c, err
	}
	c.Target = storage.Target{Bucket: t.Bucket, Region: t.Region, Endpoint: t.Endpoint, PathStyle: t.PathStyle, Account: t.Account}
	if len(r.sealed) == 0 {
		return c, nil
	}
	plain, err := s.db.seal.Open(r.sealed, credentialsPlace(c.ID))
	if err != nil {
		return c, fmt.Errorf("credentials of %s: %w", c.ID, err)
	}
	var secret credentialsRow
	err = json.Unmarshal(plain, &secret)
	c.Credentials = storage.Credentials(secret)
	return c, err
}

func (s *tenants) scanConnection(sc scanner) (storage.Connection, error) {
	var r connectionScan
	if err := sc.Scan(r.dest()...); err != nil {
		return storage.Connection{}, err
	}
	return s.finishConnection(&r)
}

// connectionValues are target and credentials as they are stored.
func (s *tenants) connectionValues(c storage.Connection) (target string, sealed []byte, err error) {
	t := c.Target
	if target, err = jsonOf(targetRow{t.Bucket, t.Region, t.Endpoint, t.PathStyle, t.Account}, false); err != nil {
		return "", nil, err
	}
	if t.Credentials != (storage.Credentials{}) {
		plain, err := json.Marshal(credentialsRow(t.Credentials))
		if err != nil {
			return "", nil, err
		}
		sealed = s.db.seal.Seal(plain, credentialsPlace(c.ID))
	}
	return target, sealed, nil
}

func (s *tenants) CreateConnection(ctx context.Context, c storage.Connection) error {
	target, sealed, err := s.connectionValues(c)
	if err != nil {
		return s.db.write.wrap("create a connection", err)
	}
	err = s.db.write.transact(ctx, func(t *tx) error {
		if err := t.orNow(ctx, &c.CreatedAt); err != nil {
			return err
		}
		_, err := t.exec(ctx, `INSERT INTO connections (`+connectionColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			c.ID, c.Tenant, c.Slug, string(c.Kind), string(c.Prefix), c.ReadOnly, target, sealed, micros(c.CreatedAt))
		return err
	})
	return s.db.write.named("create a connection", err, "connection", c.Slug)
}

func (s *tenants) UpdateConnection(ctx context.Context, c storage.Connection) error {
	target, sealed, err := s.connectionValues(c)
	if err != nil {
		return s.db.write.wrap("update a connection", err)
	}
	err = execOne(ctx, s.db.write, "connection", `UPDATE connections SET prefix = ?, read_only = ?, target = ?, credentials = ? WHERE id = ? AND tenant = ?`,
		string(c.Prefix), c.ReadOnly, target, sealed, c.ID, c.Tenant)
	return s.db.write.wrap("update a connection", err)
}

func (s *tenants) Connection(ctx context.Context, id tenant.ID, idOrSlug string) (storage.Connection, error) {
	c, err := s.scanConnection(s.db.read.row(ctx, `SELECT `+connectionColumns+` FROM connections WHERE tenant = ? AND (id = ? OR slug = ?)`, id, idOrSlug, idOrSlug))
	return c, s.db.read.found("get a connection", err, "no such connection")
}

func (s *tenants) Connections(ctx context.Context, id tenant.ID) ([]storage.Connection, error) {
	rows, err := s.db.read.rows(ctx, `SELECT `+connectionColumns+` FROM connections WHERE tenant = ? ORDER BY seq`, id)
	all, err := collect(rows, err, s.scanConnection)
	return all, s.db.read.wrap("list connections", err)
}

func (s *tenants) DeleteConnection(ctx context.Context, tenantID tenant.ID, id string) error {
	err := execOne(ctx, s.db.write, "connection", `DELETE FROM connections WHERE id = ? AND tenant = ?`, id, tenantID)
	if violates(err, foreign) {
		return fault.Wrap(fault.Conflict, err, "environments or keys mount this connection; remove its grants first")
	}
	return s.db.write.wrap("delete a connection", err)
}

const grantColumns = `id, tenant, connection, environment, key_id, prefix, read_only, created_at`

// grantScan likewise holds what of a grant needs another look.
type grantScan struct {
	g                storage.Grant
	environment, key sql.NullString
	created          int64
}

func (s *grantScan) dest() []any {
	g := &s.g
	return []any{&g.ID, &g.Tenant, &g.Connection, &s.environment, &s.key, &g.Prefix, &g.ReadOnly, &s.created}
}

func (s *grantScan) finish() storage.Grant {
	s.g.Environment, s.g.Key, s.g.CreatedAt = s.environment.String, s.key.String, instant(s.created)
	return s.g
}

func (s *tenants) CreateGrant(ctx context.Context, g storage.Grant) error {
	err := s.db.write.transact(ctx, func(t *tx) error {
		if err := t.orNow(ctx, &g.CreatedAt); err != nil {
			return err
		}
		// The foreign keys alone would take another tenant's.
		table, of := `environments`, g.Environment
		if g.Key != "" {
			table, of = `keys`, g.Key
		}
		for _, known := range []struct{ kind, table, id string }{{"connection", `connections`, g.Connection}, {"environment or key", table, of}} {
			if err := t.row(ctx, `SELECT id FROM `+known.table+` WHERE id = ? AND tenant = ?`, known.id, g.Tenant).Scan(new(string)); err != nil {
				return t.pool.found("create a grant", err, "no such %s", known.kind)
			}
		}
		_, err := t.exec(ctx, `INSERT INTO grants (`+grantColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
			g.ID, g.Tenant, g.Connection, orNone(g.Environment), orNone(g.Key), string(g.Prefix), g.ReadOnly, micros(g.CreatedAt))
		return err
	})
	if violates(err, unique) {
		return fault.Wrap(fault.Conflict, err, "it mounts this connection already; remove that grant first")
	}
	return s.db.write.wrap("create a grant", err)
}

// orNone is text as it is stored where the empty one means none.
func orNone(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func (s *tenants) Grants(ctx context.Context, tenantID tenant.ID, connection string) ([]storage.Grant, error) {
	rows, err := s.db.read.rows(ctx, `SELECT `+grantColumns+` FROM grants WHERE tenant = ? AND connection = ? ORDER BY seq`, tenantID, connection)
	all, err := collect(rows, err, func(sc scanner) (storage.Grant, error) {
		var r grantScan
		err := sc.Scan(r.dest()...)
		return r.finish(), err
	})
	return all, s.db.read.wrap("list grants", err)
}

func (s *tenants) DeleteGrant(ctx context.Context, tenantID tenant.ID, connection, id string) error {
	err := execOne(ctx, s.db.write, "grant", `DELETE FROM grants WHERE id = ? AND connection = ? AND tenant = ?`, id, connection, tenantID)
	return s.db.write.wrap("delete a grant", err)
}

var grantedQuery = `SELECT ` + prefixed("g", grantColumns) + `, ` + prefixed("c", connectionColumns) + `
	FROM grants g JOIN connections c ON c.id = g.connection WHERE g.tenant = ? AND (g.environment = ? OR g.key_id = ?) ORDER BY g.seq`

// granted is what a caller mounts.
func (s *tenants) granted(ctx context.Context, p *tenant.Principal) ([]storage.Granted, error) {
	rows, err := s.db.read.rows(ctx, grantedQuery, p.Tenant.ID, p.Environment.ID, p.Key.ID)
	return collect(rows, err, func(sc scanner) (storage.Granted, error) {
		var g grantScan
		var c connectionScan
		if err := sc.Scan(append(g.dest(), c.dest()...)...); err != nil {
			return storage.Granted{}, err
		}
		connection, err := s.finishConnection(&c)
		return storage.Granted{Grant: g.finish(), Connection: connection}, err
	})
}
