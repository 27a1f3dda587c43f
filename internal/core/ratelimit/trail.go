package ratelimit

import (
	"context"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// DimensionTrail is the Dimension of a refusal for a Trail.
const DimensionTrail = "audit_rows"

// trailFresh is how long a count holds. A tenant may pass its bound by what its rates
// give in this time.
const trailFresh = 10 * time.Second

// trailRate is how many requests a second a tenant has room for whose plan has no rate.
const trailRate = 10_000

// Trail bounds how many calls of a tenant are on record at a time: rows of the audit trail
// cannot be deleted before their time, so that what rates allow adds up for weeks. A
// tenant has room for what the request rate of its plan gives in a time, and one whose
// plan has no such rate for what trailRate does.
type Trail struct {
	// Count is how many calls of a tenant are on record, of those that came within a time.
	Count func(ctx context.Context, t tenant.ID, within time.Duration) (int64, error)
	Room  time.Duration // 0 for no bound

	mu   sync.Mutex
	seen map[tenant.ID]counted // guarded by mu
}

type counted struct {
	calls int64
	at    time.Time
}

// Check reports why a call of p may not be added, as an Exhausted fault.
func (t *Trail) Check(ctx context.Context, p *tenant.Principal) error {
	rate := p.Plan.MaxRequestRate
	if rate == 0 {
		rate = trailRate
	}
	most := rate * int64(t.Room/time.Second)
	if most == 0 {
		return nil
	}
	n, err := t.count(ctx, p)
	if err != nil || n < most {
		return err
	}
	now := time.Now().UTC()
	tomorrow := now.Truncate(24 * time.Hour).Add(24 * time.Hour)
	return fault.Limit(DimensionTrail, tomorrow, "the audit trail of this tenant is full: it has %d calls, the limit of the plan %s (%d requests per second for %s), and keeps them for %d days. Wait until the oldest expire, or ask the operator to raise the plan's max_request_rate or the server's audit_room.",
		n, p.Plan.Name, rate, t.Room, p.Tenant.AuditDays)
}

// count returns what is on record, at most trailFresh old.
func (t *Trail) count(ctx context.Context, p *tenant.Principal) (int64, error) {
	t.mu.Lock()
	known, ok := t.seen[p.Tenant.ID]
	t.mu.Unlock()
	if ok && time.Since(known.at) < trailFresh {
		return known.calls, nil
	}
	n, err := t.Count(ctx, p.Tenant.ID, time.Duration(p.Tenant.AuditDays)*24*time.Hour)
	if err != nil {
		return 0, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.seen == nil {
		t.seen = map[tenant.ID]counted{}
	}
	for id, c := range t.seen {
		if time.Since(c.at) >= trailFresh {
			delete(t.seen, id)
		}
	}
	t.seen[p.Tenant.ID] = counted{n, time.Now()}
	return n, nil
}
