package store

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"time"

	"github.com/atoll-run/atoll/internal/core/breaker"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// breakers is the breaker.Store.
type breakers struct{ db *DB }

var _ breaker.Store = (*breakers)(nil)

// errBreach ends a transaction that must count nothing.
var errBreach = errors.New("a breaker is at its cap")

// Count raises both counters in one transaction. The condition is part of the
// statement that raises, and the row stays locked until the end, so that calls
// at the same time wait for each other: all in the same order, the tenant's
// counter first.
func (s *breakers) Count(ctx context.Context, tenant, agent string, caps breaker.Caps) (*breaker.Breach, error) {
	var breach *breaker.Breach
	err := s.db.write.transact(ctx, func(t *tx) error {
		now, err := t.pool.clock(ctx, t)
		if err != nil {
			return err
		}
		for _, c := range []struct {
			dimension breaker.Dimension
			agent     string
			cap       int64
			window    time.Duration
		}{
			{breaker.TenantDaily, "", caps.TenantDaily, 24 * time.Hour},
			{breaker.AgentHourly, agent, caps.AgentHourly, time.Hour},
		} {
			start := now.Truncate(c.window) // of absolute time, whose days are UTC's
			n, err := s.raise(ctx, t, tenant, c.dimension, c.agent, start, c.cap)
			if err != nil {
				return err
			}
			if n == 0 {
				breach = &breaker.Breach{Dimension: c.dimension, Cap: c.cap, ResetsAt: start.Add(c.window)}
				return errBreach
			}
			if n == 1 && c.dimension == breaker.TenantDaily {
				if err := forget(ctx, t, tenant, start); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if breach != nil && errors.Is(err, errBreach) {
		return breach, nil
	}
	return nil, s.db.write.wrap("count a call", err)
}

// raise returns the counter with this call, 0 when it is at its cap.
func (s *breakers) raise(ctx context.Context, t *tx, tenant string, d breaker.Dimension, agent string, start time.Time, most int64) (n int64, err error) {
	if most <= 0 {
		return 0, nil
	}
	err = t.row(ctx, `INSERT INTO breaker_counts (tenant, dimension, agent, starts_at, calls) VALUES (?, ?, ?, ?, 1)
		ON CONFLICT (tenant, dimension, agent, starts_at) DO UPDATE SET calls = breaker_counts.calls + 1 WHERE breaker_counts.calls < ?
		RETURNING calls`, tenant, string(d), agent, micros(start), most).Scan(&n)
	if err == sql.ErrNoRows {
		err = nil
	}
	return n, err
}

// forget removes a tenant's counters of windows long past.
func forget(ctx context.Context, t *tx, tenant string, day time.Time) error {
	_, err := t.exec(ctx, `DELETE FROM breaker_counts WHERE tenant = ? AND starts_at < ?`, tenant, micros(day.Add(-48*time.Hour)))
	return err
}

func (s *breakers) Caps(ctx context.Context) (breaker.Caps, error) {
	var c breaker.Caps
	err := s.db.read.row(ctx, `SELECT tenant_daily, agent_hourly FROM breaker_caps`).Scan(&c.TenantDaily, &c.AgentHourly)
	if err == sql.ErrNoRows {
		return breaker.DefaultCaps(), nil
	}
	return c, s.db.read.wrap("read the caps", err)
}

// ChangeCaps locks the one row there is, so that of two changes at once neither
// is lost nor noted wrongly.
func (s *breakers) ChangeCaps(ctx context.Context, actor string, tenantDaily, agentHourly *int64) (before, after breaker.Caps, err error) {
	err = s.db.write.transact(ctx, func(t *tx) error {
		d := breaker.DefaultCaps()
		if _, err := t.exec(ctx, `INSERT INTO breaker_caps (only_row, tenant_daily, agent_hourly) VALUES (1, ?, ?) ON CONFLICT (only_row) DO NOTHING`, d.TenantDaily, d.AgentHourly); err != nil {
			return err
		}
		if err := t.row(ctx, `SELECT tenant_daily, agent_hourly FROM breaker_caps`+t.pool.forUpdate()).Scan(&before.TenantDaily, &before.AgentHourly); err != nil {
			return err
		}
		after = before
		var events []tenant.PolicyEvent
		for _, c := range []struct {
			field string
			cap   *int64
			to    *int64
		}{{"caps.tenant_daily", &after.TenantDaily, tenantDaily}, {"caps.agent_hourly", &after.AgentHourly, agentHourly}} {
			if c.to == nil || *c.to == *c.cap {
				continue
			}
			if *c.to < 0 {
				return breaker.ErrNegative
			}
			events = append(events, tenant.PolicyEvent{Actor: actor, Field: c.field, Old: strconv.FormatInt(*c.cap, 10), New: strconv.FormatInt(*c.to, 10)})
			*c.cap = *c.to
		}
		if len(events) == 0 {
			return nil
		}
		if _, err := t.exec(ctx, `UPDATE breaker_caps SET tenant_daily = ?, agent_hourly = ?`, after.TenantDaily, after.AgentHourly); err != nil {
			return err
		}
		var operator tenant.ID
		if err := t.row(ctx, `SELECT id FROM tenants WHERE name = ?`, tenant.Operator).Scan(&operator); err != nil {
			return err
		}
		for i := range events {
			events[i].Tenant = operator
		}
		return insertEvents(ctx, t, events)
	})
	return before, after, s.db.write.wrap("change the caps", err)
}
