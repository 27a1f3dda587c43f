package home

import (
	"encoding/binary"
)

// An encoded tree is its entries, each folder before what is in it, cut into
// segments of a few hundred. Where one is cut depends on the names before the
// cut alone, so that a change leaves most segments as they are.
//
// A segment begins with the packs that its entries refer to, so that it means the
// same wherever it stands.

// Flags of an entry, beside its kind in the low bits.
const (
	flagKind   = 0x07
	flagLinked = 0x08 // the first name of several
	flagLink   = 0x10 // another name: only the number of the first follows
	flagHoles  = 0x20
	flagXattrs = 0x40
)

// Bounds of a segment that is written.
const (
	segmentEntries = 64 // least, but for the last
	segmentLarge   = 256 << 10
)

// encoder writes a tree.
type encoder struct {
	stamps bool // with them, for this host
	emit   func(data []byte) error

	body    []byte
	packs   []pack
	packNo  map[pack]int
	entries int
	pop     int // folders that ended since the entry before
	links   map[*node]int
}

// encodeTree passes the segments of a tree to emit, in order.
func encodeTree(root *node, stamps bool, emit func([]byte) error) error {
	e := &encoder{stamps: stamps, emit: emit, packNo: map[pack]int{}, links: map[*node]int{}}
	if err := e.node(root); err != nil {
		return err
	}
	return e.cut()
}

func (e *encoder) node(n *node) error {
	e.entry(n)
	if len(e.body) >= segmentLarge || e.entries >= segmentEntries && cutsAfter(n.name) {
		if err := e.cut(); err != nil {
			return err
		}
	}
	if n.kind != kindDir {
		return nil
	}
	for _, c := range n.children {
		if err := e.node(c); err != nil {
			return err
		}
	}
	e.pop++
	return nil
}

// cutsAfter is true for one name of 128.
func cutsAfter(name string) bool {
	h := uint32(2166136261) // FNV-1a: hash/fnv's needs a copy of the name
	for i := range len(name) {
		h = (h ^ uint32(name[i])) * 16777619
	}
	return h>>25 == 0
}

func (e *encoder) cut() error {
	if e.entries == 0 {
		return nil
	}
	out := binary.AppendUvarint(make([]byte, 0, len(e.body)+16*len(e.packs)+10), uint64(len(e.packs)))
	for _, p := range e.packs {
		v := p.Value()
		out = append(out, v[:]...)
	}
	out = append(out, e.body...)
	e.body, e.packs, e.entries = e.body[:0], e.packs[:0], 0
	clear(e.packNo)
	return e.emit(out)
}

func (e *encoder) entry(n *node) {
	e.entries++
	e.uint(uint64(e.pop))
	e.pop = 0
	flags := byte(n.kind)
	if n.link != nil {
		e.body = append(e.body, byte(kindFile)|flagLink)
		e.string(n.name)
		e.uint(uint64(e.links[n.link]))
		return
	}
	if n.linked {
		flags |= flagLinked
		e.links[n] = len(e.links)
	}
	if n.extents != nil {
		flags |= flagHoles
	}
	if len(n.xattrs) > 0 {
		flags |= flagXattrs
	}
	e.body = append(e.body, flags)
	e.string(n.name)
	e.uint(uint64(n.mode))
	e.uint(uint64(n.uid))
	e.uint(uint64(n.gid))
	e.instant(n.mtime)
	e.instant(n.atime)
	if len(n.xattrs) > 0 {
		e.uint(uint64(len(n.xattrs)))
		for _, x := range n.xattrs {
			e.string(x.name)
			e.string(x.value)
		}
	}
	if e.stamps {
		e.uint(n.stamp.ino)
		e.instant(n.stamp.ctime)
		if n.stamp.sure {
			e.body = append(e.body, 1)
		} else {
			e.body = append(e.body, 0)
		}
	}
	switch n.kind {
	case kindSymlink:
		e.string(n.target)
	case kindFile:
		e.content(n)
	}
}

func (e *encoder) content(n *node) {
	e.uint(uint64(n.size))
	if n.extents != nil {
		e.uint(uint64(len(n.extents)))
		var end int64
		for _, x := range n.extents {
			e.uint(uint64(x.off - end))
			e.uint(uint64(x.len))
			end = x.off + x.len
		}
	}
	e.uint(uint64(len(n.chunks)))
	for _, c := range n.chunks {
		no, ok := e.packNo[c.pack]
		if !ok {
			no = len(e.packs)
			e.packNo[c.pack] = no
			e.packs = append(e.packs, c.pack)
		}
		e.body = append(e.body, c.sum[:]...)
		e.uint(uint64(no))
		e.uint(uint64(c.offset))
		e.uint(uint64(c.stored))
	}
}

func (e *encoder) uint(v uint64) { e.body = binary.AppendUvarint(e.body, v) }

func (e *encoder) string(s string) {
	e.uint(uint64(len(s)))
	e.body = append(e.body, s...)
}

func (e *encoder) instant(t instant) {
	e.body = binary.AppendVarint(e.body, t.sec)
	e.uint(uint64(t.nsec))
}
