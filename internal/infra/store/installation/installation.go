// Package installation stores the id of the installation and its servers.
package installation

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/installation"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

// forgetServers is the age at which the entry of a server is deleted.
const forgetServers = 24 * time.Hour

// Store implements installation.Store.
type Store struct{ db *sqldb.DB }

var _ installation.Store = (*Store)(nil)

// New returns the store in a database.
func New(db *sqldb.DB) *Store { return &Store{db} }

// ID implements installation.Store. Of several servers at their first start, one decides.
func (s *Store) ID(ctx context.Context) (id string, err error) {
	err = s.db.Write.Transact(ctx, func(t *sqldb.Tx) error {
		if _, err := t.Exec(ctx, `INSERT INTO installation (only_row, id) VALUES (1, ?) ON CONFLICT (only_row) DO NOTHING`, tenant.NewID("ins")); err != nil {
			return err
		}
		return t.Row(ctx, `SELECT id FROM installation`).Scan(&id)
	})
	return id, s.db.Write.Wrap("read the installation's id", err)
}

var memberView = sqldb.NewView(
	sqldb.Col("executor", sqldb.Read, func(m *installation.Seen) any { return &m.Executor }),
	sqldb.Col("host", sqldb.Read, func(m *installation.Seen) any { return &m.Host }),
	sqldb.Col("bus", sqldb.Read, func(m *installation.Seen) any { return &m.Bus }),
	sqldb.Col("blobs", sqldb.Read, func(m *installation.Seen) any { return &m.Blobs }),
	sqldb.Col("volumes", sqldb.Read, func(m *installation.Seen) any { return &m.Volumes }),
	sqldb.Col("atoll_now() - seen_at", sqldb.Read, func(m *installation.Seen) any { return sqldb.DurationAt(&m.Age) }),
)

// Members implements installation.Store.
func (s *Store) Members(ctx context.Context, executor string) ([]installation.Seen, error) {
	all, err := sqldb.Select(ctx, s.db.Write, memberView.Row, `SELECT `+memberView.Selected+` FROM servers WHERE executor <> ? ORDER BY executor`, executor)
	return all, s.db.Write.Wrap("list the servers of the installation", err)
}

// Beat implements installation.Store.
func (s *Store) Beat(ctx context.Context, m installation.Member) error {
	return s.db.Transact(ctx, "renew the server's entry", func(t *sqldb.Tx) error {
		if _, err := t.Exec(ctx, `DELETE FROM servers WHERE seen_at < atoll_now() - ?`, forgetServers.Microseconds()); err != nil {
			return err
		}
		_, err := t.Exec(ctx, `INSERT INTO servers (executor, host, bus, blobs, volumes, seen_at) VALUES (?, ?, ?, ?, ?, atoll_now())
			ON CONFLICT (executor) DO UPDATE SET host = excluded.host, bus = excluded.bus, blobs = excluded.blobs, volumes = excluded.volumes, seen_at = excluded.seen_at`,
			m.Executor, m.Host, m.Bus, m.Blobs, m.Volumes)
		return err
	})
}

// Leave implements installation.Store.
func (s *Store) Leave(ctx context.Context, executor string) error {
	return s.db.Exec(ctx, "delete the server's entry", `DELETE FROM servers WHERE executor = ?`, executor)
}
