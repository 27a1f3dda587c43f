package sandbox

import (
	"context"
	"time"
)

// Ledger charges for the named sandboxes of a Node, which reports their use to it. If a method
// fails, the next report includes the same use.
type Ledger interface {
	// Charge charges for a resident sandbox from its MeteredAt until a time, and for bytes that
	// left the sandbox. Repeating a charge for the same time has no effect.
	Charge(ctx context.Context, s *Sandbox, until time.Time, bytesOut int64) error
	// Contacted records the hosts that a sandbox contacted, or that its network policy refused, from its
	// MeteredAt until a time.
	Contacted(ctx context.Context, s *Sandbox, until time.Time, hosts []string) error
}
