package usage

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/usage"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

// The daily sums also count the stored bytes of ended executions, by the day of their end. The
// statement that adds a batch's use adds these bytes. Deleting records subtracts them.

// SumKept selects the bytes that a tenant's executions keep. Its arguments are the tenant and a
// KeptWindow.
const SumKept = `SELECT CAST(coalesce(sum(kept), 0) AS BIGINT) FROM usage_days WHERE tenant = ? AND day > atoll_now() - ?`

// KeptWindow returns the age of the oldest day that can have an execution which has not expired, in
// microseconds.
func KeptWindow(keep time.Duration) int64 { return (keep + sqldb.Day).Microseconds() }

// SetKept notes the bytes that a tenant's ended executions keep, for other tasks of the batch.
func SetKept(b *sqldb.Batch, tenant string, n int64) {
	s := sqldb.Shared[sums](b)
	if s.kept == nil {
		s.kept = map[string]int64{}
	}
	s.kept[tenant] = n
}

// KeptIn returns the bytes that a tenant's ended executions keep, those of this batch included, if
// SetKept has noted them.
func KeptIn(b *sqldb.Batch, tenant string) (n int64, known bool) {
	s := sqldb.Shared[sums](b)
	n, known = s.kept[tenant]
	for d, sum := range s.days {
		if d.tenant == tenant {
			n += sum.kept
		}
	}
	return n, known
}

// AddKept adds bytes to a tenant's stored bytes at the end of the batch.
func AddKept(b *sqldb.Batch, tenant string, at time.Time, source string, n int64) {
	sqldb.Shared[sums](b).day(dayOf(tenant, at, source)).kept += n
}

// KeptUntil returns a time at which some of the bytes that a tenant keeps have expired: keep after the
// end of its oldest day with bytes, at most keep from now.
func KeptUntil(ctx context.Context, q sqldb.Querier, tenant string, keep time.Duration) (time.Time, error) {
	now, err := q.Dialect().Clock(ctx, q)
	if err != nil {
		return time.Time{}, err
	}
	var oldest sql.NullInt64
	if err := q.Row(ctx, `SELECT min(day) FROM usage_days WHERE tenant = ? AND day > atoll_now() - ? AND kept > 0`, tenant, KeptWindow(keep)).Scan(&oldest); err != nil {
		return time.Time{}, err
	}
	resets := now.Add(keep)
	if oldest.Valid {
		if end := sqldb.Instant(oldest.Int64).Add(sqldb.Day + keep); end.Before(resets) {
			resets = end
		}
	}
	return resets, nil
}

// Freed are the bytes that deleted executions kept.
type Freed map[usageDay]int64

// Add adds the bytes of an execution that ended at a time.
func (f Freed) Add(tenant string, at time.Time, source string, n int64) {
	f[dayOf(tenant, at, source)] += n
}

// Subtract takes the bytes from the sums of their days, which are the last rows that a transaction
// changes.
func (f Freed) Subtract(ctx context.Context, q sqldb.Querier) error {
	for _, d := range slices.SortedFunc(maps.Keys(f), usageDay.compare) {
		if _, err := q.Exec(ctx, `UPDATE usage_days SET kept = kept - ? WHERE tenant = ? AND day = ? AND source = ?`,
			f[d], d.tenant, d.day, d.source); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) Kept(ctx context.Context, tenant string, keep time.Duration) (usage.Kept, error) {
	var k usage.Kept
	err := s.db.Read.Row(ctx, SumKept, tenant, KeptWindow(keep)).Scan(&k.Bytes)
	if err == nil && k.Bytes > 0 {
		k.ResetsAt, err = KeptUntil(ctx, s.db.Read, tenant, keep)
	}
	return k, s.db.Read.Wrap("read what is kept", err)
}
