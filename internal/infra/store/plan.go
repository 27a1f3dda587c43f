package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

const planColumns = `name, max_cpu, max_memory, concurrency, max_timeout, streaming, async, max_output, max_threads, max_thread_size, built_in,
	max_sandboxes, max_sandbox_memory, max_sandbox_disk, max_sandbox_life, max_snapshots, max_snapshot_size`

// planScan holds what of a plan needs another look after it was read.
type planScan struct {
	p       tenant.Plan
	timeout int64
	life    int64
}

func (s *planScan) dest() []any {
	p := &s.p
	return []any{&p.Name, &p.MaxCPU, &p.MaxMemory, &p.Concurrency, &s.timeout, &p.Streaming, &p.Async, &p.MaxOutput, &p.MaxThreads, &p.MaxThreadSize, &p.BuiltIn,
		&p.MaxSandboxes, &p.MaxSandboxMemory, &p.MaxSandboxDisk, &s.life, &p.MaxSnapshots, &p.MaxSnapshotSize}
}

func (s *planScan) finish() tenant.Plan {
	s.p.MaxTimeout = time.Duration(s.timeout) * time.Microsecond
	s.p.MaxSandboxLife = time.Duration(s.life) * time.Microsecond
	return s.p
}

func scanPlan(sc scanner) (tenant.Plan, error) {
	var s planScan
	err := sc.Scan(s.dest()...)
	return s.finish(), err
}

// putBuiltInPlans makes those of the contract what this version says they are.
func (db *DB) putBuiltInPlans(ctx context.Context) error {
	for _, p := range tenant.Plans() {
		if err := putPlan(ctx, db.write, p); err != nil {
			return err
		}
	}
	return nil
}

// putPlan makes or replaces a plan. A built-in one stays built in, and no other
// becomes it.
func putPlan(ctx context.Context, q querier, p tenant.Plan) error {
	_, err := q.exec(ctx, `INSERT INTO plans (`+planColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (name) DO UPDATE SET max_cpu = excluded.max_cpu, max_memory = excluded.max_memory, concurrency = excluded.concurrency,
		max_timeout = excluded.max_timeout, streaming = excluded.streaming, async = excluded.async, max_output = excluded.max_output,
		max_threads = excluded.max_threads, max_thread_size = excluded.max_thread_size,
		max_sandboxes = excluded.max_sandboxes, max_sandbox_memory = excluded.max_sandbox_memory, max_sandbox_disk = excluded.max_sandbox_disk,
		max_sandbox_life = excluded.max_sandbox_life, max_snapshots = excluded.max_snapshots, max_snapshot_size = excluded.max_snapshot_size`,
		p.Name, p.MaxCPU, p.MaxMemory, p.Concurrency, p.MaxTimeout.Microseconds(), p.Streaming, p.Async, p.MaxOutput, p.MaxThreads, p.MaxThreadSize, p.BuiltIn,
		p.MaxSandboxes, p.MaxSandboxMemory, p.MaxSandboxDisk, p.MaxSandboxLife.Microseconds(),
		p.MaxSnapshots, p.MaxSnapshotSize)
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
	p, err := scanPlan(s.db.read.row(ctx, `SELECT `+planColumns+` FROM plans WHERE name = ?`, name))
	return p, s.db.read.found("get a plan", err, "no such plan")
}

func (s *tenants) Plans(ctx context.Context) ([]tenant.Plan, error) {
	rows, err := s.db.read.rows(ctx, `SELECT `+planColumns+` FROM plans ORDER BY seq`)
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
			return fault.New(fault.Conflict, "plan %q is built in and cannot be removed", name)
		}
		if _, err := t.exec(ctx, `DELETE FROM plans WHERE name = ?`, name); err != nil {
			return err
		}
		return insertEvents(ctx, t, events)
	})
	switch {
	case err == sql.ErrNoRows:
		return fault.New(fault.NotFound, "no such plan")
	case violates(err, foreign):
		return fault.Wrap(fault.Conflict, err, "there are tenants with this plan")
	}
	return s.db.write.wrap("delete a plan", err)
}
