package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

const environmentColumns = `id, tenant, name, image, limits, env, secrets, created_at, permissions, profile, base_template, timeout, bound`

// limitsRow is how limits are stored. A name is never given another meaning.
type limitsRow struct {
	CPU       float64 `json:"cpu"`
	Memory    int64   `json:"memory"`
	Processes int     `json:"processes"`
	OpenFiles int     `json:"open_files"`
	Root      int64   `json:"root"`
	Tmp       int64   `json:"tmp"`
	Shm       int64   `json:"shm"`
	Inodes    int     `json:"inodes"`
}

// environmentScan reads an environment, also where a join may have found none.
type environmentScan struct {
	id, tenant, name, image, limits, env sql.NullString
	secrets, bound                       []byte // sealed
	created, timeout                     sql.NullInt64
	permissions, profile, template       sql.NullString
}

func (s *environmentScan) dest() []any {
	return []any{&s.id, &s.tenant, &s.name, &s.image, &s.limits, &s.env, &s.secrets, &s.created, &s.permissions, &s.profile, &s.template, &s.timeout, &s.bound}
}

func (s *tenants) finishEnvironment(r *environmentScan) (e tenant.Environment, err error) {
	if !r.id.Valid {
		return e, nil
	}
	e = tenant.Environment{ID: r.id.String, Tenant: r.tenant.String, Name: r.name.String, Image: r.image.String, CreatedAt: instant(r.created.Int64),
		Profile: r.profile.String, Template: r.template.String, Timeout: time.Duration(r.timeout.Int64) * time.Microsecond}
	var l limitsRow
	if err := json.Unmarshal([]byte(r.limits.String), &l); err != nil {
		return e, err
	}
	e.Limits = runtime.Limits(l)
	if e.Permissions, err = permissionsOf(r.permissions.String); err != nil {
		return e, fmt.Errorf("permissions of %s: %w", e.ID, err)
	}
	if e.Env, e.Secrets, e.Bound, err = s.db.variablesOf(r.env.String, r.secrets, r.bound, secretsPlace(e.ID)); err != nil {
		return e, fmt.Errorf("variables of %s: %w", e.ID, err)
	}
	return e, nil
}

func secretsPlace(id string) string { return "environments/secrets/" + id }

func (s *tenants) scanEnvironment(sc scanner) (tenant.Environment, error) {
	var r environmentScan
	if err := sc.Scan(r.dest()...); err != nil {
		return tenant.Environment{}, err
	}
	return s.finishEnvironment(&r)
}

// environmentValues are what can be changed of an environment, as it is stored.
func (s *tenants) environmentValues(e tenant.Environment) ([]any, error) {
	limits, err := jsonOf(limitsRow(e.Limits), false)
	if err != nil {
		return nil, err
	}
	env, secrets, bound, err := s.db.variableValues(e.Env, e.Secrets, e.Bound, secretsPlace(e.ID))
	if err != nil {
		return nil, err
	}
	permissions, err := permissionsText(e.Permissions)
	if err != nil {
		return nil, err
	}
	return []any{e.Name, e.Image, limits, env, secrets, permissions, e.Profile, e.Template, e.Timeout.Microseconds(), bound}, nil
}

func (s *tenants) CreateEnvironment(ctx context.Context, e tenant.Environment) error {
	values, err := s.environmentValues(e)
	if err != nil {
		return s.db.write.wrap("create an environment", err)
	}
	err = s.db.write.transact(ctx, func(t *tx) error {
		if err := t.orNow(ctx, &e.CreatedAt); err != nil {
			return err
		}
		_, err := t.exec(ctx, `INSERT INTO environments (name, image, limits, env, secrets, permissions, profile, base_template, timeout, bound, id, tenant, created_at)
				VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, append(values, e.ID, e.Tenant, micros(e.CreatedAt))...)
		return err
	})
	return s.db.write.named("create an environment", err, "environment", e.Name)
}

func (s *tenants) UpdateEnvironment(ctx context.Context, e tenant.Environment) error {
	values, err := s.environmentValues(e)
	if err != nil {
		return s.db.write.wrap("update an environment", err)
	}
	err = execOne(ctx, s.db.write, "environment", `UPDATE environments SET name = ?, image = ?, limits = ?, env = ?, secrets = ?, permissions = ?, profile = ?, base_template = ?, timeout = ?, bound = ?
			WHERE id = ? AND tenant = ?`, append(values, e.ID, e.Tenant)...)
	return s.db.write.named("update an environment", err, "environment", e.Name)
}

func (s *tenants) Environment(ctx context.Context, id tenant.ID, idOrName string) (tenant.Environment, error) {
	e, err := s.scanEnvironment(s.db.read.row(ctx, `SELECT `+environmentColumns+` FROM environments`+byIDOrName, id, idOrName, idOrName, idOrName))
	return e, s.db.read.found("get an environment", err, "no such environment")
}

func (s *tenants) Environments(ctx context.Context, id tenant.ID) ([]tenant.Environment, error) {
	rows, err := s.db.read.rows(ctx, `SELECT `+environmentColumns+` FROM environments WHERE tenant = ? ORDER BY seq`, id)
	all, err := collect(rows, err, s.scanEnvironment)
	return all, s.db.read.wrap("list environments", err)
}

// DeleteEnvironment revokes the expired keys that are bound to it as well, so
// that a later expiry cannot bring one back without its environment.
func (s *tenants) DeleteEnvironment(ctx context.Context, tenantID tenant.ID, id string) error {
	err := s.db.write.transact(ctx, func(t *tx) error {
		if err := t.row(ctx, `SELECT id FROM environments WHERE id = ? AND tenant = ?`+lockRow(t.pool), id, tenantID).Scan(&id); err != nil {
			return err
		}
		now, err := t.pool.clock(ctx, t)
		if err != nil {
			return err
		}
		var living int
		if err := t.row(ctx, `SELECT count(*) FROM keys WHERE environment = ? AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)`,
			id, micros(now)).Scan(&living); err != nil {
			return err
		}
		if living > 0 {
			return fault.New(fault.Conflict, "living keys are bound to this environment (%d of them); revoke them first", living)
		}
		if _, err := t.exec(ctx, `UPDATE keys SET revoked_at = ? WHERE environment = ? AND revoked_at IS NULL`, micros(now), id); err != nil {
			return err
		}
		if err := deleteSnapshotsOf(ctx, t, tenantID, id); err != nil {
			return err
		}
		if _, err := t.exec(ctx, `UPDATE sandboxes SET bereft = TRUE WHERE tenant = ? AND environment = ? AND state <> 'destroyed'`, tenantID, id); err != nil {
			return err
		}
		_, err = t.exec(ctx, `DELETE FROM environments WHERE id = ?`, id)
		return err
	})
	return s.db.write.found("delete an environment", err, "no such environment")
}

// lockRow locks what was read against everything, also against rows that would
// refer to it.
func lockRow(p *pool) string {
	if p.postgres {
		return ` FOR UPDATE`
	}
	return ``
}
