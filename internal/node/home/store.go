package home

import (
	"context"
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/idmap"
)

// Config of a Store.
type Config struct {
	Blobs  Blobs
	Folder string    // in the blob store; "" is threads
	Owners idmap.Map // of files where homes are restored

	// Exactly one of Key and Keys is set. Key is the operator's key, of KeySize bytes; another one
	// for each folder. Keys returns the key of a tenant, of TenantKeySize bytes, as TenantKey
	// derives it. A call that needs the key returns the error of Keys.
	Key  []byte
	Keys func(ctx context.Context, tenant string) ([]byte, error)

	// Grace is how old something that no state refers to must be before Collect
	// removes it: longer than a save takes, until its state is recorded. 0 is a day.
	Grace time.Duration
}

// nobodyID is the user id of files that belong to none of a sandbox's users.
const nobodyID = 65534

// toHost returns an owner's id on the host. Of ids that it has not enough of,
// each is the one that programs run as.
func toHost(r idmap.Range, guest uint32) int {
	for _, id := range []uint32{guest, nobodyID} {
		if host, ok := r.ToHost(id); ok {
			return int(host)
		}
	}
	return int(r.Host + runtime.UID)
}

// toGuest returns an owner's id in the sandbox.
func toGuest(r idmap.Range, host uint32) uint32 {
	if guest, ok := r.ToGuest(host); ok {
		return guest
	}
	return nobodyID
}

// Store keeps states of homes. It is safe for concurrent use.
type Store struct {
	cfg Config

	mu      sync.Mutex
	tenants map[string]*tenantStore // guarded by mu; at most maxTenants
}

// tenantStore is a tenant's part of a Store.
type tenantStore struct {
	in    string // the store's folder
	name  string
	keys  keys // zero if only the index is left
	index *index

	users   int  // guarded by Store.mu; homes that need the keys
	learned bool // guarded by Store.mu; the keys go with the last user
}

// NewStore returns the Store in a blob store.
func NewStore(cfg Config) (*Store, error) {
	switch {
	case (cfg.Key == nil) == (cfg.Keys == nil):
		return nil, errors.New("thread: exactly one of Key and Keys must be set")
	case cfg.Keys == nil && len(cfg.Key) != KeySize:
		return nil, errors.New("thread: the key must have 32 bytes")
	case cfg.Keys == nil:
		cfg.Keys = func(_ context.Context, tenant string) ([]byte, error) { return TenantKey(cfg.Key, tenant) }
	}
	if cfg.Grace == 0 {
		cfg.Grace = 24 * time.Hour
	}
	if cfg.Folder == "" {
		cfg.Folder = "threads"
	}
	return &Store{cfg: cfg, tenants: map[string]*tenantStore{}}, nil
}

func (t *tenantStore) folder() string       { return t.in + "/" + t.name }
func (t *tenantStore) packs() string        { return t.folder() + "/packs" }
func (t *tenantStore) states() string       { return t.folder() + "/states" }
func (t *tenantStore) pack(p pack) string   { return t.packs() + "/" + packName(p) }
func (t *tenantStore) state(s State) string { return t.states() + "/" + string(s) }

func (s State) check() error {
	if b, err := hex.DecodeString(string(s)); err != nil || len(b) != 16 || hex.EncodeToString(b) != string(s) {
		return fault.New(fault.Invalid, "a state of a thread is 32 hexadecimal digits")
	}
	return nil
}
