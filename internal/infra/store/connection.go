package store

import (
	"context"
	"encoding/json"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

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

// connectionRow is a connection with its credentials as they are stored, sealed.
type connectionRow struct {
	storage.Connection
	sealed []byte
}

// connectionTable is the table of connections.
var connectionTable = newTable("connections",
	col("id", fixed, func(r *connectionRow) any { return &r.ID }),
	col("tenant", fixed, func(r *connectionRow) any { return &r.Tenant }),
	col("slug", fixed, func(r *connectionRow) any { return &r.Slug }),
	col("kind", fixed, func(r *connectionRow) any { return &r.Kind }),
	col("prefix", all, func(r *connectionRow) any { return &r.Prefix }),
	col("read_only", all, func(r *connectionRow) any { return &r.ReadOnly }),
	col("target", all, func(r *connectionRow) any { return targetAt(&r.Target) }),
	col("credentials", all, func(r *connectionRow) any { return &r.sealed }),
	col("created_at", fixed, func(r *connectionRow) any { return timeAt(&r.CreatedAt) }),
)

// targetAt is a target without its credentials, as JSON.
func targetAt(t *storage.Target) codec {
	read := func(text string) (storage.Target, error) {
		var row targetRow
		err := json.Unmarshal([]byte(text), &row)
		return storage.Target{Bucket: row.Bucket, Region: row.Region, Endpoint: row.Endpoint, PathStyle: row.PathStyle, Account: row.Account}, err
	}
	write := func(t storage.Target) (any, error) {
		return jsonOf(targetRow{t.Bucket, t.Region, t.Endpoint, t.PathStyle, t.Account}, false)
	}
	return coded[storage.Target, string]{t, read, write}
}

// openConnection opens a connection's credentials.
func (s *tenants) openConnection(r *connectionRow) (storage.Connection, error) {
	c := r.Connection
	if len(r.sealed) == 0 {
		return c, nil
	}
	plain, err := s.db.seal.Open(r.sealed, credentialsPlace(c.ID))
	if err != nil {
		return c, about(err, "credentials", c.ID)
	}
	var secret credentialsRow
	err = json.Unmarshal(plain, &secret)
	c.Credentials = storage.Credentials(secret)
	return c, err
}

// sealConnection is the way back.
func (s *tenants) sealConnection(c storage.Connection) (connectionRow, error) {
	if c.Credentials == (storage.Credentials{}) {
		return connectionRow{Connection: c}, nil
	}
	plain, err := json.Marshal(credentialsRow(c.Credentials))
	if err != nil {
		return connectionRow{}, err
	}
	return connectionRow{c, s.db.seal.Seal(plain, credentialsPlace(c.ID))}, nil
}

func (s *tenants) scanConnection(sc scanner) (storage.Connection, error) {
	var r connectionRow
	if err := connectionTable.scan(sc, &r); err != nil {
		return storage.Connection{}, err
	}
	return s.openConnection(&r)
}

func (s *tenants) CreateConnection(ctx context.Context, c storage.Connection) error {
	row, err := s.sealConnection(c)
	if err != nil {
		return s.db.write.wrap("create a connection", err)
	}
	err = s.db.write.transact(ctx, func(t *tx) error {
		if err := t.orNow(ctx, &row.CreatedAt); err != nil {
			return err
		}
		values, err := connectionTable.values(insert, &row)
		if err != nil {
			return err
		}
		_, err = t.exec(ctx, connectionTable.insert, values...)
		return err
	})
	return s.db.write.named("create a connection", err, "connection", c.Slug)
}

func (s *tenants) UpdateConnection(ctx context.Context, c storage.Connection) error {
	row, err := s.sealConnection(c)
	if err != nil {
		return s.db.write.wrap("update a connection", err)
	}
	values, err := connectionTable.values(update, &row, c.ID, c.Tenant)
	if err != nil {
		return s.db.write.wrap("update a connection", err)
	}
	err = execOne(ctx, s.db.write, tenant.ErrNoConnection, `UPDATE connections SET `+connectionTable.set+` WHERE id = ? AND tenant = ?`, values...)
	return s.db.write.wrap("update a connection", err)
}

func (s *tenants) Connection(ctx context.Context, id tenant.ID, idOrSlug string) (storage.Connection, error) {
	c, err := s.scanConnection(s.db.read.row(ctx, `SELECT `+connectionTable.selected+` FROM connections WHERE tenant = ? AND (id = ? OR slug = ?)`, id, idOrSlug, idOrSlug))
	return c, s.db.read.found("get a connection", err, tenant.ErrNoConnection)
}

func (s *tenants) Connections(ctx context.Context, id tenant.ID) ([]storage.Connection, error) {
	rows, err := s.db.read.rows(ctx, `SELECT `+connectionTable.selected+` FROM connections WHERE tenant = ? ORDER BY seq`, id)
	all, err := collect(rows, err, s.scanConnection)
	return all, s.db.read.wrap("list connections", err)
}

func (s *tenants) DeleteConnection(ctx context.Context, tenantID tenant.ID, id string) error {
	err := execOne(ctx, s.db.write, tenant.ErrNoConnection, `DELETE FROM connections WHERE id = ? AND tenant = ?`, id, tenantID)
	if violates(err, foreign) {
		return fault.Wrap(fault.Conflict, err, "environments or keys mount this connection; remove its grants first")
	}
	return s.db.write.wrap("delete a connection", err)
}

// grantTable is the table of grants. Nothing of one is ever changed.
var grantTable = newTable("grants",
	col("id", fixed, func(g *storage.Grant) any { return &g.ID }),
	col("tenant", fixed, func(g *storage.Grant) any { return &g.Tenant }),
	col("connection", fixed, func(g *storage.Grant) any { return &g.Connection }),
	col("environment", fixed, func(g *storage.Grant) any { return maybeTextAt(&g.Environment) }),
	col("key_id", fixed, func(g *storage.Grant) any { return maybeTextAt(&g.Key) }),
	col("prefix", fixed, func(g *storage.Grant) any { return &g.Prefix }),
	col("read_only", fixed, func(g *storage.Grant) any { return &g.ReadOnly }),
	col("created_at", fixed, func(g *storage.Grant) any { return timeAt(&g.CreatedAt) }),
)

func scanGrant(sc scanner) (g storage.Grant, err error) { return g, grantTable.scan(sc, &g) }

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
		for _, known := range []struct {
			missing   error
			table, id string
		}{{tenant.ErrNoConnection, `connections`, g.Connection}, {tenant.ErrNoBeneficiary, table, of}} {
			if err := t.row(ctx, `SELECT id FROM `+known.table+` WHERE id = ? AND tenant = ?`, known.id, g.Tenant).Scan(new(string)); err != nil {
				return t.pool.found("create a grant", err, known.missing)
			}
		}
		values, err := grantTable.values(insert, &g)
		if err != nil {
			return err
		}
		_, err = t.exec(ctx, grantTable.insert, values...)
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
	rows, err := s.db.read.rows(ctx, `SELECT `+grantTable.selected+` FROM grants WHERE tenant = ? AND connection = ? ORDER BY seq`, tenantID, connection)
	all, err := collect(rows, err, scanGrant)
	return all, s.db.read.wrap("list grants", err)
}

func (s *tenants) DeleteGrant(ctx context.Context, tenantID tenant.ID, connection, id string) error {
	err := execOne(ctx, s.db.write, tenant.ErrNoGrant, `DELETE FROM grants WHERE id = ? AND connection = ? AND tenant = ?`, id, connection, tenantID)
	return s.db.write.wrap("delete a grant", err)
}

var grantedQuery = `SELECT ` + grantTable.of("g") + `, ` + connectionTable.of("c") + `
	FROM grants g JOIN connections c ON c.id = g.connection WHERE g.tenant = ? AND (g.environment = ? OR g.key_id = ?) ORDER BY g.seq`

// granted is what a caller mounts.
func (s *tenants) granted(ctx context.Context, p *tenant.Principal) ([]storage.Granted, error) {
	rows, err := s.db.read.rows(ctx, grantedQuery, p.Tenant.ID, p.Environment.ID, p.KeyID())
	return collect(rows, err, func(sc scanner) (storage.Granted, error) {
		var g storage.Granted
		var c connectionRow
		if err := sc.Scan(append(grantTable.dest(&g.Grant), connectionTable.dest(&c)...)...); err != nil {
			return g, err
		}
		var err error
		g.Connection, err = s.openConnection(&c)
		return g, err
	})
}
