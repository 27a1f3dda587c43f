package executors

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/proof"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// Proven returns node, the sandboxes of an executor in another process, such that the grants that it
// acts on prove to gateways that this executor has them. Methods that need no gateway pass grants on
// without a proof. Without a signer Proven returns node.
func Proven(node sandbox.Node, executor string, s proof.Signer) sandbox.Node {
	if s == nil {
		return node
	}
	return &proven{node, executor, s}
}

type proven struct {
	sandbox.Node
	executor string
	signer   proof.Signer
}

func (n *proven) prove(g *sandbox.Grant) *sandbox.Grant {
	return g.ProvenTo(n.executor, n.signer, time.Now().Add(sandbox.ProofTTL))
}

// Ensure implements sandbox.Node.
func (n *proven) Ensure(ctx context.Context, g *sandbox.Grant, session, name string, spec *sandbox.Spec) (*sandbox.Sandbox, bool, error) {
	return n.Node.Ensure(ctx, n.prove(g), session, name, spec)
}

// Use implements sandbox.Node.
func (n *proven) Use(ctx context.Context, g *sandbox.Grant, session, nameOrID string) (sandbox.Handle, error) {
	return n.Node.Use(ctx, n.prove(g), session, nameOrID)
}

// Restart implements sandbox.Node.
func (n *proven) Restart(ctx context.Context, g *sandbox.Grant, session, nameOrID string) (*sandbox.Sandbox, error) {
	return n.Node.Restart(ctx, n.prove(g), session, nameOrID)
}

// Fork implements sandbox.Node.
func (n *proven) Fork(ctx context.Context, g *sandbox.Grant, session, nameOrID string, count int) ([]*sandbox.Sandbox, error) {
	return n.Node.Fork(ctx, n.prove(g), session, nameOrID, count)
}

// Snapshot implements sandbox.Node.
func (n *proven) Snapshot(ctx context.Context, g *sandbox.Grant, session, nameOrID string, keep time.Duration) (*sandbox.Snapshot, error) {
	return n.Node.Snapshot(ctx, n.prove(g), session, nameOrID, keep)
}
