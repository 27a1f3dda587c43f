package sandboxes

import (
	"errors"
	"slices"
	"sync"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// networkState is what of the network was put into force last.
type networkState struct {
	mu      sync.Mutex
	applied bool                    // guarded by mu; the next two are in force
	policy  runtime.NetworkPolicy   // guarded by mu
	secrets []execution.BoundSecret // guarded by mu
}

// is reports whether this is in force.
func (c *networkState) is(policy runtime.NetworkPolicy, secrets []execution.BoundSecret) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.applied && policy.Equal(c.policy) && slices.EqualFunc(secrets, c.secrets, func(a, b execution.BoundSecret) bool {
		return a.Placeholder == b.Placeholder && a.Value == b.Value && slices.Equal(a.Hosts, b.Hosts)
	})
}

// reset is for a sandbox that has another network device from now on.
func (c *networkState) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.applied = false
}

// applyNetwork puts into force what grant and the sandbox's own policy allow, unless it is.
// e is locked.
func (m *Manager) applyNetwork(grant *sandbox.Grant, e *entry, live Live) error {
	m.mu.Lock()
	sb := e.sb
	m.mu.Unlock()
	policy, secrets := allowedNetwork(grant, sb, m.creatorSecrets(e, grant))
	if e.net.is(policy, secrets) {
		return nil
	}
	if err := e.net.apply(live, policy, secrets); err != nil {
		return runtime.NotConnected(err)
	}
	return nil
}

// apply puts this into force, or nothing at all. The sandbox is locked.
func (c *networkState) apply(live Live, policy runtime.NetworkPolicy, secrets []execution.BoundSecret) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.applied = false
	if err := live.SetNetwork(policy, secrets); err != nil {
		return errors.Join(err, live.SetNetwork(runtime.NetworkPolicy{}, nil)) // or what was allowed before would stay so
	}
	c.applied, c.policy, c.secrets = true, policy, secrets
	return nil
}

// allowedNetwork is what a sandbox may connect to when grant's key uses it: what both its own
// policy and grant's environment allow, if its tenant has a network at all. Requests get
// the secrets of the environment, and own.
func allowedNetwork(grant *sandbox.Grant, sb *sandbox.Sandbox, own []execution.BoundSecret) (runtime.NetworkPolicy, []execution.BoundSecret) {
	if !grant.NetworkEnabled {
		return runtime.NetworkPolicy{}, nil
	}
	policy := sb.Permissions.Network.And(grant.Permissions.Network)
	if policy.Blocked() {
		return runtime.NetworkPolicy{}, nil
	}
	return policy, slices.Concat(grant.EnvironmentSecrets, own)
}

// setNetwork gives a sandbox a policy of its own.
func setNetwork(grant *sandbox.Grant, sb *sandbox.Sandbox, policy runtime.NetworkPolicy) error {
	if err := (runtime.Permissions{Network: policy}).Validate(); err != nil {
		return fault.New(fault.Invalid, "%v", err)
	}
	most := grant.Permissions.Network
	if !grant.NetworkEnabled {
		most = runtime.NetworkPolicy{}
	}
	if !policy.Blocked() && !sb.Connected {
		return runtime.ErrNoNetwork
	}
	if !policy.Within(most) {
		return fault.New(fault.Forbidden, "the network policy allows more than the environment %s does; a sandbox can be given less, never more", grant.EnvironmentName)
	}
	sb.Permissions.Network = policy
	return nil
}
