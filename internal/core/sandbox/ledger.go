package sandbox

import (
	"context"
	"time"
)

// Ledger charges for the named sandboxes of a Node, which reports their use to it. If a method
// fails, the Node reports the same use again, with what was used since.
type Ledger interface {
	// Charge charges for a resident sandbox from its MeteredAt until a time, and for bytes that
	// left the sandbox. Repeating a charge for the same time has no effect.
	Charge(ctx context.Context, s *Sandbox, until time.Time, bytesOut int64) error
	// Contacted records the hosts that a sandbox contacted from its MeteredAt until a time, and
	// those that its network policy refused.
	Contacted(ctx context.Context, s *Sandbox, until time.Time, hosts []string) error
}
