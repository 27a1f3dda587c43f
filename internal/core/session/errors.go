package session

import (
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// TooMany rejects a session if the tenant has n, the limit.
func TooMany(n int) error {
	return fault.Limit(DimensionSessions, time.Time{}, "this tenant has %d sessions, which is the limit; delete some first", n)
}

// TooManySandboxes rejects a sandbox if the session has n, at least MaxSandboxes.
func TooManySandboxes(n int) error {
	return fault.Limit(DimensionSandboxes, time.Time{}, "the session has %d sandboxes, which is the most, lost ones included: use one of them, or destroy one", n)
}

// TooManyDelegations rejects a handoff if the turn has n, the limit.
func TooManyDelegations(n int) error {
	return fault.Limit(DimensionDelegations, time.Time{}, "there were %d hand-offs in this turn, which is the most", n)
}
