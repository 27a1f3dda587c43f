package preview

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
)

// Authenticator authenticates data with the installation's secret key; a seal.Box does.
type Authenticator interface {
	Sum(data []byte, purpose string) []byte
}

// cacheTTL is how long a name is known without asking the store, and so how
// long it may outlive its revocation by another process.
const cacheTTL = 3 * time.Second

// maxCached bounds the names known.
const maxCached = 4096

// Previews makes, finds and revokes previews. It is safe for concurrent use.
type Previews struct {
	store Store
	key   Authenticator

	mu     sync.Mutex
	base   Base                       // guarded by mu
	cache  map[[HashSize]byte]*cached // guarded by mu
	epoch  int                        // guarded by mu; how often one was revoked
	leases map[*lease]bool            // guarded by mu
}

// lease is a preview that is in use.
type lease struct {
	record *Record
	end    func()
}

type cached struct {
	record *Record
	until  time.Time
}

// New returns the previews of a store.
func New(store Store, key Authenticator, base Base) *Previews {
	return &Previews{store: store, key: key, base: base, cache: map[[HashSize]byte]*cached{}, leases: map[*lease]bool{}}
}

// Base is where previews are.
func (p *Previews) Base() Base {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.base
}

// Move says where previews are from now on.
func (p *Previews) SetBase(base Base) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.base = base
}

// Open returns the preview of a port of a sandbox, a new one if it has none.
func (p *Previews) Open(ctx context.Context, id runtime.ID, port uint16) (*Preview, error) {
	if err := check(id, port); err != nil {
		return nil, err
	}
	r := Record{Sandbox: id, Port: port, Seed: make([]byte, SeedSize)}
	rand.Read(r.Seed)
	hash := sha256.Sum256([]byte(p.label(&r)))
	r.Hash = hash[:]
	there, err := p.store.Open(ctx, r)
	if err != nil {
		return nil, err
	}
	return p.shown(there)
}

// List returns the previews of a sandbox by their ports.
func (p *Previews) List(ctx context.Context, id runtime.ID) ([]*Preview, error) {
	records, err := p.store.List(ctx, id)
	if err != nil {
		return nil, err
	}
	out := make([]*Preview, len(records))
	for i, r := range records {
		if out[i], err = p.shown(r); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Close revokes the preview of a port: its URL leads nowhere for good.
func (p *Previews) Close(ctx context.Context, id runtime.ID, port uint16) error {
	if err := check(id, port); err != nil {
		return err
	}
	if err := p.store.Close(ctx, id, port); err != nil {
		return err
	}
	p.revoked(func(r *Record) bool { return r.Sandbox == id && r.Port == port })
	return nil
}

// revoked ends the uses of what was revoked.
func (p *Previews) revoked(it func(*Record) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.epoch++
	clear(p.cache)
	for h := range p.leases {
		if it(h.record) {
			h.end()
		}
	}
}

// use is find for who uses the preview until release is called, or end by its
// revocation.
func (p *Previews) Hold(ctx context.Context, label string, end func()) (_ *Record, release func(), err error) {
	for {
		p.mu.Lock()
		epoch := p.epoch
		p.mu.Unlock()
		r, err := p.find(ctx, label)
		if err != nil {
			return nil, nil, err
		}
		h := &lease{r, end}
		p.mu.Lock()
		same := p.epoch == epoch
		if same {
			p.leases[h] = true
		}
		p.mu.Unlock()
		if same {
			return r, func() {
				p.mu.Lock()
				defer p.mu.Unlock()
				delete(p.leases, h)
			}, nil
		}
	}
}

// find returns the preview that has a label; a NotFound fault if none has.
// Nothing is compared but hashes, and every wrong label takes the same way.
func (p *Previews) find(ctx context.Context, label string) (*Record, error) {
	if id, port, ok := p.OfEvery(label); ok {
		return &Record{Sandbox: id, Port: port, Every: true}, nil
	}
	hash := sha256.Sum256([]byte(label))
	p.mu.Lock()
	k, epoch := p.cache[hash], p.epoch
	p.mu.Unlock()
	if k != nil && time.Now().Before(k.until) {
		return k.record, nil
	}
	r, err := p.store.Find(ctx, hash[:])
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.epoch != epoch {
		return r, nil // it may be what was revoked meanwhile
	}
	if len(p.cache) >= maxCached {
		clear(p.cache)
	}
	p.cache[hash] = &cached{r, time.Now().Add(cacheTTL)}
	return r, nil
}

// label is the name of a preview.
func (p *Previews) label(r *Record) string {
	data := binary.BigEndian.AppendUint16(nil, r.Port)
	data = append(append(data, r.Seed...), r.Sandbox...)
	return makeLabel(r.Port, r.Sandbox, p.key.Sum(data, "preview"))
}

func (p *Previews) shown(r *Record) (*Preview, error) {
	label := p.label(r)
	if hash := sha256.Sum256([]byte(label)); !bytes.Equal(hash[:], r.Hash) {
		return nil, fmt.Errorf("the preview of port %d of sandbox %s was created with another secret key", r.Port, r.Sandbox)
	}
	return &Preview{Sandbox: r.Sandbox, Port: r.Port, URL: p.Base().URL(label), CreatedAt: r.CreatedAt}, nil
}

func check(id runtime.ID, port uint16) error {
	if !id.Valid() {
		return fault.New(fault.NotFound, "sandbox not found")
	}
	if port == 0 {
		return fault.New(fault.Invalid, "port must be between 1 and 65535")
	}
	return nil
}
