package sandboxes

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// SnapshotFiles keeps sandboxes that are asleep in the blob store. What is equal in
// several of a tenant's is stored once.
type SnapshotFiles interface {
	// Save stores a sandbox that is asleep, or that has files alone. It must not change
	// meanwhile.
	Save(ctx context.Context, tenantID tenant.ID, id runtime.ID) (sandbox.StoredCopy, error)
	// Usable is nil if a recipe's sandbox can be restored from the stored checkpoint,
	// else an ErrCheckpoint.
	Usable(k sandbox.StoredCopy, r Recipe) error
	// Fetch makes a sandbox of this machine from a stored copy: one that is asleep, or
	// files alone. A damaged copy is a Conflict. A failed Fetch leaves nothing.
	Fetch(ctx context.Context, tenantID tenant.ID, k sandbox.StoredCopy, id runtime.ID, filesOnly bool) error
}
