package store

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/usage"
)

// What ended executions keep is added up by the day they ended on, next to what they
// used: the statement that adds a batch's use adds this too. It becomes less when
// their records go.

// sumKept is what a tenant's executions keep, of the days in a keptWindow.
const sumKept = `SELECT CAST(coalesce(sum(kept), 0) AS BIGINT) FROM usage_days WHERE tenant = ? AND day > atoll_now() - ?`

// keptWindow is how long ago a day may have begun that has an execution which is not
// expired, in microseconds.
func keptWindow(keep time.Duration) int64 { return (keep + day).Microseconds() }

func (b *batch) setKept(tenant string, n int64) {
	if b.kept == nil {
		b.kept = map[string]int64{}
	}
	b.kept[tenant] = n
}

// keptUntil is when a part of what a tenant keeps has expired for certain: when all of the
// oldest day has, or all that is there now.
func keptUntil(ctx context.Context, q querier, tenant string, keep time.Duration) (time.Time, error) {
	now, err := q.dialect().clock(ctx, q)
	if err != nil {
		return time.Time{}, err
	}
	var oldest sql.NullInt64
	if err := q.row(ctx, `SELECT min(day) FROM usage_days WHERE tenant = ? AND day > atoll_now() - ? AND kept > 0`, tenant, keptWindow(keep)).Scan(&oldest); err != nil {
		return time.Time{}, err
	}
	resets := now.Add(keep)
	if oldest.Valid {
		if end := instant(oldest.Int64).Add(day + keep); end.Before(resets) {
			resets = end
		}
	}
	return resets, nil
}

// free takes what deleted executions kept from the sums of their days, which are the
// last rows that a transaction changes.
func free(ctx context.Context, q querier, freed map[usageDay]int64) error {
	for _, d := range slices.SortedFunc(maps.Keys(freed), usageDay.compare) {
		if _, err := q.exec(ctx, `UPDATE usage_days SET kept = kept - ? WHERE tenant = ? AND day = ? AND source = ?`,
			freed[d], d.tenant, d.day, d.source); err != nil {
			return err
		}
	}
	return nil
}

func (s *usageStore) Kept(ctx context.Context, tenant string, keep time.Duration) (usage.Kept, error) {
	var k usage.Kept
	err := s.db.read.row(ctx, sumKept, tenant, keptWindow(keep)).Scan(&k.Bytes)
	if err == nil && k.Bytes > 0 {
		k.ResetsAt, err = keptUntil(ctx, s.db.read, tenant, keep)
	}
	return k, s.db.read.wrap("read what is kept", err)
}
