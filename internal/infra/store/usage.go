package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/usage"
)

// usageStore is the usage.Store.
type usageStore struct{ db *DB }

var _ usage.Store = (*usageStore)(nil)

// usageDay names a sum of the ledger.
type usageDay struct {
	tenant string
	day    int64
	source string
}

// daySum is what is added to a sum of the ledger.
type daySum struct {
	usage.Day
	entries int64
	kept    int64
}

// dayOf names the sum that a time of an interface is in.
func dayOf(tenant string, at time.Time, source string) usageDay {
	return usageDay{tenant, micros(at.UTC().Truncate(day)), source}
}

// sum is what b adds to a sum of the ledger.
func (b *batch) sum(key usageDay) *daySum {
	if b.used == nil {
		b.used = map[usageDay]*daySum{}
	}
	sum := b.used[key]
	if sum == nil {
		sum = &daySum{}
		b.used[key] = sum
	}
	return sum
}

// addUsage appends an entry to the ledger; it is added to its day when the batch
// ends.
func addUsage(ctx context.Context, b *batch, u usage.Entry) error {
	if err := b.later(ctx, `INSERT INTO usage_entries (trace_id, tenant, key_id, source, calls, seconds, cpu, memory, bytes_out, sessions, credits, at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		u.TraceID, u.Tenant, u.Key, u.Source, u.Calls(), u.Seconds, u.CPU, u.Memory, u.BytesOut, u.Sessions, u.Credits, micros(u.At)); err != nil {
		return err
	}
	if u.Agent != "" {
		of := b.agentSum(agentDay{u.Tenant, micros(u.At.UTC().Truncate(day)), u.Agent, u.Session})
		of.add(&u)
	}
	sum := b.sum(dayOf(u.Tenant, u.At, u.Source))
	sum.entries++
	sum.add(&u)
	return nil
}

// add adds an entry of the ledger.
func (s *daySum) add(u *usage.Entry) {
	s.Calls += int64(u.Calls())
	s.Sessions += int64(u.Sessions)
	s.Seconds += u.Seconds
	s.CPUSeconds += u.Seconds * u.CPU
	s.GiBSeconds += u.Seconds * float64(u.Memory) / (1 << 30)
	s.BytesOut += u.BytesOut
	s.Credits += u.Credits
}

// compare orders sums as every transaction changes them.
func (d usageDay) compare(o usageDay) int {
	return cmp.Or(cmp.Compare(d.tenant, o.tenant), cmp.Compare(d.day, o.day), cmp.Compare(d.source, o.source))
}

// addDays adds what a batch has used to the sums, in an order that all batches
// keep.
func addDays(ctx context.Context, b *batch) error {
	for _, d := range slices.SortedFunc(maps.Keys(b.used), usageDay.compare) {
		u := b.used[d]
		if err := b.later(ctx, `INSERT INTO usage_days AS d (tenant, day, source, entries, calls, sessions, seconds, cpu_seconds, gib_seconds, bytes_out, credits, kept)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (tenant, day, source) DO UPDATE SET entries = d.entries + excluded.entries, calls = d.calls + excluded.calls, sessions = d.sessions + excluded.sessions,
				seconds = d.seconds + excluded.seconds, cpu_seconds = d.cpu_seconds + excluded.cpu_seconds, gib_seconds = d.gib_seconds + excluded.gib_seconds,
				bytes_out = d.bytes_out + excluded.bytes_out, credits = d.credits + excluded.credits, kept = d.kept + excluded.kept`,
			d.tenant, d.day, d.source, u.entries, u.Calls, u.Sessions, u.Seconds, u.CPUSeconds, u.GiBSeconds, u.BytesOut, u.Credits, u.kept); err != nil {
			return err
		}
	}
	return nil
}

// monthCredits is what a tenant has used in the current month of the
// database's clock.
func monthCredits(ctx context.Context, q querier, tenant string) (float64, time.Time, error) {
	now, err := q.dialect().clock(ctx, q)
	if err != nil {
		return 0, now, err
	}
	var credits float64
	start := monthOf(now)
	err = q.row(ctx, `SELECT coalesce(sum(credits), 0.0) FROM usage_days WHERE tenant = ? AND day >= ? AND day < ?`,
		tenant, micros(start), micros(start.AddDate(0, 1, 0))).Scan(&credits)
	return credits, now, err
}

// monthOf is the first moment of a time's calendar month in UTC.
func monthOf(t time.Time) time.Time {
	t = t.UTC()
	return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
}

func (s *usageStore) Month(ctx context.Context, tenant string) (float64, error) {
	credits, _, err := monthCredits(ctx, s.db.read, tenant)
	return credits, s.db.read.wrap("read a month's use", err)
}

const (
	sumDays = `SELECT day, source, calls, sessions, seconds, cpu_seconds, gib_seconds, bytes_out, credits
		FROM usage_days WHERE tenant = ? AND day >= ? AND day < ? AND entries > 0 ORDER BY 1, 2`
	// sumPart takes the sums of the whole day when the ledger does not have all of
	// it any more. Nothing is before 1970, so that a remainder is what has passed
	// of a day.
	sumPart = `SELECT at - at % 86400000000, source, sum(calls), sum(sessions), sum(seconds), sum(seconds * cpu),
			sum(seconds * memory / 1073741824.0), sum(bytes_out), sum(credits)
		FROM usage_entries WHERE tenant = ? AND at >= ? AND at < ? AND ` + dayIsThere + ` GROUP BY 1, 2
		UNION ALL SELECT day, source, calls, sessions, seconds, cpu_seconds, gib_seconds, bytes_out, credits
		FROM usage_days WHERE tenant = ? AND day = ? AND entries > 0 AND NOT ` + dayIsThere + ` ORDER BY 1, 2`
	dayIsThere = `(SELECT count(*) FROM usage_entries WHERE tenant = ? AND at >= ? AND at < ?) =
		(SELECT coalesce(sum(entries), 0) FROM usage_days WHERE tenant = ? AND day = ?)`
)

// Summary takes whole days from their sums, and adds up the ledger for what is
// before and after them.
func (s *usageStore) Summary(ctx context.Context, tenant string, since, before time.Time) ([]usage.Day, error) {
	all, err := s.sums(ctx, sumDays, sumPart, tenant, since, before, scanDay)
	if err != nil {
		return nil, err
	}
	charged, err := s.sums(ctx, sumChargeDays, sumChargePart, tenant, since, before, scanChargeDay)
	if err != nil || len(charged) == 0 {
		return all, err
	}
	all = append(all, charged...)
	slices.SortStableFunc(all, func(a, b usage.Day) int { return a.Date.Compare(b.Date) })
	return all, nil
}

func scanDay(sc scanner) (d usage.Day, err error) {
	var date int64
	err = sc.Scan(&date, &d.Source, &d.Calls, &d.Sessions, &d.Seconds, &d.CPUSeconds, &d.GiBSeconds, &d.BytesOut, &d.Credits)
	d.Date = instant(date)
	return d, err
}

// sums asks for the sums of whole days, and for those of parts of a day.
func (s *usageStore) sums(ctx context.Context, days, parted, tenant string, since, before time.Time, scan func(scanner) (usage.Day, error)) ([]usage.Day, error) {
	first, last := since.UTC().Add(day-1).Truncate(day), before.UTC().Truncate(day)
	type part struct {
		query string
		args  []any
	}
	within := func(from, until time.Time) part {
		whole := from.UTC().Truncate(day)
		begin, end := micros(whole), micros(whole.Add(day))
		there := []any{tenant, begin, end, tenant, begin}
		return part{parted, slices.Concat([]any{tenant, micros(from), micros(until)}, there, []any{tenant, begin}, there)}
	}
	var parts []part
	if last.Before(first) { // within a day
		if since.Before(before) {
			parts = append(parts, within(since, before))
		}
	} else {
		if since.Before(first) {
			parts = append(parts, within(since, first))
		}
		parts = append(parts, part{days, []any{tenant, micros(first), micros(last)}})
		if last.Before(before) {
			parts = append(parts, within(last, before))
		}
	}
	var all []usage.Day
	for _, p := range parts {
		rows, err := s.db.read.rows(ctx, p.query, p.args...)
		found, err := collect(rows, err, scan)
		if err != nil {
			return nil, s.db.read.wrap("sum up use", err)
		}
		all = append(all, found...)
	}
	return all, nil
}

func (s *usageStore) Recorded(ctx context.Context, tenant string, within time.Duration) (n int64, err error) {
	err = s.db.read.row(ctx, `SELECT CAST(coalesce(sum(entries), 0) AS BIGINT) FROM usage_days WHERE tenant = ? AND day > atoll_now() - ?`,
		tenant, (within + day).Microseconds()).Scan(&n)
	return n, s.db.read.wrap("count calls", err)
}

// Purge goes tenant by tenant, as the ledger is ordered.
func (s *usageStore) Purge(ctx context.Context, keep time.Duration, most int) (int, error) {
	now, err := s.db.read.clock(ctx, s.db.read)
	if err != nil {
		return 0, s.db.read.wrap("purge the ledger", err)
	}
	total, until := 0, micros(now.Add(-keep).Truncate(day))
	for _, in := range []struct{ table, at, id string }{{"usage_entries", "at", "trace_id"}, {"charges", "at", "id"}, {"agent_days", "day", "agent, session"}} {
		n, err := s.purge(ctx, in.table, in.at, in.id, until, most-total)
		if total += n; err != nil || total >= most {
			return total, err
		}
	}
	return total, nil
}

func (s *usageStore) purge(ctx context.Context, table, at, id string, until int64, most int) (int, error) {
	tenants, err := s.db.read.tenantsIn(ctx, table)
	if err != nil {
		return 0, s.db.read.wrap("list tenants in the ledger", err)
	}
	total := 0
	for _, tenant := range tenants {
		n, err := s.db.write.exec(ctx, fmt.Sprintf(`DELETE FROM %[1]s WHERE (tenant, %[2]s, %[3]s) IN (
				SELECT tenant, %[2]s, %[3]s FROM %[1]s WHERE tenant = ? AND %[2]s < ? ORDER BY %[2]s, %[3]s LIMIT ?)`, table, at, id),
			tenant, until, most-total)
		if err != nil {
			return total, s.db.write.wrap("purge the ledger", err)
		}
		if total += int(n); total >= most {
			break
		}
	}
	return total, nil
}
