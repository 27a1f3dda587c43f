package usage

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/usage"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
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

// agent returns the amounts that a batch adds to the sum of an agent.
func (s *sums) agent(key agentDay) *daySum {
	key.agent, key.session = sqldb.Storable(key.agent), sqldb.Storable(key.session)
	if s.agents == nil {
		s.agents = map[agentDay]*daySum{}
	}
	sum := s.agents[key]
	if sum == nil {
		sum = &daySum{}
		s.agents[key] = sum
	}
	return sum
}

// addAgentDays adds the usage of a batch's agents to the daily sums.
func (s *sums) addAgentDays(ctx context.Context, b *sqldb.Batch) error {
	for _, d := range slices.SortedFunc(maps.Keys(s.agents), agentDay.compare) {
		u := s.agents[d]
		t := &u.Tokens
		if err := b.Later(ctx, `INSERT INTO agent_days AS d (tenant, day, agent, session, calls, sessions, seconds, cpu_seconds, gib_seconds, bytes_out, credits, input, cache_read, cache_write, output, reasoning, estimated, cost)
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

// groupRow is the sums of a group, with its cost in two parts as in chargeRow.
type groupRow struct {
	usage.Group
	millions, rest int64
}

// groupView is the sums of a group, but for its name.
var groupView = sqldb.NewView(
	sqldb.Col("CAST(sum(calls) AS BIGINT)", sqldb.Read, func(r *groupRow) any { return &r.Calls }),
	sqldb.Col("CAST(sum(sessions) AS BIGINT)", sqldb.Read, func(r *groupRow) any { return &r.Sessions }),
	sqldb.Col("sum(seconds)", sqldb.Read, func(r *groupRow) any { return &r.Seconds }),
	sqldb.Col("sum(cpu_seconds)", sqldb.Read, func(r *groupRow) any { return &r.CPUSeconds }),
	sqldb.Col("sum(gib_seconds)", sqldb.Read, func(r *groupRow) any { return &r.GiBSeconds }),
	sqldb.Col("CAST(sum(bytes_out) AS BIGINT)", sqldb.Read, func(r *groupRow) any { return &r.BytesOut }),
	sqldb.Col("sum(credits)", sqldb.Read, func(r *groupRow) any { return &r.Credits }),
	sqldb.Col("CAST(sum(input) AS BIGINT)", sqldb.Read, func(r *groupRow) any { return &r.Tokens.Input }),
	sqldb.Col("CAST(sum(cache_read) AS BIGINT)", sqldb.Read, func(r *groupRow) any { return &r.Tokens.CacheRead }),
	sqldb.Col("CAST(sum(cache_write) AS BIGINT)", sqldb.Read, func(r *groupRow) any { return &r.Tokens.CacheWrite }),
	sqldb.Col("CAST(sum(output) AS BIGINT)", sqldb.Read, func(r *groupRow) any { return &r.Tokens.Output }),
	sqldb.Col("CAST(sum(reasoning) AS BIGINT)", sqldb.Read, func(r *groupRow) any { return &r.Tokens.Reasoning }),
	sqldb.Col("CAST(sum(estimated) AS BIGINT)", sqldb.Read, func(r *groupRow) any { return &r.Tokens.Estimated }),
	sqldb.Col("CAST(sum(cost / 1000000) AS BIGINT) AS whole", sqldb.Read, func(r *groupRow) any { return &r.millions }),
	sqldb.Col("CAST(sum(cost % 1000000) AS BIGINT)", sqldb.Read, func(r *groupRow) any { return &r.rest }),
)

// Groups implements usage.Store. It sums money in two parts to avoid an overflow.
func (s *Store) Groups(ctx context.Context, f usage.GroupFilter) ([]usage.Group, error) {
	session := `''`
	if f.Sessions {
		session = `session`
	}
	q := &sqldb.Selection{}
	q.Add(`SELECT agent, `+session+` AS part, `+groupView.Selected+`
		FROM agent_days WHERE tenant = ? AND day >= ? AND day < ?`, f.Tenant, sqldb.Micros(f.Since.UTC().Truncate(sqldb.Day)), sqldb.Micros(f.Before.UTC().Add(sqldb.Day-time.Microsecond).Truncate(sqldb.Day)))
	q.Same("agent", f.Agent)
	q.Same("session", f.Session)
	q.Add(` GROUP BY 1, 2 ORDER BY whole DESC, 9 DESC, 1, 2 LIMIT ?`, usage.MaxGroups)
	rows, err := q.Rows(ctx, s.db.Read)
	all, err := sqldb.Collect(rows, err, func(sc sqldb.Scanner) (usage.Group, error) {
		var r groupRow
		err := sc.Scan(append([]any{&r.Agent, &r.Session}, groupView.Dest(&r)...)...)
		r.Cost = joined(r.millions, r.rest)
		return r.Group, err
	})
	return all, s.db.Read.Wrap("sum up what agents used", err)
}
