package home

import (
	"bytes"
	"context"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"sync"
	"time"
	"unique"

	"golang.org/x/sync/errgroup"
)

// A pack is an object of many chunks: a magic, the chunks, an index of them, the
// index's length. Chunks and index are encrypted each by itself.
const (
	packMagic   = "atollP01"
	packSize    = 4<<20 - 128<<10 // after which a pack is closed: with another chunk and its index, one request stores it
	maxPack     = 128 << 20       // that one may have, with its last chunk and its index
	packTrailer = 4
	indexEntry  = 16 + 4 + 4 + 4 // sum, offset, stored, size
)

// indexPlace is what a pack's index is bound to. It begins where the chunks end.
var indexPlace = []byte("index")

func packName(p pack) string {
	v := p.Value()
	return hex.EncodeToString(v[:])
}

// packer puts chunks into packs and stores them. It is safe for concurrent use.
type packer struct {
	s       *Store
	tenant  *tenantStore
	known   func(id, int) (ref, bool) // chunks that need not be stored
	uploads *errgroup.Group
	began   time.Time
	ctx     context.Context // ends with the first failed upload
	cancel  context.CancelFunc

	mu   sync.Mutex
	open *openPack       // nil before the first chunk
	made map[id]sizedRef // what this packer has
}

type openPack struct {
	name  pack
	aead  cipher.AEAD
	buf   []byte
	index []byte
}

type sizedRef struct {
	ref
	size int
}

// uploads is how many packs of one save are on their way at the same time.
const uploads = 3

func (s *Store) newPacker(ctx context.Context, t *tenantStore, known func(id, int) (ref, bool)) *packer {
	p := &packer{s: s, tenant: t, known: known, began: time.Now(), made: map[id]sizedRef{}}
	ctx, p.cancel = context.WithCancel(ctx)
	p.uploads, p.ctx = errgroup.WithContext(ctx)
	p.uploads.SetLimit(uploads)
	return p
}

// put stores data as a chunk, unless there is one, and says where it is. It
// counts once flush has returned.
func (p *packer) put(data []byte) (ref, error) {
	sum := p.tenant.keys.sum(data)
	if r, ok := p.known(sum, len(data)); ok {
		return r, nil
	}
	p.mu.Lock()
	r, ok := p.made[sum]
	p.mu.Unlock()
	if ok {
		return r.ref, nil
	}
	scratch := buffers.Get().(*[]byte)
	defer buffers.Put(scratch)
	*scratch = compress((*scratch)[:0], data)

	p.mu.Lock()
	defer p.mu.Unlock()
	if r, ok := p.made[sum]; ok { // another goroutine was faster
		return r.ref, nil
	}
	if p.open == nil {
		if err := p.begin(); err != nil {
			return ref{}, err
		}
	}
	o := p.open
	at := len(o.buf)
	o.buf = slices.Grow(o.buf, len(*scratch)+o.aead.Overhead()) // Seal would make room for just this one
	o.buf = o.aead.Seal(o.buf, nonce(int64(at)), *scratch, place(sum, len(data)))
	made := ref{sum: sum, pack: o.name, offset: uint32(at), stored: uint32(len(o.buf) - at)}
	p.made[sum] = sizedRef{made, len(data)}
	o.index = append(o.index, sum[:]...)
	o.index = binary.BigEndian.AppendUint32(o.index, made.offset)
	o.index = binary.BigEndian.AppendUint32(o.index, made.stored)
	o.index = binary.BigEndian.AppendUint32(o.index, uint32(len(data)))
	if len(o.buf) >= packSize {
		p.close()
	}
	return made, context.Cause(p.ctx)
}

func (p *packer) begin() error {
	var name [16]byte
	rand.Read(name[:])
	o := &openPack{name: unique.Make(name)} // most packs are small, so the buffer grows
	var err error
	if o.aead, err = p.tenant.keys.cipher("pack " + packName(o.name)); err != nil {
		return err
	}
	o.buf = append(o.buf, packMagic...)
	p.open = o
	return nil
}

// close ends the open pack and sends it off. With too many on their way it waits,
// and with it every reader that has chunks.
func (p *packer) close() {
	o := p.open
	p.open = nil
	at := len(o.buf)
	o.buf = o.aead.Seal(o.buf, nonce(int64(at)), o.index, indexPlace)
	o.buf = binary.BigEndian.AppendUint32(o.buf, uint32(len(o.buf)-at))
	p.uploads.Go(func() error {
		return p.s.cfg.Blobs.Put(p.ctx, p.tenant.pack(o.name), bytes.NewReader(o.buf))
	})
}

// flush returns when all chunks are stored.
func (p *packer) flush() error {
	p.mu.Lock()
	if p.open != nil {
		p.close()
	}
	p.mu.Unlock()
	if err := p.uploads.Wait(); err != nil {
		return err
	}
	p.tenant.stored(p)
	p.s.boundIndexes()
	return nil
}

// buffers hold a chunk, compressed or not.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, blockSize+blockSize/8); return &b }}

// stop ends what is under way, after a failure or a flush.
func (p *packer) stop() {
	p.cancel()
	_ = p.uploads.Wait() // the failure that led here is known
}
