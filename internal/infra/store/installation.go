package store

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/installation"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// forgetServers is the age at which the entry of a server is deleted.
const forgetServers = 24 * time.Hour

type installations struct{ db *DB }

var _ installation.Store = (*installations)(nil)

// Installation is the store of the installation's id and servers.
func (db *DB) Installation() installation.Store { return &installations{db} }

// ID implements installation.Store. Of several servers at their first start, one decides.
func (s *installations) ID(ctx context.Context) (id string, err error) {
	err = s.db.write.transact(ctx, func(t *tx) error {
		if _, err := t.exec(ctx, `INSERT INTO installation (only_row, id) VALUES (1, ?) ON CONFLICT (only_row) DO NOTHING`, tenant.NewID("ins")); err != nil {
			return err
		}
		return t.row(ctx, `SELECT id FROM installation`).Scan(&id)
	})
	return id, s.db.write.wrap("read the installation's id", err)
}

// Members implements installation.Store.
func (s *installations) Members(ctx context.Context, executor string) ([]installation.Seen, error) {
	rows, err := s.db.write.rows(ctx, `SELECT executor, host, bus, blobs, volumes, atoll_now() - seen_at FROM servers WHERE executor <> ? ORDER BY executor`, executor)
	all, err := collect(rows, err, func(sc scanner) (m installation.Seen, err error) {
		var age int64
		err = sc.Scan(&m.Executor, &m.Host, &m.Bus, &m.Blobs, &m.Volumes, &age)
		m.Age = time.Duration(age) * time.Microsecond
		return m, err
	})
	return all, s.db.write.wrap("list the servers of the installation", err)
}

// Beat implements installation.Store.
func (s *installations) Beat(ctx context.Context, m installation.Member) error {
	err := s.db.write.transact(ctx, func(t *tx) error {
		if _, err := t.exec(ctx, `DELETE FROM servers WHERE seen_at < atoll_now() - ?`, forgetServers.Microseconds()); err != nil {
			return err
		}
		_, err := t.exec(ctx, `INSERT INTO servers (executor, host, bus, blobs, volumes, seen_at) VALUES (?, ?, ?, ?, ?, atoll_now())
			ON CONFLICT (executor) DO UPDATE SET host = excluded.host, bus = excluded.bus, blobs = excluded.blobs, volumes = excluded.volumes, seen_at = excluded.seen_at`,
			m.Executor, m.Host, m.Bus, m.Blobs, m.Volumes)
		return err
	})
	return s.db.write.wrap("renew the server's entry", err)
}

// Leave implements installation.Store.
func (s *installations) Leave(ctx context.Context, executor string) error {
	_, err := s.db.write.exec(ctx, `DELETE FROM servers WHERE executor = ?`, executor)
	return s.db.write.wrap("delete the server's entry", err)
}
