package store

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/usage"
)

// agentDay is the key of an agent's daily usage in a session.
type agentDay struct {
	tenant         string
	day            int64
	agent, session string
}

// compare defines the order in which every transaction updates sums, which prevents deadlocks.
func (d agentDay) compare(o agentDay) int {
	return cmp.Or(cmp.Compare(d.tenant, o.tenant), cmp.Compare(d.day, o.day), cmp.Compare(d.agent, o.agent), cmp.Compare(d.session, o.session))
}

// agentSum returns the amounts that b adds to a sum.
func (b *batch) agentSum(key agentDay) *daySum {
	key.agent, key.session = storable(key.agent), storable(key.session)
	if b.agents == nil {
		b.agents = map[agentDay]*daySum{}
	}
	sum := b.agents[key]
	if sum == nil {
		sum = &daySum{}
		b.agents[key] = sum
	}
	return sum
}

// addAgentDays adds the usage of a batch's agents to the daily sums.
func addAgentDays(ctx context.Context, b *batch) error {
	for _, d := range slices.SortedFunc(maps.Keys(b.agents), agentDay.compare) {
		u := b.agents[d]
		t := &u.Tokens
		if err := b.later(ctx, `INSERT INTO agent_days AS d (tenant, day, agent, session, calls, sessions, seconds, cpu_seconds, gib_seconds, bytes_out, credits, input, cache_read, cache_write, output, reasoning, estimated, cost)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (tenant, day, agent, session) DO UPDATE SET calls = d.calls + excluded.calls, sessions = d.sessions + excluded.sessions,
				seconds = d.seconds + excluded.seconds, cpu_seconds = d.cpu_seconds + excluded.cpu_seconds, gib_seconds = d.gib_seconds + excluded.gib_seconds,
				bytes_out = d.bytes_out + excluded.bytes_out, credits = d.credits + excluded.credits, input = d.input + excluded.input,
				cache_read = d.cache_read + excluded.cache_read, cache_write = d.cache_write + excluded.cache_write, output = d.output + excluded.output,
				reasoning = d.reasoning + excluded.reasoning, estimated = d.estimated + excluded.estimated,
				cost = CASE WHEN d.cost > 9223372036854775807 - excluded.cost THEN 9223372036854775807 ELSE d.cost + excluded.cost END`,
			d.tenant, d.day, d.agent, d.session, u.Calls, u.Sessions, u.Seconds, u.CPUSeconds, u.GiBSeconds, u.BytesOut, u.Credits,
			t.Input, t.CacheRead, t.CacheWrite, t.Output, t.Reasoning, t.Estimated, int64(u.Cost)); err != nil {
			return err
		}
	}
	return nil
}

// Groups implements usage.Store. It sums money in two parts to avoid an overflow.
func (s *usageStore) Groups(ctx context.Context, f usage.GroupFilter) ([]usage.Group, error) {
	session := `''`
	if f.Sessions {
		session = `session`
	}
	q := &selection{}
	q.add(`SELECT agent, `+session+` AS part, CAST(sum(calls) AS BIGINT), CAST(sum(sessions) AS BIGINT), sum(seconds), sum(cpu_seconds), sum(gib_seconds), CAST(sum(bytes_out) AS BIGINT), sum(credits),
			CAST(sum(input) AS BIGINT), CAST(sum(cache_read) AS BIGINT), CAST(sum(cache_write) AS BIGINT), CAST(sum(output) AS BIGINT), CAST(sum(reasoning) AS BIGINT), CAST(sum(estimated) AS BIGINT),
			CAST(sum(cost / 1000000) AS BIGINT) AS whole, CAST(sum(cost % 1000000) AS BIGINT)
		FROM agent_days WHERE tenant = ? AND day >= ? AND day < ?`, f.Tenant, micros(f.Since.UTC().Truncate(day)), micros(f.Before.UTC().Add(day-time.Microsecond).Truncate(day)))
	q.same("agent", f.Agent)
	q.same("session", f.Session)
	q.add(` GROUP BY 1, 2 ORDER BY whole DESC, 9 DESC, 1, 2 LIMIT ?`, usage.MaxGroups)
	rows, err := q.rows(ctx, s.db.read)
	all, err := collect(rows, err, func(sc scanner) (g usage.Group, err error) {
		var whole, rest int64
		t := &g.Tokens
		err = sc.Scan(&g.Agent, &g.Session, &g.Calls, &g.Sessions, &g.Seconds, &g.CPUSeconds, &g.GiBSeconds, &g.BytesOut, &g.Credits,
			&t.Input, &t.CacheRead, &t.CacheWrite, &t.Output, &t.Reasoning, &t.Estimated, &whole, &rest)
		g.Cost = joined(whole, rest)
		return g, err
	})
	return all, s.db.read.wrap("sum up what agents used", err)
}
