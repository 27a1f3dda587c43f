package home

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"io"
	"slices"
	"sync"
	"time"
	"unique"

	"golang.org/x/sync/errgroup"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/storage"
)

// Bounds of what a Store knows of a tenant's packs beside those of the home that
// is saved.
const (
	maxIndexPacks  = 256         // the newest; some 2 GiB of chunks
	maxIndexChunks = 250_000     // in them, at some 100 bytes each
	maxIndexes     = 16          // of which anything is known
	indexIdle      = time.Minute // before the packs are listed again
	minIndexed     = 4 << 20     // bytes to be stored that make it worth to list them at all
)

// index is what a Store knows of a tenant's packs, which any of its threads may
// refer to.
type index struct {
	listing sync.Mutex // taken before mu, and held while packs are listed and read

	mu     sync.Mutex
	used   time.Time // zero when nothing is known
	listed time.Time
	packs  map[pack]*knownPack
	chunks map[id]sizedRef
}

// knownPack is a pack that was there at a time.
type knownPack struct {
	seen   time.Time
	chunks []id
}

// known returns how to find chunks that need not be stored: those of base, and
// those of the tenant's other homes. size is how much there is to store.
func (s *Store) known(ctx context.Context, t *tenantStore, base *Tree, size int64) func(id, int) (ref, bool) {
	own := sync.OnceValue(func() map[id]sizedRef {
		all := map[id]sizedRef{}
		if base != nil {
			for _, g := range base.segments {
				all[g.sum] = sizedRef{g.ref, int(g.size)}
			}
			indexTree(base.root, all)
		}
		return all
	})
	if size >= minIndexed {
		s.refresh(ctx, t)
	}
	// Read after the save began, and at most once in it: see Collect.
	condemned := sync.OnceValues(func() (map[pack]time.Time, error) { return s.readDeleted(ctx, t) })
	return func(sum id, size int) (ref, bool) {
		if r, ok := own()[sum]; ok {
			return r.ref, r.size == size
		}
		r, ok := t.index.find(sum, s.cfg.Grace/4)
		if !ok || r.size != size {
			return ref{}, false
		}
		list, err := condemned()
		_, going := list[r.pack]
		return r.ref, err == nil && !going
	}
}

func indexTree(n *node, all map[id]sizedRef) {
	if len(n.chunks) > 0 {
		n.blocks(func(i int, _, size int64) { all[n.chunks[i].sum] = sizedRef{n.chunks[i], int(size)} })
	}
	for _, c := range n.children {
		indexTree(c, all)
	}
}

// find returns a chunk of a pack that was there not long ago.
func (x *index) find(sum id, age time.Duration) (sizedRef, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	r, ok := x.chunks[sum]
	return r, ok && time.Since(x.packs[r.pack].seen) < age
}

// add notes a pack. Where too many chunks are known already, its own are not; the
// pack is, so that it is not read again.
func (x *index) add(p pack, seen time.Time, chunks map[id]sizedRef) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.packs == nil {
		x.packs, x.chunks = map[pack]*knownPack{}, map[id]sizedRef{}
	}
	k := &knownPack{seen: seen}
	x.packs[p] = k
	if len(x.chunks)+len(chunks) > maxIndexChunks {
		return
	}
	for sum, r := range chunks {
		k.chunks = append(k.chunks, sum)
		x.chunks[sum] = r
	}
}

// see notes which packs there are, and returns those that were not known.
func (x *index) see(there map[pack]int64, at time.Time) (fresh map[pack]int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.listed = at
	fresh = map[pack]int64{}
	for p, size := range there {
		if k := x.packs[p]; k != nil {
			k.seen = at
		} else {
			fresh[p] = size
		}
	}
	for p := range x.packs {
		if _, ok := there[p]; !ok {
			x.remove(p)
		}
	}
	return fresh
}

// begin reports whether it is time to list the packs.
func (x *index) begin(now time.Time) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if now.Sub(x.listed) < indexIdle {
		return false
	}
	x.used = now
	return true
}

func (x *index) remove(p pack) {
	for _, sum := range x.packs[p].chunks {
		if x.chunks[sum].pack == p {
			delete(x.chunks, sum)
		}
	}
	delete(x.packs, p)
}

