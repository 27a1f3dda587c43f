package sandbox

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Grant is everything that a machine learns about the caller of a sandbox: the resolved settings of
// one environment, the limits of one plan, and the secrets and storage of one key in that
// environment. It contains no scopes, hashes or webhooks, and no secret of another key.
type Grant struct {
	Tenant          tenant.ID
	TenantName      string // for messages
	Environment     string // id
	EnvironmentName string // for messages
	Key             string // id of the key, also for a caller with a token

	Image         string // of the environment; may reference one with packages, see requirement.ImagePrefix
	PackagedImage string // the image that Image adds packages to; "" without packages
	Limits        runtime.Limits
	Permissions   runtime.Permissions // of the environment, as far as the tenant's policy allows
	Plan          tenant.Plan
	Credits       float64 // budget per calendar month; 0 for unlimited

	NetworkEnabled bool     // the tenant's policy allows a network
	RootEnabled    bool     // the tenant's policy lets programs run as root
	RedactionOff   []string // redaction rules that the tenant turned off

	Variables          map[string]string       // of every program; placeholders for bound secrets. Read-only
	Secrets            []string                // values that output must not show
	EnvironmentSecrets []execution.BoundSecret // the network puts them into requests of every sandbox
	KeySecrets         []execution.BoundSecret // likewise, for sandboxes that the key created
	Storage            []storage.Granted       // connections of the key and the environment

	// Proof shows gateways that one of them gave the grant to this executor; see Pass. It is nil in a
	// process that is gateway and executor.
	Proof      []byte
	ProofUntil time.Time
}

// GrantOf returns what a machine may know of p.
func GrantOf(p *tenant.Principal) *Grant {
	e := &p.Environment
	g := &Grant{
		Tenant: p.Tenant.ID, TenantName: p.Tenant.Name, Environment: e.ID, EnvironmentName: e.Name, Key: p.KeyID(),
		Image: e.RunImage(), Limits: e.Limits, Permissions: p.Tenant.Permitted(e.Permissions), Plan: p.Plan, Credits: p.Tenant.MonthlyCredits,
		NetworkEnabled: p.Tenant.NetworkEnabled, RootEnabled: p.Tenant.RootEnabled, RedactionOff: p.Tenant.RedactionOff,
		Variables: p.Variables(), Secrets: p.Secrets(), EnvironmentSecrets: e.BoundSecrets(), KeySecrets: p.Key.BoundSecrets(), Storage: p.Storage,
	}
	if !e.Packages.Empty() {
		g.PackagedImage = e.Image
	}
	return g
}

// Check returns a Forbidden fault for a key without an environment, which has no sandboxes.
func (g *Grant) Check() error {
	if g.Environment == "" {
		return errNoEnvironment
	}
	return nil
}

// Allows returns an Exhausted fault if limits exceed the plan.
func (g *Grant) Allows(limits runtime.Limits) error {
	return g.Plan.Allows(&tenant.Environment{Name: g.EnvironmentName, Limits: limits})
}

// Quota returns the plan's limits on the tenant's sandboxes.
func (g *Grant) Quota() Quota {
	return Quota{Sandboxes: g.Plan.MaxSandboxes, Memory: g.Plan.MaxSandboxMemory, Credits: g.Credits}
}

// SnapshotQuota returns the plan's limits on the tenant's snapshots.
func (g *Grant) SnapshotQuota() SnapshotQuota {
	return SnapshotQuota{Snapshots: g.Plan.MaxSnapshots, Bytes: g.Plan.MaxSnapshotSize}
}

// Grants renews the grants of sandboxes that a machine runs.
type Grants interface {
	// Grant returns the grant of a key in an environment, or ErrNoValidKey if the key is invalid or
	// may not work there.
	Grant(ctx context.Context, tenantID tenant.ID, key, environment string) (*Grant, error)
}
