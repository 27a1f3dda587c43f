package store

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
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

// keepRun counts a run that ends in b, all of whose entries are written.
func keepRun(ctx context.Context, b *batch, id run.ID) error {
	if err := b.flush(ctx); err != nil {
		return err
	}
	r := endedRun{id: id}
	if err := b.row(ctx, `SELECT tenant, keep, ended_at FROM runs WHERE id = ?`, string(id)).Scan(&r.tenant, &r.keep, &r.ended); err != nil {
		return err
	}
	n, err := r.bytes(ctx, b)
	if err == nil && n > 0 {
		b.sum(r.day()).kept += n
	}
	return err
}

func (r *endedRun) day() usageDay { return dayOf(r.tenant, instant(r.ended), runSource) }

// bytes is what r counts for; nothing if it is not kept.
func (r *endedRun) bytes(ctx context.Context, b *batch) (n int64, err error) {
	if r.keep == 0 {
		return 0, nil
	}
	err = b.row(ctx, `SELECT CAST(coalesce(sum(length(entry)), 0) AS BIGINT) FROM run_entries WHERE run = ?`, string(r.id)).Scan(&n)
	return n, err
}

// removeRuns deletes ended runs that a condition selects, and takes them off the sums, once:
// what another process is deleting is locked until it is gone.
func removeRuns(ctx context.Context, b *batch, condition string, args ...any) (gone []run.ID, err error) {
	if err := b.flush(ctx); err != nil { // this batch may have ended them
		return nil, err
	}
	lock := ""
	if b.pool.postgres {
		lock = ` FOR UPDATE`
	}
	rows, err := b.rows(ctx, `SELECT id, tenant, keep, ended_at FROM runs WHERE `+condition+lock, args...)
	ended, err := collect(rows, err, func(sc scanner) (r endedRun, err error) {
		return r, sc.Scan(&r.id, &r.tenant, &r.keep, &r.ended)
	})
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
			b.sum(r.day()).kept -= n
		}
		if _, err := b.exec(ctx, `DELETE FROM approvals WHERE run = ? AND session = ''`, string(r.id)); err != nil {
			return nil, err
		}
		if _, err := b.exec(ctx, `DELETE FROM runs WHERE id = ?`, string(r.id)); err != nil {
			return nil, err
		}
		gone = append(gone, r.id)
	}
	return gone, nil
}
