package usage

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/usage"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

// chargeDay names a sum of charges.
type chargeDay struct {
	tenant string
	day    int64
	kind   usage.Kind
	name   string
}

// compare orders sums as every transaction changes them.
func (d chargeDay) compare(o chargeDay) int {
	return cmp.Or(cmp.Compare(d.tenant, o.tenant), cmp.Compare(d.day, o.day), cmp.Compare(d.kind, o.kind), cmp.Compare(d.name, o.name))
}

// chargeSum is what is added to a sum of charges.
type chargeSum struct {
	usage.Charge
	entries int64
}

// AddCharge appends a charge to the ledger. The batch adds it to the sums of its day and to the cost of
// its token.
func AddCharge(ctx context.Context, b *sqldb.Batch, c usage.Charge) error {
	c.Name = sqldb.Storable(c.Name)
	t := c.Tokens
	if err := b.Later(ctx, `INSERT INTO charges (tenant, at, id, key_id, agent, session, kind, name, calls, input, cache_read, cache_write, output, reasoning, estimated, cost)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		c.Tenant, sqldb.Micros(c.At), c.ID, c.Key, c.Agent, c.Session, string(c.Kind), c.Name, c.Calls, t.Input, t.CacheRead, t.CacheWrite, t.Output, t.Reasoning, t.Estimated, int64(c.Cost)); err != nil {
		return err
	}
	s := sqldb.Shared[sums](b)
	s.spend(&c)
	if s.charges == nil {
		s.charges = map[chargeDay]*chargeSum{}
	}
	key := chargeDay{c.Tenant, sqldb.Micros(c.At.UTC().Truncate(sqldb.Day)), c.Kind, c.Name}
	sum := s.charges[key]
	if sum == nil {
		sum = &chargeSum{}
		s.charges[key] = sum
	}
	sum.entries++
	sum.Calls += c.Calls
	sum.Cost = sum.Cost.Plus(c.Cost)
	sum.Tokens = sum.Tokens.Plus(t)
	if c.Agent != "" {
		of := s.agent(agentDay{c.Tenant, key.day, c.Agent, c.Session})
		of.Tokens, of.Cost = of.Tokens.Plus(t), of.Cost.Plus(c.Cost)
	}
	return nil
}

// addChargeDays adds what a batch was charged to the sums.
func (s *sums) addChargeDays(ctx context.Context, b *sqldb.Batch) error {
	for _, d := range slices.SortedFunc(maps.Keys(s.charges), chargeDay.compare) {
		u := s.charges[d]
		if err := b.Later(ctx, `INSERT INTO charge_days AS d (tenant, day, kind, name, entries, calls, input, cache_read, cache_write, output, reasoning, estimated, cost)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (tenant, day, kind, name) DO UPDATE SET entries = d.entries + excluded.entries, calls = d.calls + excluded.calls, input = d.input + excluded.input,
				cache_read = d.cache_read + excluded.cache_read, cache_write = d.cache_write + excluded.cache_write, output = d.output + excluded.output,
				reasoning = d.reasoning + excluded.reasoning, estimated = d.estimated + excluded.estimated,
				cost = CASE WHEN d.cost > 9223372036854775807 - excluded.cost THEN 9223372036854775807 ELSE d.cost + excluded.cost END`,
			d.tenant, d.day, string(d.kind), d.name, u.entries, u.Calls, u.Tokens.Input, u.Tokens.CacheRead, u.Tokens.CacheWrite, u.Tokens.Output, u.Tokens.Reasoning, u.Tokens.Estimated, int64(u.Cost)); err != nil {
			return err
		}
	}
	return nil
}

// chargeRow is the charges of a kind on a day. Their cost is in two parts, the millions of its
// units and the rest.
type chargeRow struct {
	usage.Day
	millions, rest int64
}

var chargeView = sqldb.NewView(
	sqldb.Col("day", sqldb.Read, func(r *chargeRow) any { return sqldb.TimeAt(&r.Date) }),
	sqldb.Col("kind", sqldb.Read, func(r *chargeRow) any { return &r.Source }),
	sqldb.Col("name", sqldb.Read, func(r *chargeRow) any { return &r.Name }),
	sqldb.Col("calls", sqldb.Read, func(r *chargeRow) any { return &r.Calls }),
	sqldb.Col("input", sqldb.Read, func(r *chargeRow) any { return &r.Tokens.Input }),
	sqldb.Col("cache_read", sqldb.Read, func(r *chargeRow) any { return &r.Tokens.CacheRead }),
	sqldb.Col("cache_write", sqldb.Read, func(r *chargeRow) any { return &r.Tokens.CacheWrite }),
	sqldb.Col("output", sqldb.Read, func(r *chargeRow) any { return &r.Tokens.Output }),
	sqldb.Col("reasoning", sqldb.Read, func(r *chargeRow) any { return &r.Tokens.Reasoning }),
	sqldb.Col("estimated", sqldb.Read, func(r *chargeRow) any { return &r.Tokens.Estimated }),
	sqldb.Col("cost / 1000000", sqldb.Read, func(r *chargeRow) any { return &r.millions }),
	sqldb.Col("cost % 1000000", sqldb.Read, func(r *chargeRow) any { return &r.rest }),
)

var (
	sumChargeDays = `SELECT ` + chargeView.Selected + `
		FROM charge_days WHERE tenant = ? AND day >= ? AND day < ? ORDER BY 1, 2, 3`
	// sumChargePart takes the sums of the whole day when the ledger does not have all of it
	// any more, as sumPart does. Money is summed up in two parts, which do not overflow.
	sumChargePart = `SELECT at - at % 86400000000, kind, name, CAST(sum(calls) AS BIGINT), CAST(sum(input) AS BIGINT), CAST(sum(cache_read) AS BIGINT), CAST(sum(cache_write) AS BIGINT),
			CAST(sum(output) AS BIGINT), CAST(sum(reasoning) AS BIGINT), CAST(sum(estimated) AS BIGINT), CAST(sum(cost / 1000000) AS BIGINT), CAST(sum(cost % 1000000) AS BIGINT)
		FROM charges WHERE tenant = ? AND at >= ? AND at < ? AND ` + chargesAreThere + ` GROUP BY 1, 2, 3
		UNION ALL SELECT ` + chargeView.Selected + `
		FROM charge_days WHERE tenant = ? AND day = ? AND NOT ` + chargesAreThere + ` ORDER BY 1, 2, 3`
	chargesAreThere = `(SELECT count(*) FROM charges WHERE tenant = ? AND at >= ? AND at < ?) =
		(SELECT coalesce(sum(entries), 0) FROM charge_days WHERE tenant = ? AND day = ?)`
)

func scanCharge(sc sqldb.Scanner) (usage.Day, error) {
	r, err := chargeView.Row(sc)
	r.Cost = joined(r.millions, r.rest)
	return r.Day, err
}

// joined is an amount of which the millions of its units were added up apart from the rest.
func joined(millions, rest int64) usage.Money {
	return usage.Money(1_000_000).Times(int(millions)).Plus(usage.Money(rest))
}

// monthCost is what a tenant's runs have cost in the current month of the database's clock.
func monthCost(ctx context.Context, q sqldb.Querier, tenantID string) (usage.Money, time.Time, error) {
	now, err := q.Dialect().Clock(ctx, q)
	if err != nil {
		return 0, now, err
	}
	var whole, rest int64
	start := monthOf(now)
	err = q.Row(ctx, `SELECT CAST(coalesce(sum(cost / 1000000), 0) AS BIGINT), CAST(coalesce(sum(cost % 1000000), 0) AS BIGINT) FROM charge_days WHERE tenant = ? AND day >= ? AND day < ?`,
		tenantID, sqldb.Micros(start), sqldb.Micros(start.AddDate(0, 1, 0))).Scan(&whole, &rest)
	return joined(whole, rest), now, err
}

func (s *Store) MonthCost(ctx context.Context, tenantID string) (usage.Money, error) {
	cost, _, err := monthCost(ctx, s.db.Read, tenantID)
	return cost, s.db.Read.Wrap("read what a month has cost", err)
}

func (s *Store) CheckCost(ctx context.Context, tenantID tenant.ID, more, next usage.Money) error {
	const step = "look at a tenant's budget"
	var budget float64
	err := s.db.Read.Row(ctx, `SELECT monthly_cost FROM tenants WHERE id = ?`, tenantID).Scan(&budget)
	if err == sql.ErrNoRows || err == nil && budget <= 0 {
		return nil
	}
	if err != nil {
		return s.db.Read.Wrap(step, err)
	}
	used, now, err := monthCost(ctx, s.db.Read, tenantID)
	if used = used.Plus(more); err == nil && (used >= usage.MoneyOf(budget) || used.Plus(next) > usage.MoneyOf(budget)) {
		err = usage.OverBudget(used, next, budget, monthOf(now).AddDate(0, 1, 0))
	}
	return s.db.Read.Wrap(step, err)
}
