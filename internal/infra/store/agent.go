package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Agents is the store of agents.
func (db *DB) Agents() agent.Store { return &agents{db} }

type agents struct{ db *DB }

const (
	agentColumns = `a.seq, a.id, a.tenant, a.slug, a.visibility, v.version, v.definition, a.created_at, v.created_at, a.archived_at`
	agentFrom    = ` FROM agents a JOIN agent_versions v ON v.agent = a.id `
	agentIs      = `a.tenant = ? AND (a.id = ? OR a.slug = ? AND a.slug <> '')`
)

func definitionPlace(id agent.ID, version int) string {
	return fmt.Sprintf("agent_versions/definition/%s/%d", id, version)
}

// agentRow is a version of an agent with its agent's place in lists.
type agentRow struct {
	agent.Agent
	seq int64
}

func (s *agents) scan(sc scanner) (r agentRow, err error) {
	var sealed []byte
	var created, updated int64
	var archived sql.NullInt64
	a := &r.Agent
	if err := sc.Scan(&r.seq, &a.ID, &a.Tenant, &a.Slug, &a.Visibility, &a.Version, &sealed, &created, &updated, &archived); err != nil {
		return r, err
	}
	a.CreatedAt, a.UpdatedAt = instant(created), instant(updated)
	if archived.Valid {
		a.ArchivedAt = instant(archived.Int64)
	}
	plain, err := s.db.seal.OpenFor(a.Tenant, sealed, definitionPlace(a.ID, a.Version))
	if err == nil {
		err = json.Unmarshal(plain, &a.Definition)
	}
	return r, about(err, "the definition", string(a.ID))
}

// transact runs do while no other version of the tenant's agents is made.
func (s *agents) transact(ctx context.Context, of tenant.ID, do func(t *tx) error) error {
	return s.db.write.transact(ctx, func(t *tx) error {
		if t.pool.postgres {
			if _, err := t.exec(ctx, `SELECT pg_advisory_xact_lock(?)`, lockOf("agents", of)); err != nil {
				return err
			}
		}
		return do(t)
	})
}

// room refuses another version where the tenant has the most. Versions go with their agent alone,
// so that the current one counts them.
func (s *agents) room(ctx context.Context, t *tx, of tenant.ID, most agent.Limits, first bool) error {
	if most == (agent.Limits{}) {
		return nil
	}
	var agents, versions int
	err := t.row(ctx, `SELECT COUNT(*) - COUNT(archived_at), CAST(COALESCE(SUM(version), 0) AS BIGINT) FROM agents WHERE tenant = ?`, of).Scan(&agents, &versions)
	if err != nil {
		return err
	}
	return most.Room(agents, versions, first)
}

// putVersion records a version and says when.
func (s *agents) putVersion(ctx context.Context, t *tx, a *agent.Agent, at time.Time, events []tenant.PolicyEvent) error {
	plain, err := json.Marshal(&a.Definition)
	if err != nil {
		return err
	}
	a.UpdatedAt = at
	if _, err := t.exec(ctx, `INSERT INTO agent_versions (agent, version, definition, created_at) VALUES (?, ?, ?, ?)`,
		string(a.ID), a.Version, s.db.seal.SealFor(a.Tenant, plain, definitionPlace(a.ID, a.Version)), micros(at)); err != nil {
		return err
	}
	return insertEvents(ctx, t, events)
}

func (s *agents) Create(ctx context.Context, a *agent.Agent, most agent.Limits, events ...tenant.PolicyEvent) error {
	err := s.transact(ctx, a.Tenant, func(t *tx) error {
		if err := s.room(ctx, t, a.Tenant, most, true); err != nil {
			return err
		}
		now, err := t.pool.clock(ctx, t)
		if err != nil {
			return err
		}
		a.Version, a.CreatedAt, a.ArchivedAt = 1, now, time.Time{}
		if _, err := t.exec(ctx, `INSERT INTO agents (id, tenant, slug, visibility, version, created_at) VALUES (?, ?, ?, ?, 1, ?)`,
			string(a.ID), a.Tenant, a.Slug, string(a.Visibility), micros(now)); err != nil {
			return err
		}
		return s.putVersion(ctx, t, a, now, events)
	})
	return s.named("create an agent", err, a.Slug)
}

// named says of a slug that it is taken.
func (s *agents) named(step string, err error, slug string) error {
	if violates(err, unique) {
		return fault.Wrap(fault.Conflict, err, fmt.Sprintf("the slug %q is taken by another agent; archived ones keep theirs", slug))
	}
	return s.db.write.wrap(step, err)
}

func (s *agents) Get(ctx context.Context, id tenant.ID, idOrSlug string) (*agent.Agent, error) {
	return s.get(ctx, s.db.read, id, idOrSlug)
}

func (s *agents) get(ctx context.Context, q querier, id tenant.ID, idOrSlug string) (*agent.Agent, error) {
	return s.one(q.row(ctx, `SELECT `+agentColumns+agentFrom+`WHERE v.version = a.version AND `+agentIs, id, idOrSlug, idOrSlug))
}

func (s *agents) Template(ctx context.Context, id agent.ID) (*agent.Agent, error) {
	return s.one(s.db.read.row(ctx, `SELECT `+agentColumns+agentFrom+`WHERE v.version = a.version AND a.id = ? AND a.visibility = ? AND a.archived_at IS NULL`, string(id), string(agent.Template)))
}

