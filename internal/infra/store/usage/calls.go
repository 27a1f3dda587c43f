package usage

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

// count is the calls of a source.
type count struct {
	source string
	calls  int
}

var countView = sqldb.NewView(
	sqldb.Col("source", sqldb.Read, func(c *count) any { return &c.source }),
	sqldb.Col("sum(calls)", sqldb.Read, func(c *count) any { return &c.calls }),
)

// Calls implements usage.Store. The ledger is ordered by time, so that a short span is
// little to read.
func (s *Store) Calls(ctx context.Context, tenant, traceID string, since, before time.Time) (map[string]int, error) {
	const step = "count the calls of a trace"
	counts, err := sqldb.Select(ctx, s.db.Read, countView.Row, `SELECT `+countView.Selected+` FROM usage_entries WHERE tenant = ? AND at >= ? AND at < ? AND trace_id = ? GROUP BY source`,
		tenant, sqldb.Micros(since), sqldb.Micros(before), traceID)
	if err != nil {
		return nil, s.db.Read.Wrap(step, err)
	}
	calls := map[string]int{}
	for _, c := range counts {
		calls[c.source] = c.calls
	}
	return calls, nil
}

// Made implements usage.Store.
func (s *Store) Made(ctx context.Context, tenant, traceID string, since, before time.Time) (bool, error) {
	var made int64
	err := s.db.Read.Row(ctx, `SELECT coalesce(sum(sessions), 0) FROM usage_entries WHERE tenant = ? AND at >= ? AND at < ? AND trace_id = ?`,
		tenant, sqldb.Micros(since), sqldb.Micros(before), traceID).Scan(&made)
	return made > 0, s.db.Read.Wrap("look whether a sandbox was made", err)
}
