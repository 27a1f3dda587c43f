package sandboxes

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Kept is what the blob store has of a sandbox: its files, and its memory and
// processes unless it is of files alone.
type Kept struct {
	State  string // names it in the store
	Bytes  int64  // of all of it, before it was compressed
	Disk   int64  // of them, what its files take
	Memory bool
	// What its memory needs to go on.
	Kernel string // digest of gVisor's program
	Image  string // digest of the image
}

// Vault keeps sandboxes that are asleep in the blob store. What is equal in
// several of a tenant's is stored once.
type Vault interface {
	// Keep stores what there is of a sandbox that is asleep, or of which there are
	// files alone. Nobody may change it meanwhile.
	Keep(ctx context.Context, tenantID tenant.ID, id runtime.ID) (Kept, error)
	// Usable says why a recipe's sandbox cannot go on with the memory that is kept:
	// ErrMemory.
	Usable(k Kept, r Recipe) error
	// Fetch makes a sandbox of this machine from what is kept: one that is asleep,
	// or files alone. What is damaged is a Conflict. A failed Fetch leaves nothing.
	Fetch(ctx context.Context, tenantID tenant.ID, k Kept, id runtime.ID, filesOnly bool) error
	// Collect removes what no State that live returns refers to.
	Collect(ctx context.Context, tenantID tenant.ID, live func(context.Context) ([]string, error)) error
}