func (s *agents) one(row scanner) (*agent.Agent, error) {
	r, err := s.scan(row)
	if err == sql.ErrNoRows {
		return nil, agent.ErrNotFound
	}
	return &r.Agent, s.db.read.wrap("get an agent", err)
}

func (s *agents) At(ctx context.Context, id tenant.ID, idOrSlug string, version int) (*agent.Agent, error) {
	a, err := s.one(s.db.read.row(ctx, `SELECT `+agentColumns+agentFrom+`WHERE v.version = ? AND `+agentIs, version, id, idOrSlug, idOrSlug))
	if err == agent.ErrNotFound {
		if _, err := s.Get(ctx, id, idOrSlug); err != nil {
			return nil, err
		}
		return nil, agent.NoVersion(version)
	}
	return a, err
}

func (s *agents) Update(ctx context.Context, a *agent.Agent, most agent.Limits, events ...tenant.PolicyEvent) error {
	err := s.transact(ctx, a.Tenant, func(t *tx) error {
		if err := s.room(ctx, t, a.Tenant, most, false); err != nil {
			return err
		}
		n, err := t.exec(ctx, `UPDATE agents SET version = ?, slug = ?, visibility = ? WHERE id = ? AND tenant = ? AND version = ? AND archived_at IS NULL`,
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
		now, err := t.pool.clock(ctx, t)
		if err != nil {
			return err
		}
		return s.putVersion(ctx, t, a, now, events)
	})
	return s.named("update an agent", err, a.Slug)
}

func (s *agents) Archive(ctx context.Context, id tenant.ID, idOrSlug string, events ...tenant.PolicyEvent) (a *agent.Agent, err error) {
	err = s.db.write.transact(ctx, func(t *tx) error {
		now, err := t.pool.clock(ctx, t)
		if err != nil {
			return err
		}
		n, err := t.exec(ctx, `UPDATE agents SET archived_at = ? WHERE tenant = ? AND (id = ? OR slug = ? AND slug <> '') AND archived_at IS NULL`,
			micros(now), id, idOrSlug, idOrSlug)
		if err == nil && n > 0 {
			err = insertEvents(ctx, t, events)
		}
		if err != nil {
			return err
		}
		a, err = s.get(ctx, t, id, idOrSlug)
		return err
	})
	return a, s.db.write.wrap("archive an agent", err)
}

func (s *agents) Delete(ctx context.Context, of tenant.ID, id agent.ID, events ...tenant.PolicyEvent) error {
	err := s.transact(ctx, of, func(t *tx) error {
		var sessions int
		if err := t.row(ctx, `SELECT COUNT(*) FROM sessions WHERE tenant = ? AND agent = ?`, of, string(id)).Scan(&sessions); err != nil {
			return err
		}
		if sessions > 0 {
			return agent.HasSessions(sessions)
		}
		n, err := t.exec(ctx, `DELETE FROM agents WHERE tenant = ? AND id = ?`, of, string(id))
		switch {
		case err != nil:
			return err
		case n == 0:
			return agent.ErrNotFound
		}
		return insertEvents(ctx, t, events)
	})
	return s.db.write.wrap("delete an agent", err)
}

func (s *agents) List(ctx context.Context, id tenant.ID, f agent.Filter) ([]agent.Agent, string, error) {
	where := `WHERE v.version = a.version AND a.tenant = ?`
	if !f.Archived {
		where += ` AND a.archived_at IS NULL`
	}
	args := []any{id}
	if !f.From.IsZero() {
		where, args = where+` AND a.created_at >= ?`, append(args, micros(f.From))
	}
	if !f.To.IsZero() {
		where, args = where+` AND a.created_at <= ?`, append(args, micros(f.To))
	}
	return s.page(ctx, f.Page, "agents/"+id, where, "a.seq", func(r *agentRow) int64 { return r.seq }, args...)
}

func (s *agents) Versions(ctx context.Context, id tenant.ID, idOrSlug string, p agent.Page) ([]agent.Agent, string, error) {
	now, err := s.Get(ctx, id, idOrSlug)
	if err != nil {
		return nil, "", err
	}
	of := string(now.ID)
	return s.page(ctx, p, "agent_versions/"+of, `WHERE a.tenant = ? AND a.id = ?`, "v.version", func(r *agentRow) int64 { return int64(r.Version) }, id, of)
}

// page reads a part of a list that falls by a column.
func (s *agents) page(ctx context.Context, p agent.Page, list, where, by string, at func(*agentRow) int64, args ...any) ([]agent.Agent, string, error) {
	if p.Limit < 1 || p.Limit > maxPage {
		return nil, "", fault.New(fault.Invalid, "limit must be between 1 and %d", maxPage)
	}
	if p.Cursor != "" {
		from, err := decodeCursor(s.db.seal, list, p.Cursor)
		if err != nil {
			return nil, "", err
		}
		where, args = where+` AND `+by+` < ?`, append(args, from.at)
	}
	rows, err := s.db.read.rows(ctx, `SELECT `+agentColumns+agentFrom+where+` ORDER BY `+by+` DESC LIMIT ?`, append(args, p.Limit+1)...)
	all, err := collect(rows, err, s.scan)
	if err != nil {
		return nil, "", s.db.read.wrap("list agents", err)
	}
	next := ""
	if len(all) > p.Limit {
		all = all[:p.Limit]
		next = encodeCursor(s.db.seal, list, place{at: at(&all[p.Limit-1])})
	}
	out := make([]agent.Agent, len(all))
	for i := range all {
		out[i] = all[i].Agent
	}
	return out, next, nil
}
