package run

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
	usagedb "github.com/atoll-run/atoll/internal/infra/store/usage"
)

// What the log of an ended run takes is part of what its tenant keeps, as the output of
// executions is. It is what run_entries has, which does not change after the end, so that
// the same is taken off when the run goes.

// runSource is where the sums of a tenant's days have what its runs keep.
const runSource = "response"

// endedRun is a run as far as its part of the sums goes.
type endedRun struct {
	id     run.ID
	tenant tenant.ID
	keep   int64
	ended  int64
}

var endedView = sqldb.NewView(
	sqldb.Col("id", sqldb.Read, func(r *endedRun) any { return &r.id }),
	sqldb.Col("tenant", sqldb.Read, func(r *endedRun) any { return &r.tenant }),
	sqldb.Col("keep", sqldb.Read, func(r *endedRun) any { return &r.keep }),
	sqldb.Col("ended_at", sqldb.Read, func(r *endedRun) any { return &r.ended }),
)

// keepRun counts a run that ends in b, all of whose entries are written.
func keepRun(ctx context.Context, b *sqldb.Batch, id run.ID) error {
	if err := b.Flush(ctx); err != nil {
		return err
	}
	r, err := endedView.Row(b.Row(ctx, `SELECT `+endedView.Selected+` FROM runs WHERE id = ?`, string(id)))
	if err != nil {
		return err
	}
	n, err := r.bytes(ctx, b)
	if err == nil && n > 0 {
		usagedb.AddKept(b, r.tenant, sqldb.Instant(r.ended), runSource, n)
	}
	return err
}

// bytes is what r counts for; nothing if it is not kept.
func (r *endedRun) bytes(ctx context.Context, b *sqldb.Batch) (n int64, err error) {
	if r.keep == 0 {
		return 0, nil
	}
	err = b.Row(ctx, `SELECT CAST(coalesce(sum(length(entry)), 0) AS BIGINT) FROM run_entries WHERE run = ?`, string(r.id)).Scan(&n)
	return n, err
}

// removeRuns deletes ended runs that a condition selects, and takes them off the sums, once:
// what another process is deleting is locked until it is gone.
func removeRuns(ctx context.Context, b *sqldb.Batch, condition string, args ...any) (gone []run.ID, err error) {
	if err := b.Flush(ctx); err != nil { // this batch may have ended them
		return nil, err
	}
	lock := ""
	if b.Pool.Postgres {
		lock = ` FOR UPDATE`
	}
	ended, err := sqldb.Select(ctx, b, endedView.Row, `SELECT `+endedView.Selected+` FROM runs WHERE `+condition+lock, args...)
	if err != nil {
		return nil, err
	}
	for i := range ended {
		r := &ended[i]
		n, err := r.bytes(ctx, b)
		if err != nil {
			return nil, err
		}
		if n > 0 {
			usagedb.AddKept(b, r.tenant, sqldb.Instant(r.ended), runSource, -n)
		}
		if _, err := b.Exec(ctx, `DELETE FROM approvals WHERE run = ? AND session = ''`, string(r.id)); err != nil {
			return nil, err
		}
		if _, err := b.Exec(ctx, `DELETE FROM runs WHERE id = ?`, string(r.id)); err != nil {
			return nil, err
		}
		gone = append(gone, r.id)
	}
	return gone, nil
}
