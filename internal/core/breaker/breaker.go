// Package breaker limits how often agents may run code: circuit breakers that
// count a tenant's calls of a day and an agent's calls of an hour, in UTC.
package breaker

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// Dimension names a breaker.
type Dimension string

const (
	TenantDaily Dimension = "tenant_daily"
	AgentHourly Dimension = "agent_hourly"
)

// Caps are how many calls each breaker lets through. 0 stops every call.
type Caps struct {
	TenantDaily int64
	AgentHourly int64
}

// ErrNegative rejects a cap below 0.
var ErrNegative = fault.New(fault.Invalid, "a cap must not be negative")

// DefaultCaps are the contract's.
func DefaultCaps() Caps { return Caps{TenantDaily: 1000, AgentHourly: 100} }

// Breach says which breaker stopped a call.
type Breach struct {
	Dimension Dimension
	Cap       int64
	ResetsAt  time.Time // UTC
}

// Store counts.
type Store interface {
	// Count counts a call against both breakers, or against neither: when one of
	// them is at its cap, that one is returned. The windows are by the store's
	// clock. Any number of calls at once never passes a cap.
	Count(ctx context.Context, tenant, agent string, caps Caps) (*Breach, error)
	// Caps are the installation's, DefaultCaps until they are set.
	Caps(ctx context.Context) (Caps, error)
	// ChangeCaps changes them, nil leaves one as it is, and notes each change as a
	// policy event by actor of the tenant that administers, in one transaction.
	ChangeCaps(ctx context.Context, actor string, tenantDaily, agentHourly *int64) (before, after Caps, err error)
}
