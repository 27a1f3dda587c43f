// Package agent stores agents and their versions.
package agent

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
	policydb "github.com/atoll-run/atoll/internal/infra/store/policy"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

// Store implements agent.Store.
type Store struct{ db *sqldb.DB }

// New returns the store in a database.
func New(db *sqldb.DB) *Store { return &Store{db} }

const (
	agentFrom = ` FROM agents a JOIN agent_versions v ON v.agent = a.id `
	agentIs   = `a.tenant = ? AND (a.id = ? OR a.slug = ? AND a.slug <> '')`
)

func definitionPlace(id agent.ID, version int) string {
	return fmt.Sprintf("agent_versions/definition/%s/%d", id, version)
}

// agentRow is a version of an agent with its agent's place in lists and its sealed definition.
type agentRow struct {
	agent.Agent
	seq    int64
	sealed []byte
}

// agentView is a version of an agent.
var agentView = sqldb.NewView(
	sqldb.Col("a.seq", sqldb.Read, func(r *agentRow) any { return &r.seq }),
	sqldb.Col("a.id", sqldb.Read, func(r *agentRow) any { return &r.ID }),
	sqldb.Col("a.tenant", sqldb.Read, func(r *agentRow) any { return &r.Tenant }),
	sqldb.Col("a.slug", sqldb.Read, func(r *agentRow) any { return &r.Slug }),
	sqldb.Col("a.visibility", sqldb.Read, func(r *agentRow) any { return &r.Visibility }),
	sqldb.Col("v.version", sqldb.Read, func(r *agentRow) any { return &r.Version }),
	sqldb.Col("v.definition", sqldb.Read, func(r *agentRow) any { return &r.sealed }),
	sqldb.Col("a.created_at", sqldb.Read, func(r *agentRow) any { return sqldb.TimeAt(&r.CreatedAt) }),
	sqldb.Col("v.created_at", sqldb.Read, func(r *agentRow) any { return sqldb.TimeAt(&r.UpdatedAt) }),
	sqldb.Col("a.archived_at", sqldb.Read, func(r *agentRow) any { return sqldb.ZeroTimeAt(&r.ArchivedAt) }),
)

func (s *Store) scan(sc sqldb.Scanner) (agentRow, error) {
	r, err := agentView.Row(sc)
	if err != nil {
		return r, err
	}
	err = s.db.OpenJSON(r.Tenant, r.sealed, definitionPlace(r.ID, r.Version), &r.Definition)
	return r, sqldb.About(err, "the definition", string(r.ID))
}

// transact runs do while no other version of the tenant's agents is made.
func (s *Store) transact(ctx context.Context, of tenant.ID, do func(t *sqldb.Tx) error) error {
	return s.db.Write.TransactLocked(ctx, "agents", of, do)
}

// room refuses another version where the tenant has the most. Versions go with their agent alone,
// so that the current one counts them.
func (s *Store) room(ctx context.Context, t *sqldb.Tx, of tenant.ID, most agent.Limits, first bool) error {
	if most == (agent.Limits{}) {
		return nil
	}
	var agents, versions int
	err := t.Row(ctx, `SELECT COUNT(*) - COUNT(archived_at), CAST(COALESCE(SUM(version), 0) AS BIGINT) FROM agents WHERE tenant = ?`, of).Scan(&agents, &versions)
	if err != nil {
		return err
	}
	return most.Room(agents, versions, first)
}

// putVersion records a version and says when.
func (s *Store) putVersion(ctx context.Context, t *sqldb.Tx, a *agent.Agent, at time.Time, events []tenant.PolicyEvent) error {
	sealed, err := s.db.SealJSON(a.Tenant, &a.Definition, definitionPlace(a.ID, a.Version))
	if err != nil {
		return err
	}
	a.UpdatedAt = at
	if _, err := t.Exec(ctx, `INSERT INTO agent_versions (agent, version, definition, created_at) VALUES (?, ?, ?, ?)`,
		string(a.ID), a.Version, sealed, sqldb.Micros(at)); err != nil {
		return err
	}
	return policydb.Insert(ctx, t, events...)
}

