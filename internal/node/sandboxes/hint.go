package sandboxes

import (
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/runtime"
)

// inForce returns the policy that was applied last.
func (c *networkState) inForce() runtime.NetworkPolicy {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.applied {
		return runtime.NetworkPolicy{}
	}
	return c.policy
}

// NetworkHint implements sandbox.Handle.
func (h *Handle) NetworkHint(since time.Time, tails [][]byte) string {
	if h.grant == nil {
		return ""
	}
	had := execution.Network{Policy: h.e.net.inForce(), Refused: h.live.Refusals(since), Environment: h.grant.Permissions.Network, Restart: h.sb.RestartCommand()}
	if len(had.Refused) == 0 && execution.LacksNetwork(tails...) {
		had.Refused = h.live.Refusals(since.Add(-execution.RefusalAgain)) // the network does not repeat a recent refusal
	}
	return had.Hint(tails...)
}
