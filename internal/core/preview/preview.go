// Package preview creates, resolves and revokes host names under which browsers reach servers in
// sandboxes. Each opened port gets its own secret host name.
//
// A client that knows the name has whatever access the server in the sandbox grants. Atoll records
// only a hash of it. The name is derived from the installation's secret key and a seed in the
// record. Opening the same port again yields the same name, until the preview is revoked; then a
// new one.
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
	URL       string // opens the preview in a browser; not recorded
	CreatedAt time.Time
}

// Record is a Preview as the Store keeps it.
type Record struct {
	Sandbox   runtime.ID
	Port      uint16
	Seed      []byte // SeedSize bytes
	Hash      []byte // of the name, HashSize bytes
	CreatedAt time.Time
	Every     bool // the name leads to all ports; such records are not stored
}

// Sizes of seeds and hashes, in bytes.
const (
	SeedSize = 16
	HashSize = 32
)

// MaxPreviews limits the open ports of a sandbox.
const MaxPreviews = 64

// Store keeps previews. Deleting a sandbox's record deletes its previews.
type Store interface {
	// Open records a preview, or returns the existing one of the same sandbox and port. The store
	// sets CreatedAt. Open fails with an Exhausted fault beyond MaxPreviews.
	Open(ctx context.Context, r Record) (*Record, error)
	// Find returns the preview with a hash, or a NotFound fault.
	Find(ctx context.Context, hash []byte) (*Record, error)
	// List returns a sandbox's previews, sorted by port.
	List(ctx context.Context, id runtime.ID) ([]*Record, error)
	// Close removes a preview. It returns a NotFound fault if the port is not open.
	Close(ctx context.Context, id runtime.ID, port uint16) error
}
