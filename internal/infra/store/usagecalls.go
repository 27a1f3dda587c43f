package store

import (
	"context"
	"time"
)

// Calls implements usage.Store. The ledger is ordered by time, so that a short span is
// little to read.
func (s *usageStore) Calls(ctx context.Context, tenant, traceID string, since, before time.Time) (map[string]int, error) {
	const step = "count the calls of a trace"
	type count struct {
		source string
		calls  int
	}
	rows, err := s.db.read.rows(ctx, `SELECT source, sum(calls) FROM usage_entries WHERE tenant = ? AND at >= ? AND at < ? AND trace_id = ? GROUP BY source`,
		tenant, micros(since), micros(before), traceID)
	counts, err := collect(rows, err, func(sc scanner) (c count, err error) {
		return c, sc.Scan(&c.source, &c.calls)
	})
	if err != nil {
		return nil, s.db.read.wrap(step, err)
	}
	calls := map[string]int{}
	for _, c := range counts {
		calls[c.source] = c.calls
	}
	return calls, nil
}

// Made implements usage.Store.
func (s *usageStore) Made(ctx context.Context, tenant, traceID string, since, before time.Time) (bool, error) {
	var made int64
	err := s.db.read.row(ctx, `SELECT coalesce(sum(sessions), 0) FROM usage_entries WHERE tenant = ? AND at >= ? AND at < ? AND trace_id = ?`,
		tenant, micros(since), micros(before), traceID).Scan(&made)
	return made > 0, s.db.read.wrap("look whether a sandbox was made", err)
}
