package sandboxes

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Narrow returns the part of an environment's network that a sandbox gets; nil for all of it.
type Narrow func(environment runtime.NetworkPolicy) (*runtime.NetworkPolicy, error)

// Everything is the Narrow that keeps the network of the environment.
func Everything(runtime.NetworkPolicy) (*runtime.NetworkPolicy, error) { return nil, nil }

// over is the policy that n makes of the network of p's environment.
func (n Narrow) over(p *tenant.Principal) (*runtime.NetworkPolicy, error) {
	if n == nil {
		return nil, nil
	}
	return n(p.Environment.Permissions.Network)
}

// NewSandbox describes a sandbox to create.
type NewSandbox struct {
	Session     *string // nil for the default session
	Name        string
	Environment *string // id or name; nil for the caller's environment, which is the only one allowed
	Command     *string // of the audit row; nil for the name
	Spec        sandbox.Spec
	Network     Narrow // nil for the network of the environment
}

// Create returns the caller's sandbox of a session and name, and creates it if it does not exist.
// It returns a Forbidden fault for an environment that the caller's key cannot use.
func (s *Service) Create(ctx context.Context, p *tenant.Principal, t *Trail, n *NewSandbox) (sb *sandbox.Sandbox, created bool, err error) {
	session := sandbox.Default
	if n.Session != nil {
		session = *n.Session
	}
	if err := sandbox.CheckSession(session); err != nil {
		return nil, false, err
	}
	if p, err = s.enter(ctx, p, session); err != nil {
		return nil, false, err
	}
	command := n.Name
	if n.Command != nil {
		command = *n.Command
	}
	t.By(p, session, command)
	if bound := p.Environment; n.Environment != nil && *n.Environment != bound.Name && *n.Environment != bound.ID {
		return nil, false, fault.New(fault.Forbidden, "this key is bound to the environment %q, and can use no other", bound.Name)
	}
	if err := execution.CheckSandboxEnv(n.Spec.Env); err != nil {
		return nil, false, err
	}
	spec := n.Spec
	if spec.Network, err = n.Network.over(p); err != nil {
		return nil, false, err
	}
	return s.ensure(ctx, p, t, session, n.Name, &spec)
}

// CreateDefault is Create with default settings in a session of the caller's own environment.
func (s *Service) CreateDefault(ctx context.Context, p *tenant.Principal, t *Trail, session, name string) error {
	t.By(p, session, name)
	_, _, err := s.ensure(ctx, p, t, session, name, nil)
	return err
}

func (s *Service) ensure(ctx context.Context, p *tenant.Principal, t *Trail, session, name string, spec *sandbox.Spec) (sb *sandbox.Sandbox, created bool, err error) {
	if err := s.draining(); err != nil {
		return nil, false, err
	}
	if sb, created, err = s.cfg.Sandboxes.Ensure(ctx, p, session, name, spec); err == nil {
		t.On(sb)
	}
	return sb, created, err
}

// NewName returns a random name for a sandbox whose caller chooses none.
func NewName(prefix string) string { return prefix + strings.ToLower(rand.Text()) }

// nameForKey returns the name of a sandbox that p creates with an idempotency key. A repeated
// request thus finds the sandbox of the first one.
func nameForKey(p *tenant.Principal, prefix, key string) string {
	sum := sha256.Sum256([]byte(p.Key.ID + "\x00" + key))
	return prefix + hex.EncodeToString(sum[:16])
}