func (s *Store) Create(ctx context.Context, a *agent.Agent, most agent.Limits, events ...tenant.PolicyEvent) error {
	err := s.transact(ctx, a.Tenant, func(t *sqldb.Tx) error {
		if err := s.room(ctx, t, a.Tenant, most, true); err != nil {
			return err
		}
		now, err := t.Clock(ctx)
		if err != nil {
			return err
		}
		a.Version, a.CreatedAt, a.ArchivedAt = 1, now, time.Time{}
		if _, err := t.Exec(ctx, `INSERT INTO agents (id, tenant, slug, visibility, version, created_at) VALUES (?, ?, ?, ?, 1, ?)`,
			string(a.ID), a.Tenant, a.Slug, string(a.Visibility), sqldb.Micros(now)); err != nil {
			return err
		}
		return s.putVersion(ctx, t, a, now, events)
	})
	return s.named("create an agent", err, a.Slug)
}

// named says of a slug that it is taken.
func (s *Store) named(step string, err error, slug string) error {
	if sqldb.Violates(err, sqldb.Unique) {
		return fault.Wrap(fault.Conflict, err, fmt.Sprintf("the slug %q is taken by another agent; archived ones keep theirs", slug))
	}
	return s.db.Write.Wrap(step, err)
}

func (s *Store) Get(ctx context.Context, id tenant.ID, idOrSlug string) (*agent.Agent, error) {
	return s.get(ctx, s.db.Read, id, idOrSlug)
}

func (s *Store) get(ctx context.Context, q sqldb.Querier, id tenant.ID, idOrSlug string) (*agent.Agent, error) {
	return s.one(q.Row(ctx, `SELECT `+agentView.Selected+agentFrom+`WHERE v.version = a.version AND `+agentIs, id, idOrSlug, idOrSlug))
}

func (s *Store) Template(ctx context.Context, id agent.ID) (*agent.Agent, error) {
	return s.one(s.db.Read.Row(ctx, `SELECT `+agentView.Selected+agentFrom+`WHERE v.version = a.version AND a.id = ? AND a.visibility = ? AND a.archived_at IS NULL`, string(id), string(agent.Template)))
}

func (s *Store) one(row sqldb.Scanner) (*agent.Agent, error) {
	r, err := s.scan(row)
	if err == sql.ErrNoRows {
		return nil, agent.ErrNotFound
	}
	return &r.Agent, s.db.Read.Wrap("get an agent", err)
}

func (s *Store) At(ctx context.Context, id tenant.ID, idOrSlug string, version int) (*agent.Agent, error) {
	a, err := s.one(s.db.Read.Row(ctx, `SELECT `+agentView.Selected+agentFrom+`WHERE v.version = ? AND `+agentIs, version, id, idOrSlug, idOrSlug))
	if err == agent.ErrNotFound {
		if _, err := s.Get(ctx, id, idOrSlug); err != nil {
			return nil, err
		}
		return nil, agent.NoVersion(version)
	}
	return a, err
}

func (s *Store) Update(ctx context.Context, a *agent.Agent, most agent.Limits, events ...tenant.PolicyEvent) error {
	err := s.transact(ctx, a.Tenant, func(t *sqldb.Tx) error {
		if err := s.room(ctx, t, a.Tenant, most, false); err != nil {
			return err
		}
		n, err := t.Exec(ctx, `UPDATE agents SET version = ?, slug = ?, visibility = ? WHERE id = ? AND tenant = ? AND version = ? AND archived_at IS NULL`,
			a.Version, a.Slug, string(a.Visibility), string(a.ID), a.Tenant, a.Version-1)
		if err != nil {
			return err
		}
		if n == 0 {
			switch now, err := s.get(ctx, t, a.Tenant, string(a.ID)); {
			case err != nil:
				return err
			case now.Archived():
				return agent.ErrArchived
			default:
				return agent.VersionConflict(now.Version)
			}
		}
		now, err := t.Clock(ctx)
		if err != nil {
			return err
		}
		return s.putVersion(ctx, t, a, now, events)
	})
	return s.named("update an agent", err, a.Slug)
}

