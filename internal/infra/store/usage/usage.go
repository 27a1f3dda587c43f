// Package usage stores the ledgers of use and charges, and their daily sums.
package usage

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/usage"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

// Store implements usage.Store.
type Store struct{ db *sqldb.DB }

// New returns the store in a database.
func New(db *sqldb.DB) *Store { return &Store{db} }

var _ usage.Store = (*Store)(nil)

// usageDay names a sum of the ledger.
type usageDay struct {
	tenant string
	day    int64
	source string
}

// daySum is an addition to a daily sum of the ledger.
type daySum struct {
	usage.Day
	entries int64
	kept    int64
}

// dayOf names the sum that a time of an interface is in.
func dayOf(tenant string, at time.Time, source string) usageDay {
	return usageDay{tenant, sqldb.Micros(at.UTC().Truncate(sqldb.Day)), source}
}

// sums are the amounts that a batch adds to the sums of the ledgers at its end.
type sums struct {
	days    map[usageDay]*daySum
	agents  map[agentDay]*daySum
	charges map[chargeDay]*chargeSum
	spent   map[string]usage.Money // by tokens
	kept    map[string]int64       // bytes per tenant without those in days, where a task has read them
}

// End implements the end of a batch.
func (s *sums) End(ctx context.Context, b *sqldb.Batch) error {
	for _, add := range []func(context.Context, *sqldb.Batch) error{s.addDays, s.addAgentDays, s.addChargeDays, s.addSpent} {
		if err := add(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// day returns the amounts that a batch adds to a sum of the ledger.
func (s *sums) day(key usageDay) *daySum {
	if s.days == nil {
		s.days = map[usageDay]*daySum{}
	}
	sum := s.days[key]
	if sum == nil {
		sum = &daySum{}
		s.days[key] = sum
	}
	return sum
}

// Add appends an entry to the ledger. The batch adds it to the sums of its day.
func Add(ctx context.Context, b *sqldb.Batch, u usage.Entry) error {
	if err := b.Later(ctx, `INSERT INTO usage_entries (trace_id, tenant, key_id, source, calls, seconds, cpu, memory, bytes_out, sessions, credits, at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		u.TraceID, u.Tenant, u.Key, u.Source, u.Calls(), u.Seconds, u.CPU, u.Memory, u.BytesOut, u.Sessions, u.Credits, sqldb.Micros(u.At)); err != nil {
		return err
	}
	s := sqldb.Shared[sums](b)
	if u.Agent != "" {
		of := s.agent(agentDay{u.Tenant, sqldb.Micros(u.At.UTC().Truncate(sqldb.Day)), u.Agent, u.Session})
		of.add(&u)
	}
	sum := s.day(dayOf(u.Tenant, u.At, u.Source))
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

// addDays adds the use of a batch to the sums, in an order that all batches keep.
func (s *sums) addDays(ctx context.Context, b *sqldb.Batch) error {
	for _, d := range slices.SortedFunc(maps.Keys(s.days), usageDay.compare) {
		u := s.days[d]
		if err := b.Later(ctx, `INSERT INTO usage_days AS d (tenant, day, source, entries, calls, sessions, seconds, cpu_seconds, gib_seconds, bytes_out, credits, kept)
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

// MonthCredits returns the credits that a tenant has used in the current month, and the time, both by
// the database's clock.
func MonthCredits(ctx context.Context, q sqldb.Querier, tenant string) (float64, time.Time, error) {
	now, err := q.Dialect().Clock(ctx, q)
	if err != nil {
		return 0, now, err
	}
	var credits float64
	start := monthOf(now)
	err = q.Row(ctx, `SELECT coalesce(sum(credits), 0.0) FROM usage_days WHERE tenant = ? AND day >= ? AND day < ?`,
		tenant, sqldb.Micros(start), sqldb.Micros(start.AddDate(0, 1, 0))).Scan(&credits)
	return credits, now, err
}

// OverBudget returns the error for a tenant that has used its monthly credits.
func OverBudget(used, budget float64, now time.Time) error {
	return usage.OverCredits(used, budget, monthOf(now).AddDate(0, 1, 0))
}

// monthOf is the first moment of a time's calendar month in UTC.
func monthOf(t time.Time) time.Time {
	t = t.UTC()
	return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
}

func (s *Store) Month(ctx context.Context, tenant string) (float64, error) {
	credits, _, err := MonthCredits(ctx, s.db.Read, tenant)
	return credits, s.db.Read.Wrap("read a month's use", err)
}

// dayView is the use of a source on a day.
var dayView = sqldb.NewView(
	sqldb.Col("day", sqldb.Read, func(d *usage.Day) any { return sqldb.TimeAt(&d.Date) }),
	sqldb.Col("source", sqldb.Read, func(d *usage.Day) any { return &d.Source }),
	sqldb.Col("calls", sqldb.Read, func(d *usage.Day) any { return &d.Calls }),
	sqldb.Col("sessions", sqldb.Read, func(d *usage.Day) any { return &d.Sessions }),
	sqldb.Col("seconds", sqldb.Read, func(d *usage.Day) any { return &d.Seconds }),
	sqldb.Col("cpu_seconds", sqldb.Read, func(d *usage.Day) any { return &d.CPUSeconds }),
	sqldb.Col("gib_seconds", sqldb.Read, func(d *usage.Day) any { return &d.GiBSeconds }),
	sqldb.Col("bytes_out", sqldb.Read, func(d *usage.Day) any { return &d.BytesOut }),
	sqldb.Col("credits", sqldb.Read, func(d *usage.Day) any { return &d.Credits }),
)

var (
	sumDays = `SELECT ` + dayView.Selected + `
		FROM usage_days WHERE tenant = ? AND day >= ? AND day < ? AND entries > 0 ORDER BY 1, 2`
	// sumPart uses the sum of the whole day if the ledger no longer has all of its entries. No time is
	// before 1970, so the remainder is the time since the start of the day.
	sumPart = `SELECT at - at % 86400000000, source, sum(calls), sum(sessions), sum(seconds), sum(seconds * cpu),
			sum(seconds * memory / 1073741824.0), sum(bytes_out), sum(credits)
		FROM usage_entries WHERE tenant = ? AND at >= ? AND at < ? AND ` + dayIsThere + ` GROUP BY 1, 2
		UNION ALL SELECT ` + dayView.Selected + `
		FROM usage_days WHERE tenant = ? AND day = ? AND entries > 0 AND NOT ` + dayIsThere + ` ORDER BY 1, 2`
	dayIsThere = `(SELECT count(*) FROM usage_entries WHERE tenant = ? AND at >= ? AND at < ?) =
		(SELECT coalesce(sum(entries), 0) FROM usage_days WHERE tenant = ? AND day = ?)`
)

// Summary reads whole days from their sums, and sums up the ledger for the partial days at both ends.
func (s *Store) Summary(ctx context.Context, tenant string, since, before time.Time) ([]usage.Day, error) {
	all, err := s.sums(ctx, sumDays, sumPart, tenant, since, before, dayView.Row)
	if err != nil {
		return nil, err
	}
	charged, err := s.sums(ctx, sumChargeDays, sumChargePart, tenant, since, before, scanCharge)
	if err != nil || len(charged) == 0 {
		return all, err
	}
	all = append(all, charged...)
	slices.SortStableFunc(all, func(a, b usage.Day) int { return a.Date.Compare(b.Date) })
	return all, nil
}

// sums asks for the sums of whole days, and for those of parts of a day.
func (s *Store) sums(ctx context.Context, days, parted, tenant string, since, before time.Time, scan func(sqldb.Scanner) (usage.Day, error)) ([]usage.Day, error) {
	first, last := since.UTC().Add(sqldb.Day-1).Truncate(sqldb.Day), before.UTC().Truncate(sqldb.Day)
	type part struct {
		query string
		args  []any
	}
	within := func(from, until time.Time) part {
		whole := from.UTC().Truncate(sqldb.Day)
		begin, end := sqldb.Micros(whole), sqldb.Micros(whole.Add(sqldb.Day))
		there := []any{tenant, begin, end, tenant, begin}
		return part{parted, slices.Concat([]any{tenant, sqldb.Micros(from), sqldb.Micros(until)}, there, []any{tenant, begin}, there)}
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
		parts = append(parts, part{days, []any{tenant, sqldb.Micros(first), sqldb.Micros(last)}})
		if last.Before(before) {
			parts = append(parts, within(last, before))
		}
	}
	var all []usage.Day
	for _, p := range parts {
		found, err := sqldb.Select(ctx, s.db.Read, scan, p.query, p.args...)
		if err != nil {
			return nil, s.db.Read.Wrap("sum up use", err)
		}
		all = append(all, found...)
	}
	return all, nil
}

func (s *Store) Recorded(ctx context.Context, tenant string, within time.Duration) (n int64, err error) {
	err = s.db.Read.Row(ctx, `SELECT CAST(coalesce(sum(entries), 0) AS BIGINT) FROM usage_days WHERE tenant = ? AND day > atoll_now() - ?`,
		tenant, (within + sqldb.Day).Microseconds()).Scan(&n)
	return n, s.db.Read.Wrap("count calls", err)
}

// Purge goes tenant by tenant, as the ledger is ordered.
func (s *Store) Purge(ctx context.Context, keep time.Duration, most int) (int, error) {
	now, err := s.db.Read.Clock(ctx, s.db.Read)
	if err != nil {
		return 0, s.db.Read.Wrap("purge the ledger", err)
	}
	total, until := 0, sqldb.Micros(now.Add(-keep).Truncate(sqldb.Day))
	for _, in := range []struct{ table, at, id string }{{"usage_entries", "at", "trace_id"}, {"charges", "at", "id"}, {"agent_days", "day", "agent, session"}} {
		n, err := s.purge(ctx, in.table, in.at, in.id, until, most-total)
		if total += n; err != nil || total >= most {
			return total, err
		}
	}
	return total, nil
}

func (s *Store) purge(ctx context.Context, table, at, id string, until int64, most int) (int, error) {
	tenants, err := s.db.Read.TenantsIn(ctx, table)
	if err != nil {
		return 0, s.db.Read.Wrap("list tenants in the ledger", err)
	}
	total := 0
	for _, tenant := range tenants {
		n, err := s.db.Write.Exec(ctx, fmt.Sprintf(`DELETE FROM %[1]s WHERE (tenant, %[2]s, %[3]s) IN (
				SELECT tenant, %[2]s, %[3]s FROM %[1]s WHERE tenant = ? AND %[2]s < ? ORDER BY %[2]s, %[3]s LIMIT ?)`, table, at, id),
			tenant, until, most-total)
		if err != nil {
			return total, s.db.Write.Wrap("purge the ledger", err)
		}
		if total += int(n); total >= most {
			break
		}
	}
	return total, nil
}
