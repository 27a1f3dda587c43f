package control

import (
	"context"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// maxPasses limits the remembered passes. Without its pass, a sandbox keeps only the network and
// storage of the key that created it when its keys are checked again.
const maxPasses = 10_000

// right is the key and environment of a pass.
type right struct {
	tenant           tenant.ID
	environment, key string
}

// passes remembers the passes of the grants that gateways gave this executor. The zero value is
// ready.
type passes struct {
	mu    sync.Mutex
	known map[right]sandbox.Pass // guarded by mu
}

// note remembers a pass, unless it is older than the one known for its right.
func (p *passes) note(pass sandbox.Pass) {
	if len(pass.Proof) == 0 {
		return
	}
	of := right{pass.Tenant, pass.Environment, pass.Key}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil {
		p.known = map[right]sandbox.Pass{}
	}
	if known, ok := p.known[of]; ok && known.ProofUntil.After(pass.ProofUntil) {
		return
	}
	if len(p.known) >= maxPasses {
		p.evict()
	}
	p.known[of] = pass
}

// evict drops expired passes, and any one if none has expired. p.mu is held.
func (p *passes) evict() {
	now, any := time.Now(), right{}
	for of, pass := range p.known {
		if any = of; now.After(pass.ProofUntil) {
			delete(p.known, of)
		}
	}
	delete(p.known, any)
}

// find returns the pass of a right, without a proof if none is known.
func (p *passes) find(tenantID tenant.ID, environment, key string) sandbox.Pass {
	p.mu.Lock()
	defer p.mu.Unlock()
	if pass, ok := p.known[right{tenantID, environment, key}]; ok {
		return pass
	}
	return sandbox.Pass{Tenant: tenantID, Environment: environment, Key: key}
}

// findAny returns the tenant's pass that is valid longest.
func (p *passes) findAny(tenantID tenant.ID) sandbox.Pass {
	p.mu.Lock()
	defer p.mu.Unlock()
	best := sandbox.Pass{Tenant: tenantID}
	for of, pass := range p.known {
		if of.tenant == tenantID && pass.ProofUntil.After(best.ProofUntil) {
			best = pass
		}
	}
	return best
}

// pass returns the newest pass of a grant.
func (c *Client) pass(g *sandbox.Grant) sandbox.Pass {
	c.passes.note(g.Pass())
	return c.passes.find(g.Tenant, g.Environment, g.Key)
}

// Node returns node such that c remembers the grants that callers bring. Without it, Grant renews only
// grants of keys that created a sandbox of this executor.
func (c *Client) Node(node sandbox.Node) sandbox.Node { return &noting{node, c} }

type noting struct {
	sandbox.Node
	c *Client
}

// Ensure implements sandbox.Node.
func (n *noting) Ensure(ctx context.Context, g *sandbox.Grant, session, name string, spec *sandbox.Spec) (*sandbox.Sandbox, bool, error) {
	n.c.passes.note(g.Pass())
	return n.Node.Ensure(ctx, g, session, name, spec)
}

// Use implements sandbox.Node.
func (n *noting) Use(ctx context.Context, g *sandbox.Grant, session, nameOrID string) (sandbox.Handle, error) {
	n.c.passes.note(g.Pass())
	return n.Node.Use(ctx, g, session, nameOrID)
}

// Restart implements sandbox.Node.
func (n *noting) Restart(ctx context.Context, g *sandbox.Grant, session, nameOrID string) (*sandbox.Sandbox, error) {
	n.c.passes.note(g.Pass())
	return n.Node.Restart(ctx, g, session, nameOrID)
}

// Fork implements sandbox.Node.
func (n *noting) Fork(ctx context.Context, g *sandbox.Grant, session, nameOrID string, count int) ([]*sandbox.Sandbox, error) {
	n.c.passes.note(g.Pass())
	return n.Node.Fork(ctx, g, session, nameOrID, count)
}

// Snapshot implements sandbox.Node.
func (n *noting) Snapshot(ctx context.Context, g *sandbox.Grant, session, nameOrID string, keep time.Duration) (*sandbox.Snapshot, error) {
	n.c.passes.note(g.Pass())
	return n.Node.Snapshot(ctx, g, session, nameOrID, keep)
}