// refresh lists a tenant's packs and reads the index of the newest. What cannot
// be read is not known, which costs room and nothing else.
func (s *Store) refresh(ctx context.Context, t *tenantStore) {
	x := t.index
	x.listing.Lock()
	defer x.listing.Unlock()
	began := time.Now()
	if !x.begin(began) {
		return
	}
	var found []storage.BlobInfo
	for info, err := range s.cfg.Blobs.List(ctx, t.packs()) {
		if err != nil {
			return
		}
		found = append(found, info)
	}
	slices.SortFunc(found, func(a, b storage.BlobInfo) int { return cmp.Compare(b.Modified.UnixNano(), a.Modified.UnixNano()) })
	found = found[:min(len(found), maxIndexPacks)]
	there := map[pack]int64{} // by size
	for _, info := range found {
		if p, ok := parsePack(info.Name[len(t.packs())+1:]); ok {
			there[p] = info.Size
		}
	}
	var group errgroup.Group
	group.SetLimit(fetches)
	for p, size := range x.see(there, began) {
		group.Go(func() error {
			if chunks, err := s.readPackIndex(ctx, t, p, size); err == nil { // a pack that is damaged is not used again
				x.add(p, began, chunks)
			}
			return nil
		})
	}
	_ = group.Wait() // none fails
}

// boundIndexes forgets what is known of all but the tenants that saved last.
func (s *Store) boundIndexes() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var oldest *index
	var first time.Time
	some := 0
	for _, t := range s.tenants {
		t.index.mu.Lock()
		used := t.index.used
		t.index.mu.Unlock()
		if used.IsZero() {
			continue
		}
		if some++; oldest == nil || used.Before(first) {
			oldest, first = t.index, used
		}
	}
	if some > maxIndexes {
		oldest.mu.Lock()
		oldest.used, oldest.listed, oldest.packs, oldest.chunks = time.Time{}, time.Time{}, nil, nil
		oldest.mu.Unlock()
	}
}

func parsePack(name string) (pack, bool) {
	b, err := hex.DecodeString(name)
	if err != nil || len(b) != 16 {
		return pack{}, false
	}
	return unique.Make([16]byte(b)), true
}

// readPackIndex reads which chunks a pack of size bytes has.
func (s *Store) readPackIndex(ctx context.Context, t *tenantStore, p pack, size int64) (map[id]sizedRef, error) {
	what := "pack " + packName(p)
	if size < int64(len(packMagic)+packTrailer) || size > maxPack {
		return nil, corrupt("%s has %d bytes", what, size)
	}
	trailer, err := s.readRange(ctx, t, p, size-packTrailer, packTrailer)
	if err != nil {
		return nil, err
	}
	length := int64(binary.BigEndian.Uint32(trailer))
	at := size - packTrailer - length
	if at < int64(len(packMagic)) {
		return nil, corrupt("%s has an index of %d bytes", what, length)
	}
	sealed, err := s.readRange(ctx, t, p, at, length)
	if err != nil {
		return nil, err
	}
	aead, err := t.keys.cipher(what)
	if err != nil {
		return nil, err
	}
	data, err := aead.Open(nil, nonce(at), sealed, indexPlace)
	if err != nil {
		return nil, corrupt("%s, index: %v", what, err)
	}
	chunks := make(map[id]sizedRef, len(data)/indexEntry)
	for ; len(data) >= indexEntry; data = data[indexEntry:] {
		r := ref{sum: id(data[:16]), pack: p, offset: binary.BigEndian.Uint32(data[16:]), stored: binary.BigEndian.Uint32(data[20:])}
		chunks[r.sum] = sizedRef{r, int(binary.BigEndian.Uint32(data[24:]))}
	}
	return chunks, nil
}

func (s *Store) readRange(ctx context.Context, t *tenantStore, p pack, at, size int64) ([]byte, error) {
	r, err := s.cfg.Blobs.Range(ctx, t.pack(p), at, size)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data := make([]byte, size)
	_, err = io.ReadFull(r, data)
	return data, err
}

// stored notes packs that were just stored.
func (t *tenantStore) stored(p *packer) {
	packs := map[pack]map[id]sizedRef{}
	for sum, r := range p.made {
		if packs[r.pack] == nil {
			packs[r.pack] = map[id]sizedRef{}
		}
		packs[r.pack][sum] = r
	}
	t.index.mu.Lock()
	t.index.used = p.began
	room := 2*maxIndexPacks - len(t.index.packs)
	t.index.mu.Unlock()
	for name, chunks := range packs {
		if room--; room < 0 {
			return
		}
		t.index.add(name, p.began, chunks)
	}
}

// readDeleted reads which packs are about to be removed, or were.
func (s *Store) readDeleted(ctx context.Context, t *tenantStore) (map[pack]time.Time, error) {
	r, err := s.cfg.Blobs.Open(ctx, t.deletedName(), 0, maxDeleted+1)
	if fault.KindOf(err) == fault.NotFound {
		return map[pack]time.Time{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	return parseDeleted(data)
}
