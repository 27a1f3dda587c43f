package thread

import (
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/fault"
)

// Config of a Store.
type Config struct {
	Blobs  Blobs
	Key    []byte // the operator's, of KeySize bytes
	Owners Owners

	// Grace is how old something that no state refers to must be before Collect
	// removes it: longer than a save takes, until its state is recorded. 0 is a day.
	Grace time.Duration
}

// Owners says how the users of a sandbox are users of the host: user u is First
// plus u there, for u below Count; whoever is no user of the sandbox is its
// nobody. With Count 0 the host has only one user for them, and everything
// belongs to the user that programs run as.
type Owners struct{ First, Count uint32 }

const nobody = 65534

// host returns an owner's id on the host, and whether there is one.
func (o Owners) host(guest uint32) (uint32, bool) {
	switch {
	case o.Count == 0:
		return 0, false
	case guest < o.Count:
		return o.First + guest, true
	case nobody < o.Count:
		return o.First + nobody, true
	}
	return o.First + guestUser, true
}

// guest returns an owner's id in the sandbox.
func (o Owners) guest(host uint32) uint32 {
	switch {
	case o.Count == 0:
		return guestUser
	case host >= o.First && host-o.First < o.Count:
		return host - o.First
	}
	return nobody
}

// Store keeps states of homes. It is safe for concurrent use.
type Store struct {
	cfg Config

	mu      sync.Mutex
	tenants map[string]*tenantStore
}

// tenantStore is a tenant's part of a Store.
type tenantStore struct {
	name string
	keys keys
}

// NewStore returns the Store in a blob store.
func NewStore(cfg Config) (*Store, error) {
	if len(cfg.Key) != KeySize {
		return nil, errors.New("thread: the key must have 32 bytes")
	}
	if cfg.Grace == 0 {
		cfg.Grace = 24 * time.Hour
	}
	return &Store{cfg: cfg, tenants: map[string]*tenantStore{}}, nil
}

// tenant derives a tenant's keys once.
func (s *Store) tenant(name string) (*tenantStore, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tenants[name]; t != nil {
		return t, nil
	}
	k, err := deriveKeys(s.cfg.Key, name)
	if err != nil {
		return nil, err
	}
	t := &tenantStore{name: name, keys: k}
	s.tenants[name] = t
	return t, nil
}

func (t *tenantStore) folder() string       { return "threads/" + t.name }
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
