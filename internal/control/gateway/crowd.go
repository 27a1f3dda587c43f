package gateway

import (
	"errors"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// crowdTime is how long a tenant's further calls are refused without a look, after every
// executor refused one for want of room. A burst then costs no record for each call.
const crowdTime = 250 * time.Millisecond

// maxCrowds bounds the tenants that are remembered.
const maxCrowds = 10_000

// crowd is what executors refused a tenant's call with.
type crowd struct {
	refusal fault.Error
	until   time.Time
}

// crowded returns the refusal of a tenant's call, if executors just refused another one.
func (g *Gateway) crowded(tenantID string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	c, ok := g.full[tenantID]
	if !ok {
		return nil
	}
	if !time.Now().Before(c.until) {
		delete(g.full, tenantID)
		return nil
	}
	f := c.refusal
	return &f
}

// crowd notes that every executor refused a tenant's call, if it was for want of room.
func (g *Gateway) crowd(tenantID string, err error) {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Kind != fault.Unavailable || f.RetryAfter == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.full) >= maxCrowds {
		clear(g.full)
	}
	g.full[tenantID] = crowd{*f, time.Now().Add(crowdTime)}
}
