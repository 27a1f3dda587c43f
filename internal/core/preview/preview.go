// Package preview makes, finds and revokes the names under which browsers reach servers
// that run in sandboxes: every opened port has a host name of its own, which only those
// know who were given it.
//
// The name is a secret: a client that knows it may do what the server in the sandbox lets
// them. Only a hash of it is recorded. It is derived from the installation's secret key
// and from a seed in the record, so asking for the same port again gives the same name,
// and another one once it was revoked.
package preview

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
)

// Preview is an open port of a sandbox.
type Preview struct {
	Sandbox   runtime.ID
	Port      uint16
	URL       string // what a browser opens; not recorded
	CreatedAt time.Time
}

// Record is a Preview as it is kept.
type Record struct {
	Sandbox   runtime.ID
	Port      uint16
	Seed      []byte // SeedSize bytes
	Hash      []byte // of the name, HashSize bytes
	CreatedAt time.Time
	Every     bool // of a name that leads to all ports, which is not kept
}

// Sizes in bytes.
const (
	SeedSize = 16
	HashSize = 32
)

// MaxPreviews is how many ports of one sandbox can be open.
const MaxPreviews = 64

// Store keeps previews. They go with the record of their sandbox.
type Store interface {
	// Open records a preview, unless there is one of its sandbox and port, and
	// returns the one there is then. CreatedAt is set by the store's clock. Beyond
	// MaxPreviews it is an Exhausted fault.
	Open(ctx context.Context, r Record) (*Record, error)
	// Find returns the preview with a hash; a NotFound fault if there is none.
	Find(ctx context.Context, hash []byte) (*Record, error)
	// List returns a sandbox's previews by their ports.
	List(ctx context.Context, id runtime.ID) ([]*Record, error)
	// Close removes a preview; a NotFound fault if there is none.
	Close(ctx context.Context, id runtime.ID, port uint16) error
}
