// Package sandboxes implements the operations on named sandboxes that all APIs share.
//
// An API decodes a request, calls a Service, and encodes the answer. The Service selects the
// environment, applies the defaults and limits of environment and plan, keeps the sandbox awake
// during an operation, redacts output, and fills in the operation's audit row.
package sandboxes

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/preview"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Sandboxes are the named sandboxes of all machines; *directory.Directory implements it.
type Sandboxes interface {
	sandbox.Directory
	// Orphans lists the sandboxes on this machine that have no record. Reap deletes them.
	Orphans(ctx context.Context) ([]runtime.ID, error)
	Reap(ctx context.Context) ([]runtime.ID, error)
	GetSnapshot(ctx context.Context, p *tenant.Principal, id sandbox.SnapshotID) (*sandbox.Snapshot, error)
	ListSnapshots(ctx context.Context, p *tenant.Principal, cursor string, limit int) (page []*sandbox.Snapshot, next string, err error)
	DeleteSnapshot(ctx context.Context, p *tenant.Principal, id sandbox.SnapshotID) error
}

// Previews are the open ports of sandboxes; *preview.Previews implements it.
type Previews interface {
	Open(ctx context.Context, id runtime.ID, port uint16) (*preview.Preview, error)
	List(ctx context.Context, id runtime.ID) ([]*preview.Preview, error)
	Close(ctx context.Context, id runtime.ID, port uint16) error
}

// Policies limit what a caller may run.
type Policies interface {
	Policy(p *tenant.Principal) execution.Policy
}

// Keys finds the holder of a valid key by the key's id.
type Keys interface {
	Holder(ctx context.Context, tenantID tenant.ID, keyID string) (tenant.Principal, error)
}

// Config configures a Service. All fields except EnterPool and Draining are required.
type Config struct {
	Sandboxes Sandboxes
	Previews  Previews
	Policies  Policies
	Keys      Keys
	Tickets   Tickets
	// EnterPool returns a principal in the environment of the agent session that owns a pool of
	// sandboxes; p for any other pool. nil means that no agent sessions exist.
	EnterPool func(ctx context.Context, p *tenant.Principal, pool string) (*tenant.Principal, error)
	// Draining rejects new sandboxes while the server shuts down; nil never rejects them.
	Draining func() error
}

// Service implements the operations on named sandboxes. It is safe for concurrent use.
type Service struct {
	cfg     Config
	tickets issued
}

// New returns a Service.
func New(cfg Config) *Service { return &Service{cfg: cfg} }

// draining rejects operations that start a sandbox while the server shuts down.
func (s *Service) draining() error {
	if s.cfg.Draining == nil {
		return nil
	}
	return s.cfg.Draining()
}

// enter returns p in the environment of a pool.
func (s *Service) enter(ctx context.Context, p *tenant.Principal, pool string) (*tenant.Principal, error) {
	if s.cfg.EnterPool == nil {
		return p, nil
	}
	return s.cfg.EnterPool(ctx, p, pool)
}
