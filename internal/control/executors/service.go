package executors

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/proof"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Threads finds threads; *thread.Catalog implements it.
type Threads interface {
	Exists(ctx context.Context, tenantID, id string) (bool, error)
}

// Settings reads the stored settings; *store.DB implements it.
type Settings interface {
	// Settings returns the values by name.
	Settings(ctx context.Context) (map[string]string, error)
	// SettingContent returns the content of the file that a setting names.
	SettingContent(ctx context.Context, name string) ([]byte, error)
}

// Config configures a Service. All fields are required.
type Config struct {
	Sandboxes sandbox.Store
	Snapshots sandbox.SnapshotStore
	Grants    sandbox.Grants // from the records; without proofs
	Builds    requirement.Store
	Skills    execution.Skills
	Uploads   execution.Uploads
	Threads   Threads
	Settings  Settings
	// SnapshotKey returns the key of a tenant's snapshots, 64 bytes.
	SnapshotKey func(tenant.ID) []byte
	Signer      proof.Signer
}

// Service answers executors in other processes. The argument from of its methods is the id of the
// executor that calls, which the transport has authenticated.
//
// An executor may have been taken over, so the Service uses no statement of an executor about rights.
// It acts on a sandbox only if the sandbox's record names the executor. It acts for a key in an
// environment only if a gateway gave the executor a grant of that key (see sandbox.Pass), or if the
// key created a sandbox that the executor has there. To everything else it answers as if the
// sandbox, snapshot, key or file did not exist.
//
// Executors report changes of their sandboxes to Events. An executor can still report false facts
// about its own sandboxes, there and here. It can read everything that its sandboxes can. Service is
// safe for concurrent use.
type Service struct{ cfg Config }

// NewService returns a Service.
func NewService(cfg Config) *Service { return &Service{cfg} }

// maxSkew limits how far in the future the times of an executor may be.
const maxSkew = time.Minute

// past returns at, or a time shortly after now if at is later.
func past(at time.Time) time.Time {
	if latest := time.Now().Add(maxSkew); at.After(latest) {
		return latest.UTC().Truncate(time.Microsecond)
	}
	return at
}
