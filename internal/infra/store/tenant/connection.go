package tenant

import (
	"context"
	"encoding/json"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
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
var connectionTable = sqldb.NewTable("connections",
	sqldb.Col("id", sqldb.Fixed, func(r *connectionRow) any { return &r.ID }),
	sqldb.Col("tenant", sqldb.Fixed, func(r *connectionRow) any { return &r.Tenant }),
	sqldb.Col("slug", sqldb.Fixed, func(r *connectionRow) any { return &r.Slug }),
	sqldb.Col("kind", sqldb.Fixed, func(r *connectionRow) any { return &r.Kind }),
	sqldb.Col("prefix", sqldb.All, func(r *connectionRow) any { return &r.Prefix }),
	sqldb.Col("read_only", sqldb.All, func(r *connectionRow) any { return &r.ReadOnly }),
	sqldb.Col("target", sqldb.All, func(r *connectionRow) any { return targetAt(&r.Target) }),
	sqldb.Col("credentials", sqldb.All, func(r *connectionRow) any { return &r.sealed }),
	sqldb.Col("created_at", sqldb.Fixed, func(r *connectionRow) any { return sqldb.TimeAt(&r.CreatedAt) }),
)

// targetAt is a target without its credentials, as JSON.
func targetAt(t *storage.Target) sqldb.Codec {
	read := func(text string) (storage.Target, error) {
		var row targetRow
		err := json.Unmarshal([]byte(text), &row)
		return storage.Target{Bucket: row.Bucket, Region: row.Region, Endpoint: row.Endpoint, PathStyle: row.PathStyle, Account: row.Account}, err
	}
	write := func(t storage.Target) (any, error) {
		return sqldb.JSONOf(targetRow{t.Bucket, t.Region, t.Endpoint, t.PathStyle, t.Account}, false)
	}
	return sqldb.Coded(t, read, write)
}

// openConnection opens a connection's credentials.
func (s *Store) openConnection(r *connectionRow) (storage.Connection, error) {
	c := r.Connection
	if len(r.sealed) == 0 {
		return c, nil
	}
	plain, err := s.db.Seal.Open(r.sealed, credentialsPlace(c.ID))
	if err != nil {
		return c, sqldb.About(err, "credentials", c.ID)
	}
	var secret credentialsRow
	err = json.Unmarshal(plain, &secret)
	c.Credentials = storage.Credentials(secret)
	return c, err
}

// sealConnection is the way back.
func (s *Store) sealConnection(c storage.Connection) (connectionRow, error) {
	if c.Credentials == (storage.Credentials{}) {
		return connectionRow{Connection: c}, nil
	}
	plain, err := json.Marshal(credentialsRow(c.Credentials))
	if err != nil {
		return connectionRow{}, err
	}
	return connectionRow{c, s.db.Seal.Seal(plain, credentialsPlace(c.ID))}, nil
}

func (s *Store) scanConnection(sc sqldb.Scanner) (storage.Connection, error) {
	var r connectionRow
	if err := connectionTable.Scan(sc, &r); err != nil {
		return storage.Connection{}, err
	}
	return s.openConnection(&r)
}

func (s *Store) CreateConnection(ctx context.Context, c storage.Connection) error {
	row, err := s.sealConnection(c)
	if err != nil {
		return s.db.Write.Wrap("create a connection", err)
	}
	err = s.db.Write.Transact(ctx, func(t *sqldb.Tx) error {
		if err := t.OrNow(ctx, &row.CreatedAt); err != nil {
			return err
		}
		return connectionTable.Add(ctx, t, &row)
	})
	return s.db.Write.Named("create a connection", err, "connection", c.Slug)
}

func (s *Store) UpdateConnection(ctx context.Context, c storage.Connection) error {
	row, err := s.sealConnection(c)
	if err != nil {
		return s.db.Write.Wrap("update a connection", err)
	}
	values, err := connectionTable.Values(sqldb.Update, &row, c.ID, c.Tenant)
	if err != nil {
		return s.db.Write.Wrap("update a connection", err)
	}
	err = sqldb.ExecOne(ctx, s.db.Write, tenant.ErrNoConnection, `UPDATE connections SET `+connectionTable.Set+` WHERE id = ? AND tenant = ?`, values...)
	return s.db.Write.Wrap("update a connection", err)
}

func (s *Store) Connection(ctx context.Context, id tenant.ID, idOrSlug string) (storage.Connection, error) {
	c, err := s.scanConnection(s.db.Read.Row(ctx, `SELECT `+connectionTable.Selected+` FROM connections WHERE tenant = ? AND (id = ? OR slug = ?)`, id, idOrSlug, idOrSlug))
	return c, s.db.Read.Found("get a connection", err, tenant.ErrNoConnection)
}

func (s *Store) Connections(ctx context.Context, id tenant.ID) ([]storage.Connection, error) {
	all, err := sqldb.Select(ctx, s.db.Read, s.scanConnection, `SELECT `+connectionTable.Selected+` FROM connections WHERE tenant = ? ORDER BY seq`, id)
	return all, s.db.Read.Wrap("list connections", err)
}

func (s *Store) DeleteConnection(ctx context.Context, tenantID tenant.ID, id string) error {
	err := sqldb.ExecOne(ctx, s.db.Write, tenant.ErrNoConnection, `DELETE FROM connections WHERE id = ? AND tenant = ?`, id, tenantID)
	if sqldb.Violates(err, sqldb.Foreign) {
		return fault.Wrap(fault.Conflict, err, "environments or keys mount this connection; remove its grants first")
	}
	return s.db.Write.Wrap("delete a connection", err)
}

// grantTable is the table of grants. No column changes after the insert.
var grantTable = sqldb.NewTable("grants",
	sqldb.Col("id", sqldb.Fixed, func(g *storage.Grant) any { return &g.ID }),
	sqldb.Col("tenant", sqldb.Fixed, func(g *storage.Grant) any { return &g.Tenant }),
	sqldb.Col("connection", sqldb.Fixed, func(g *storage.Grant) any { return &g.Connection }),
	sqldb.Col("environment", sqldb.Fixed, func(g *storage.Grant) any { return sqldb.MaybeTextAt(&g.Environment) }),
	sqldb.Col("key_id", sqldb.Fixed, func(g *storage.Grant) any { return sqldb.MaybeTextAt(&g.Key) }),
	sqldb.Col("prefix", sqldb.Fixed, func(g *storage.Grant) any { return &g.Prefix }),
	sqldb.Col("read_only", sqldb.Fixed, func(g *storage.Grant) any { return &g.ReadOnly }),
	sqldb.Col("created_at", sqldb.Fixed, func(g *storage.Grant) any { return sqldb.TimeAt(&g.CreatedAt) }),
)

func (s *Store) CreateGrant(ctx context.Context, g storage.Grant) error {
	err := s.db.Write.Transact(ctx, func(t *sqldb.Tx) error {
		if err := t.OrNow(ctx, &g.CreatedAt); err != nil {
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
			if err := t.Row(ctx, `SELECT id FROM `+known.table+` WHERE id = ? AND tenant = ?`, known.id, g.Tenant).Scan(new(string)); err != nil {
				return t.Pool.Found("create a grant", err, known.missing)
			}
		}
		return grantTable.Add(ctx, t, &g)
	})
	if sqldb.Violates(err, sqldb.Unique) {
		return fault.Wrap(fault.Conflict, err, "it mounts this connection already; remove that grant first")
	}
	return s.db.Write.Wrap("create a grant", err)
}

func (s *Store) Grants(ctx context.Context, tenantID tenant.ID, connection string) ([]storage.Grant, error) {
	all, err := sqldb.Select(ctx, s.db.Read, grantTable.Row, `SELECT `+grantTable.Selected+` FROM grants WHERE tenant = ? AND connection = ? ORDER BY seq`, tenantID, connection)
	return all, s.db.Read.Wrap("list grants", err)
}

func (s *Store) DeleteGrant(ctx context.Context, tenantID tenant.ID, connection, id string) error {
	err := sqldb.ExecOne(ctx, s.db.Write, tenant.ErrNoGrant, `DELETE FROM grants WHERE id = ? AND connection = ? AND tenant = ?`, id, connection, tenantID)
	return s.db.Write.Wrap("delete a grant", err)
}

var grantedQuery = `SELECT ` + grantTable.Of("g") + `, ` + connectionTable.Of("c") + `
	FROM grants g JOIN connections c ON c.id = g.connection WHERE g.tenant = ? AND (g.environment = ? OR g.key_id = ?) ORDER BY g.seq`

// granted is what a caller mounts.
func (s *Store) granted(ctx context.Context, p *tenant.Principal) ([]storage.Granted, error) {
	rows, err := s.db.Read.Rows(ctx, grantedQuery, p.Tenant.ID, p.Environment.ID, p.KeyID())
	return sqldb.Collect(rows, err, func(sc sqldb.Scanner) (storage.Granted, error) {
		var g storage.Granted
		var c connectionRow
		if err := sc.Scan(append(grantTable.Dest(&g.Grant), connectionTable.Dest(&c)...)...); err != nil {
			return g, err
		}
		var err error
		g.Connection, err = s.openConnection(&c)
		return g, err
	})
}
