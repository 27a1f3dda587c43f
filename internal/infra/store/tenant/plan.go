package tenant

import (
	"context"
	"database/sql"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
	policydb "github.com/atoll-run/atoll/internal/infra/store/policy"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

// planTable is the table of plans.
var planTable = sqldb.NewTable("plans",
	sqldb.Col("name", sqldb.Fixed, func(p *tenant.Plan) any { return &p.Name }),
	sqldb.Col("built_in", sqldb.Fixed, func(p *tenant.Plan) any { return &p.BuiltIn }),
	sqldb.Col("max_cpu", sqldb.All, func(p *tenant.Plan) any { return &p.MaxCPU }),
	sqldb.Col("max_memory", sqldb.All, func(p *tenant.Plan) any { return &p.MaxMemory }),
	sqldb.Col("concurrency", sqldb.All, func(p *tenant.Plan) any { return &p.Concurrency }),
	sqldb.Col("max_timeout", sqldb.All, func(p *tenant.Plan) any { return sqldb.DurationAt(&p.MaxTimeout) }),
	sqldb.Col("streaming", sqldb.All, func(p *tenant.Plan) any { return &p.Streaming }),
	sqldb.Col("async", sqldb.All, func(p *tenant.Plan) any { return &p.Async }),
	sqldb.Col("key_isolation", sqldb.All, func(p *tenant.Plan) any { return &p.KeyIsolation }),
	sqldb.Col("max_output", sqldb.All, func(p *tenant.Plan) any { return &p.MaxOutput }),
	sqldb.Col("max_threads", sqldb.All, func(p *tenant.Plan) any { return &p.MaxThreads }),
	sqldb.Col("max_thread_size", sqldb.All, func(p *tenant.Plan) any { return &p.MaxThreadSize }),
	sqldb.Col("max_outputs", sqldb.All, func(p *tenant.Plan) any { return &p.MaxOutputs }),
	sqldb.Col("max_sandboxes", sqldb.All, func(p *tenant.Plan) any { return &p.MaxSandboxes }),
	sqldb.Col("max_sandbox_memory", sqldb.All, func(p *tenant.Plan) any { return &p.MaxSandboxMemory }),
	sqldb.Col("max_sandbox_disk", sqldb.All, func(p *tenant.Plan) any { return &p.MaxSandboxDisk }),
	sqldb.Col("max_sandbox_life", sqldb.All, func(p *tenant.Plan) any { return sqldb.DurationAt(&p.MaxSandboxLife) }),
	sqldb.Col("max_snapshots", sqldb.All, func(p *tenant.Plan) any { return &p.MaxSnapshots }),
	sqldb.Col("max_snapshot_size", sqldb.All, func(p *tenant.Plan) any { return &p.MaxSnapshotSize }),
	sqldb.Col("max_request_rate", sqldb.All, func(p *tenant.Plan) any { return &p.MaxRequestRate }),
	sqldb.Col("max_key_request_rate", sqldb.All, func(p *tenant.Plan) any { return &p.MaxKeyRequestRate }),
	sqldb.Col("max_upload_rate", sqldb.All, func(p *tenant.Plan) any { return &p.MaxUploadRate }),
	sqldb.Col("max_key_upload_rate", sqldb.All, func(p *tenant.Plan) any { return &p.MaxKeyUploadRate }),
	sqldb.Col("max_response_rate", sqldb.All, func(p *tenant.Plan) any { return &p.MaxResponseRate }),
	sqldb.Col("max_key_response_rate", sqldb.All, func(p *tenant.Plan) any { return &p.MaxKeyResponseRate }),
	sqldb.Col("max_token_rate", sqldb.All, func(p *tenant.Plan) any { return &p.MaxTokenRate }),
	sqldb.Col("max_key_token_rate", sqldb.All, func(p *tenant.Plan) any { return &p.MaxKeyTokenRate }),
)

// PutBuiltInPlans writes the built-in plans of this version.
func PutBuiltInPlans(ctx context.Context, db *sqldb.DB) error {
	for _, p := range tenant.Plans() {
		if err := putPlan(ctx, db.Write, p); err != nil {
			return err
		}
	}
	return nil
}

var putPlanQuery = planTable.Insert + ` ON CONFLICT (name) DO UPDATE SET ` + planTable.Excluded()

// putPlan makes or replaces a plan. A built-in one stays built in, and no other
// becomes it.
func putPlan(ctx context.Context, q sqldb.Querier, p tenant.Plan) error {
	values, err := planTable.Values(sqldb.Insert, &p)
	if err != nil {
		return err
	}
	_, err = q.Exec(ctx, putPlanQuery, values...)
	return err
}

func (s *Store) PutPlan(ctx context.Context, p tenant.Plan, events ...tenant.PolicyEvent) error {
	p.BuiltIn = false
	return s.db.Transact(ctx, "put a plan", func(t *sqldb.Tx) error {
		if err := putPlan(ctx, t, p); err != nil {
			return err
		}
		return policydb.Insert(ctx, t, events...)
	})
}

func (s *Store) Plan(ctx context.Context, name string) (tenant.Plan, error) {
	p, err := planTable.Row(s.db.Read.Row(ctx, `SELECT `+planTable.Selected+` FROM plans WHERE name = ?`, name))
	return p, s.db.Read.Found("get a plan", err, tenant.ErrNoPlan)
}

func (s *Store) Plans(ctx context.Context) ([]tenant.Plan, error) {
	all, err := sqldb.Select(ctx, s.db.Read, planTable.Row, `SELECT `+planTable.Selected+` FROM plans ORDER BY seq`)
	return all, s.db.Read.Wrap("list plans", err)
}

func (s *Store) DeletePlan(ctx context.Context, name string, events ...tenant.PolicyEvent) error {
	err := s.db.Write.Transact(ctx, func(t *sqldb.Tx) error {
		var builtIn bool
		if err := t.Row(ctx, `SELECT built_in FROM plans WHERE name = ?`, name).Scan(&builtIn); err != nil {
			return err
		}
		if builtIn {
			return tenant.BuiltIn(name)
		}
		if _, err := t.Exec(ctx, `DELETE FROM plans WHERE name = ?`, name); err != nil {
			return err
		}
		return policydb.Insert(ctx, t, events...)
	})
	switch {
	case err == sql.ErrNoRows:
		return tenant.ErrNoPlan
	case sqldb.Violates(err, sqldb.Foreign):
		return fault.Wrap(fault.Conflict, err, "there are tenants with this plan")
	}
	return s.db.Write.Wrap("delete a plan", err)
}
