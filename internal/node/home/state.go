package home

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"io"
	"maps"
	"math"
	"slices"
	"unique"

	"github.com/atoll-run/atoll/internal/core/thread"
)

// A state is an object of its own, written after everything it refers to: a
// magic, and encrypted and bound to the state's name, how much the home holds,
// the packs in use, and where the segments of the tree are.
const (
	stateMagic = "atollS01"
	maxState   = maxStored
	// maxStored is the most that a chunk takes in a pack: of a segment that cannot
	// be compressed, with its first byte and the cipher's tag.
	maxStored = maxSegment + 1 + 16
)

// statePlace is what a state's content is bound to, beside its name.
var statePlace = []byte("state")

// root is the content of a state's object.
type root struct {
	bytes, files int64
	packs        []pack // every one that the tree or its encoding is in
	segments     []segment
}

func (r *root) encode() []byte {
	var out []byte
	for _, v := range []int{int(r.bytes), int(r.files), len(r.packs)} {
		out = binary.AppendUvarint(out, uint64(v))
	}
	no := make(map[pack]int, len(r.packs))
	for i, p := range r.packs {
		v := p.Value()
		out = append(out, v[:]...)
		no[p] = i
	}
	out = binary.AppendUvarint(out, uint64(len(r.segments)))
	for _, s := range r.segments {
		out = append(out, s.sum[:]...)
		for _, v := range []uint64{uint64(no[s.pack]), uint64(s.offset), uint64(s.stored), uint64(s.size)} {
			out = binary.AppendUvarint(out, v)
		}
	}
	return out
}

func decodeRoot(data []byte) (*root, error) {
	d := &decoder{rest: data}
	r := &root{bytes: int64(d.uint() & math.MaxInt64), files: int64(d.uint() & math.MaxInt64)}
	for range d.count(16) {
		r.packs = append(r.packs, unique.Make([16]byte(d.bytes(16))))
	}
	for range d.count(16 + 4) {
		s := segment{ref: ref{sum: id(d.bytes(16))}}
		no := d.uint32(math.MaxUint32)
		s.offset, s.stored, s.size = d.uint32(maxPack), d.uint32(maxStored), d.uint32(maxSegment)
		if d.err != nil || uint64(no) >= uint64(len(r.packs)) {
			d.fail()
			break
		}
		s.pack = r.packs[no]
		r.segments = append(r.segments, s)
	}
	if d.err != nil || len(d.rest) > 0 {
		return nil, corrupt("a state cannot be read")
	}
	return r, nil
}

// commit makes a tree a state: it stores the encoded tree, waits for all packs,
// and writes the state's object. A tree that is base's returns base.
func (s *Store) commit(ctx context.Context, t *tenantStore, p *packer, n *node, base *Tree, limit thread.Quota) (*Tree, error) {
	made := &Tree{root: n}
	made.Bytes, made.Files = tally(n)
	if err := limit.Check(made.Bytes, made.Files); err != nil {
		return nil, err
	}
	if err := n.checkXattrs(); err != nil {
		return nil, err
	}
	err := encodeTree(n, false, func(data []byte) error {
		if len(data) > maxSegment {
			return errTooLarge
		}
		r, err := p.put(data)
		made.segments = append(made.segments, segment{r, uint32(len(data))})
		return err
	})
	if err != nil {
		return nil, err
	}
	if base != nil && slices.EqualFunc(base.segments, made.segments, func(a, b segment) bool { return a.sum == b.sum }) {
		made.State, made.segments = base.State, base.segments
		return made, nil
	}
	if err := p.flush(); err != nil {
		return nil, err
	}
	var name [16]byte
	rand.Read(name[:])
	made.State = State(hex.EncodeToString(name[:]))
	if err := s.writeState(ctx, t, made); err != nil {
		return nil, err
	}
	return made, nil
}

func (s *Store) writeState(ctx context.Context, t *tenantStore, made *Tree) error {
	used := map[pack]bool{}
	for _, g := range made.segments {
		used[g.pack] = true
	}
	packsOf(made.root, used)
	r := &root{bytes: made.Bytes, files: made.Files, packs: slices.Collect(maps.Keys(used)), segments: made.segments}
	aead, err := t.keys.cipher("state " + string(made.State))
	if err != nil {
		return err
	}
	out := aead.Seal([]byte(stateMagic), nonce(0), compress(nil, r.encode()), statePlace)
	return s.cfg.Blobs.Put(ctx, t.state(made.State), bytes.NewReader(out))
}

func packsOf(n *node, used map[pack]bool) {
	for _, c := range n.chunks {
		used[c.pack] = true
	}
	for _, c := range n.children {
		packsOf(c, used)
	}
}

// readRoot reads a state's object.
func (s *Store) readRoot(ctx context.Context, t *tenantStore, state State) (*root, error) {
	what := "state " + string(state)
	r, err := s.cfg.Blobs.Open(ctx, t.state(state), 0, maxState+1)
	if err != nil {
		return nil, unreachable(what, err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, unreachable(what, err)
	}
	if len(data) > maxState || !bytes.HasPrefix(data, []byte(stateMagic)) {
		return nil, corrupt("%s is not one that this version can read", what)
	}
	aead, err := t.keys.cipher(what)
	if err != nil {
		return nil, err
	}
	chunk, err := aead.Open(nil, nonce(0), data[len(stateMagic):], statePlace)
	if err != nil {
		return nil, corrupt("%s: %v", what, err)
	}
	plain, err := decompress(nil, chunk, -1)
	if err != nil {
		return nil, err
	}
	return decodeRoot(plain)
}

// Load reads what a state holds.
func (s *Store) Load(ctx context.Context, tenant string, state State) (*Tree, error) {
	if state == "" {
		return &Tree{root: newRoot()}, nil
	}
	t, err := s.tenant(ctx, tenant)
	if err != nil {
		return nil, err
	}
	if err := state.check(); err != nil {
		return nil, err
	}
	r, err := s.readRoot(ctx, t, state)
	if err != nil {
		return nil, err
	}
	parts := make([][]byte, len(r.segments))
	var wants []want
	for i, g := range r.segments {
		wants = append(wants, want{g.ref, int(g.size), func(data []byte) error {
			parts[i] = bytes.Clone(data)
			return nil
		}})
	}
	if err := s.fetch(ctx, t, wants); err != nil {
		return nil, err
	}
	tree := &Tree{State: state, Bytes: r.bytes, Files: r.files, segments: r.segments}
	tree.root, err = decodeTree(false, func() ([]byte, error) {
		if len(parts) == 0 {
			return nil, nil
		}
		part := parts[0]
		parts = parts[1:]
		return part, nil
	})
	if err != nil {
		return nil, err
	}
	if b, f := tally(tree.root); b != tree.Bytes || f != tree.Files {
		return nil, corrupt("state %s holds %d bytes in %d entries, not %d in %d", state, b, f, tree.Bytes, tree.Files)
	}
	return tree, nil
}
