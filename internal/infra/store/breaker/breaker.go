// Package breaker stores the counters and caps of circuit breakers.
package breaker

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"time"

	"github.com/atoll-run/atoll/internal/core/breaker"
	"github.com/atoll-run/atoll/internal/core/tenant"
	policydb "github.com/atoll-run/atoll/internal/infra/store/policy"
	"github.com/atoll-run/atoll/internal/infra/store/sqldb"
)

// Store implements breaker.Store.
type Store struct{ db *sqldb.DB }

// New returns the store in a database.
func New(db *sqldb.DB) *Store { return &Store{db} }

var _ breaker.Store = (*Store)(nil)

// errBreach ends a transaction that must count nothing.
var errBreach = errors.New("a breaker is at its cap")

// Count raises both counters in one transaction. The condition is part of the
// statement that raises, and the row stays locked until the end, so that calls
// at the same time wait for each other: all in the same order, the tenant's
// counter first.
func (s *Store) Count(ctx context.Context, tenant, agent string, caps breaker.Caps) (*breaker.Breach, error) {
	var breach *breaker.Breach
	err := s.db.Write.Transact(ctx, func(t *sqldb.Tx) error {
		now, err := t.Clock(ctx)
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
	return nil, s.db.Write.Wrap("count a call", err)
}

// raise returns the counter with this call, 0 when it is at its cap.
func (s *Store) raise(ctx context.Context, t *sqldb.Tx, tenant string, d breaker.Dimension, agent string, start time.Time, most int64) (n int64, err error) {
	if most <= 0 {
		return 0, nil
	}
	err = t.Row(ctx, `INSERT INTO breaker_counts (tenant, dimension, agent, starts_at, calls) VALUES (?, ?, ?, ?, 1)
		ON CONFLICT (tenant, dimension, agent, starts_at) DO UPDATE SET calls = breaker_counts.calls + 1 WHERE breaker_counts.calls < ?
		RETURNING calls`, tenant, string(d), agent, sqldb.Micros(start), most).Scan(&n)
	if err == sql.ErrNoRows {
		err = nil
	}
	return n, err
}

// forget removes a tenant's counters of windows long past.
func forget(ctx context.Context, t *sqldb.Tx, tenant string, day time.Time) error {
	_, err := t.Exec(ctx, `DELETE FROM breaker_counts WHERE tenant = ? AND starts_at < ?`, tenant, sqldb.Micros(day.Add(-48*time.Hour)))
	return err
}

var capsView = sqldb.NewView(
	sqldb.Col("tenant_daily", sqldb.Read, func(c *breaker.Caps) any { return &c.TenantDaily }),
	sqldb.Col("agent_hourly", sqldb.Read, func(c *breaker.Caps) any { return &c.AgentHourly }),
)

func (s *Store) Caps(ctx context.Context) (breaker.Caps, error) {
	c, err := capsView.Row(s.db.Read.Row(ctx, `SELECT `+capsView.Selected+` FROM breaker_caps`))
	if err == sql.ErrNoRows {
		return breaker.DefaultCaps(), nil
	}
	return c, s.db.Read.Wrap("read the caps", err)
}

// ChangeCaps locks the one row there is, so that of two changes at once neither
// is lost nor noted wrongly.
func (s *Store) ChangeCaps(ctx context.Context, actor string, tenantDaily, agentHourly *int64) (before, after breaker.Caps, err error) {
	err = s.db.Write.Transact(ctx, func(t *sqldb.Tx) error {
		d := breaker.DefaultCaps()
		if _, err := t.Exec(ctx, `INSERT INTO breaker_caps (only_row, tenant_daily, agent_hourly) VALUES (1, ?, ?) ON CONFLICT (only_row) DO NOTHING`, d.TenantDaily, d.AgentHourly); err != nil {
			return err
		}
		if before, err = capsView.Row(t.Row(ctx, `SELECT `+capsView.Selected+` FROM breaker_caps`+t.Pool.ForUpdate())); err != nil {
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
		if _, err := t.Exec(ctx, `UPDATE breaker_caps SET tenant_daily = ?, agent_hourly = ?`, after.TenantDaily, after.AgentHourly); err != nil {
			return err
		}
		var operator tenant.ID
		if err := t.Row(ctx, `SELECT id FROM tenants WHERE name = ?`, tenant.Operator).Scan(&operator); err != nil {
			return err
		}
		for i := range events {
			events[i].Tenant = operator
		}
		return policydb.Insert(ctx, t, events...)
	})
	return before, after, s.db.Write.Wrap("change the caps", err)
}