func (s *Store) Archive(ctx context.Context, id tenant.ID, idOrSlug string, events ...tenant.PolicyEvent) (a *agent.Agent, err error) {
	err = s.db.Write.Transact(ctx, func(t *sqldb.Tx) error {
		now, err := t.Clock(ctx)
		if err != nil {
			return err
		}
		n, err := t.Exec(ctx, `UPDATE agents SET archived_at = ? WHERE tenant = ? AND (id = ? OR slug = ? AND slug <> '') AND archived_at IS NULL`,
			sqldb.Micros(now), id, idOrSlug, idOrSlug)
		if err == nil && n > 0 {
			err = policydb.Insert(ctx, t, events...)
		}
		if err != nil {
			return err
		}
		a, err = s.get(ctx, t, id, idOrSlug)
		return err
	})
	return a, s.db.Write.Wrap("archive an agent", err)
}

func (s *Store) Delete(ctx context.Context, of tenant.ID, id agent.ID, events ...tenant.PolicyEvent) error {
	err := s.transact(ctx, of, func(t *sqldb.Tx) error {
		var sessions int
		if err := t.Row(ctx, `SELECT COUNT(*) FROM sessions WHERE tenant = ? AND agent = ?`, of, string(id)).Scan(&sessions); err != nil {
			return err
		}
		if sessions > 0 {
			return agent.HasSessions(sessions)
		}
		n, err := t.Exec(ctx, `DELETE FROM agents WHERE tenant = ? AND id = ?`, of, string(id))
		switch {
		case err != nil:
			return err
		case n == 0:
			return agent.ErrNotFound
		}
		return policydb.Insert(ctx, t, events...)
	})
	return s.db.Write.Wrap("delete an agent", err)
}

func (s *Store) List(ctx context.Context, id tenant.ID, f agent.Filter) ([]agent.Agent, string, error) {
	where := `WHERE v.version = a.version AND a.tenant = ?`
	if !f.Archived {
		where += ` AND a.archived_at IS NULL`
	}
	args := []any{id}
	if !f.From.IsZero() {
		where, args = where+` AND a.created_at >= ?`, append(args, sqldb.Micros(f.From))
	}
	if !f.To.IsZero() {
		where, args = where+` AND a.created_at <= ?`, append(args, sqldb.Micros(f.To))
	}
	return s.page(ctx, f.Page, "agents/"+id, where, "a.seq", func(r *agentRow) int64 { return r.seq }, args...)
}

func (s *Store) Versions(ctx context.Context, id tenant.ID, idOrSlug string, p agent.Page) ([]agent.Agent, string, error) {
	now, err := s.Get(ctx, id, idOrSlug)
	if err != nil {
		return nil, "", err
	}
	of := string(now.ID)
	return s.page(ctx, p, "agent_versions/"+of, `WHERE a.tenant = ? AND a.id = ?`, "v.version", func(r *agentRow) int64 { return int64(r.Version) }, id, of)
}

// page reads a part of a list that falls by a column.
func (s *Store) page(ctx context.Context, p agent.Page, list, where, by string, at func(*agentRow) int64, args ...any) (page []agent.Agent, next string, err error) {
	all, next, err := sqldb.PageOf(ctx, s.db, sqldb.Page(p), list, `SELECT `+agentView.Selected+agentFrom+where, by, args, s.scan, at)
	for i := range all {
		page = append(page, all[i].Agent)
	}
	return page, next, s.db.Read.Wrap("list agents", err)
}
