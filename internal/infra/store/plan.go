package store

import (
	"context"
	"database/sql"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// planTable is the table of plans.
var planTable = newTable("plans",
	col("name", fixed, func(p *tenant.Plan) any { return &p.Name }),
	col("built_in", fixed, func(p *tenant.Plan) any { return &p.BuiltIn }),
	col("max_cpu", all, func(p *tenant.Plan) any { return &p.MaxCPU }),
	col("max_memory", all, func(p *tenant.Plan) any { return &p.MaxMemory }),
	col("concurrency", all, func(p *tenant.Plan) any { return &p.Concurrency }),
	col("max_timeout", all, func(p *tenant.Plan) any { return durationAt(&p.MaxTimeout) }),
	col("streaming", all, func(p *tenant.Plan) any { return &p.Streaming }),
	col("async", all, func(p *tenant.Plan) any { return &p.Async }),
	col("key_isolation", all, func(p *tenant.Plan) any { return &p.KeyIsolation }),
	col("max_output", all, func(p *tenant.Plan) any { return &p.MaxOutput }),
	col("max_threads", all, func(p *tenant.Plan) any { return &p.MaxThreads }),
	col("max_thread_size", all, func(p *tenant.Plan) any { return &p.MaxThreadSize }),
	col("max_outputs", all, func(p *tenant.Plan) any { return &p.MaxOutputs }),
	col("max_sandboxes", all, func(p *tenant.Plan) any { return &p.MaxSandboxes }),
	col("max_sandbox_memory", all, func(p *tenant.Plan) any { return &p.MaxSandboxMemory }),
	col("max_sandbox_disk", all, func(p *tenant.Plan) any { return &p.MaxSandboxDisk }),
	col("max_sandbox_life", all, func(p *tenant.Plan) any { return durationAt(&p.MaxSandboxLife) }),
	col("max_snapshots", all, func(p *tenant.Plan) any { return &p.MaxSnapshots }),
	col("max_snapshot_size", all, func(p *tenant.Plan) any { return &p.MaxSnapshotSize }),
	col("max_request_rate", all, func(p *tenant.Plan) any { return &p.MaxRequestRate }),
	col("max_key_request_rate", all, func(p *tenant.Plan) any { return &p.MaxKeyRequestRate }),
	col("max_upload_rate", all, func(p *tenant.Plan) any { return &p.MaxUploadRate }),
	col("max_key_upload_rate", all, func(p *tenant.Plan) any { return &p.MaxKeyUploadRate }),
	col("max_response_rate", all, func(p *tenant.Plan) any { return &p.MaxResponseRate }),
	col("max_key_response_rate", all, func(p *tenant.Plan) any { return &p.MaxKeyResponseRate }),
	col("max_token_rate", all, func(p *tenant.Plan) any { return &p.MaxTokenRate }),
	col("max_key_token_rate", all, func(p *tenant.Plan) any { return &p.MaxKeyTokenRate }),
)

func scanPlan(sc scanner) (p tenant.Plan, err error) { return p, planTable.scan(sc, &p) }

// putBuiltInPlans makes those of the contract what this version says they are.
func (db *DB) putBuiltInPlans(ctx context.Context) error {
	for _, p := range tenant.Plans() {
		if err := putPlan(ctx, db.write, p); err != nil {
			return err
		}
	}
	return nil
}

var putPlanQuery = planTable.insert + ` ON CONFLICT (name) DO UPDATE SET ` + planTable.excluded()

// putPlan makes or replaces a plan. A built-in one stays built in, and no other
// becomes it.
func putPlan(ctx context.Context, q querier, p tenant.Plan) error {
	values, err := planTable.values(insert, &p)
	if err != nil {
		return err
	}
	_, err = q.exec(ctx, putPlanQuery, values...)
	return err
}

func (s *tenants) PutPlan(ctx context.Context, p tenant.Plan, events ...tenant.PolicyEvent) error {
	p.BuiltIn = false
	err := s.db.write.transact(ctx, func(t *tx) error {
		if err := putPlan(ctx, t, p); err != nil {
			return err
		}
		return insertEvents(ctx, t, events)
	})
	return s.db.write.wrap("put a plan", err)
}

func (s *tenants) Plan(ctx context.Context, name string) (tenant.Plan, error) {
	p, err := scanPlan(s.db.read.row(ctx, `SELECT `+planTable.selected+` FROM plans WHERE name = ?`, name))
	return p, s.db.read.found("get a plan", err, tenant.ErrNoPlan)
}

func (s *tenants) Plans(ctx context.Context) ([]tenant.Plan, error) {
	rows, err := s.db.read.rows(ctx, `SELECT `+planTable.selected+` FROM plans ORDER BY seq`)
	all, err := collect(rows, err, scanPlan)
	return all, s.db.read.wrap("list plans", err)
}

func (s *tenants) DeletePlan(ctx context.Context, name string, events ...tenant.PolicyEvent) error {
	err := s.db.write.transact(ctx, func(t *tx) error {
		var builtIn bool
		if err := t.row(ctx, `SELECT built_in FROM plans WHERE name = ?`, name).Scan(&builtIn); err != nil {
			return err
		}
		if builtIn {
			return tenant.BuiltIn(name)
		}
		if _, err := t.exec(ctx, `DELETE FROM plans WHERE name = ?`, name); err != nil {
			return err
		}
		return insertEvents(ctx, t, events)
	})
	switch {
	case err == sql.ErrNoRows:
		return tenant.ErrNoPlan
	case violates(err, foreign):
		return fault.Wrap(fault.Conflict, err, "there are tenants with this plan")
	}
	return s.db.write.wrap("delete a plan", err)
}
