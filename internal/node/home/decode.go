package home

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"unique"
)

// decoder reads a tree. What it reads is authentic as a rule, but it believes
// nothing: neither lengths nor numbers nor names.
type decoder struct {
	stamps bool

	rest  []byte // of the segment
	packs []pack
	err   error

	stack []*node // the folders that the next entry may be in
	root  *node
	links []*node
}

// errFormat is corrupt's detail; who reads the segments knows which one.
var errFormat = errors.New("an entry cannot be read")

// decodeTree reads the segments that next returns, until it returns nil.
func decodeTree(stamps bool, next func() ([]byte, error)) (*node, error) {
	d := &decoder{stamps: stamps}
	for {
		data, err := next()
		if err != nil {
			return nil, err
		}
		if data == nil {
			break
		}
		if err := d.segment(data); err != nil {
			return nil, corrupt("a part of its tree: %v", err)
		}
	}
	if d.root == nil {
		return nil, corrupt("its tree has no root")
	}
	return d.root, nil
}

func (d *decoder) segment(data []byte) error {
	d.rest, d.packs = data, nil
	for range d.count(16) {
		d.packs = append(d.packs, unique.Make([16]byte(d.bytes(16))))
	}
	for d.err == nil && len(d.rest) > 0 {
		d.add(d.entry())
	}
	return d.err
}

// add puts an entry at its place, if it is a possible one.
func (d *decoder) add(pop uint64, n *node) {
	if d.err != nil {
		return
	}
	if d.root == nil {
		if pop != 0 || n.kind != kindDir || n.name != "" {
			d.fail()
			return
		}
		d.root, d.stack = n, append(d.stack, n)
		return
	}
	if pop >= uint64(len(d.stack)) || !validName(n.name) {
		d.fail()
		return
	}
	d.stack = d.stack[:len(d.stack)-int(pop)]
	in := d.stack[len(d.stack)-1]
	if k := len(in.children); k > 0 && in.children[k-1].name >= n.name {
		d.fail() // twice the same name, or not in order
		return
	}
	in.children = append(in.children, n)
	if n.kind == kindDir {
		if d.stack = append(d.stack, n); len(d.stack) > maxDepth {
			d.fail()
		}
	}
}

// validName reports whether a name is one entry of a folder and nothing else.
func validName(name string) bool {
	return name != "" && name != "." && name != ".." && len(name) <= maxName && !strings.ContainsAny(name, "/\x00")
}

func (d *decoder) entry() (pop uint64, n *node) {
	pop = d.uint()
	n = &node{}
	flags := d.byte()
	n.kind = kind(flags & flagKind)
	n.name = d.string(maxName)
	if flags&flagLink != 0 {
		no := d.uint()
		if flags != byte(kindFile)|flagLink || no >= uint64(len(d.links)) {
			d.fail()
			return 0, n
		}
		n.link = d.links[no]
		return pop, n
	}
	n.mode = d.uint32(0o7777)
	n.uid, n.gid = d.uint32(math.MaxUint32), d.uint32(math.MaxUint32)
	n.mtime, n.atime = d.instant(), d.instant()
	if flags&flagXattrs != 0 {
		d.xattrs(n)
	}
	if d.stamps {
		n.stamp = stamp{ino: d.uint(), ctime: d.instant(), sure: d.byte() == 1}
	}
	switch {
	case flags>>7 != 0, n.kind != kindFile && flags&(flagHoles|flagLinked) != 0:
		d.fail()
	case n.kind == kindFile:
		d.content(n, flags&flagHoles != 0)
	case n.kind == kindSymlink:
		n.target = d.string(maxTarget)
		if n.target == "" || strings.Contains(n.target, "\x00") || len(n.xattrs) > 0 {
			d.fail()
		}
	case n.kind == kindFIFO && len(n.xattrs) == 0, n.kind == kindDir:
	default:
		d.fail()
	}
	if flags&flagLinked != 0 {
		n.linked = true
		d.links = append(d.links, n)
	}
	return pop, n
}

func (d *decoder) xattrs(n *node) {
	sum := 0
	for range d.count(2) {
		x := xattr{d.string(maxXattrs), d.string(maxXattrs)}
		sum += len(x.name) + len(x.value)
		if !validXattr(x.name) || sum > maxXattrs || len(n.xattrs) > 0 && n.xattrs[len(n.xattrs)-1].name >= x.name {
			d.fail()
			return
		}
		n.xattrs = append(n.xattrs, x)
	}
}

// userXattrs is the namespace that programs write to.
const userXattrs = "user."

func validXattr(name string) bool {
	return strings.HasPrefix(name, userXattrs) && len(name) > len(userXattrs) && len(name) <= maxName && !strings.Contains(name, "\x00")
}

func (d *decoder) content(n *node, holes bool) {
	size := d.uint()
	if size > math.MaxInt64 {
		d.fail()
		return
	}
	n.size = int64(size)
	if holes {
		n.extents = []extent{}
		var end int64
		for range d.count(2) {
			gap, length := d.uint(), d.uint()
			if gap > size || length == 0 || length > size || uint64(end)+gap+length > size {
				d.fail()
				return
			}
			n.extents = append(n.extents, extent{end + int64(gap), int64(length)})
			end += int64(gap + length)
		}
	}
	if n.dataBytes() > maxFileSize {
		d.fail()
		return
	}
	count := d.count(16 + 3)
	if uint64(n.blocks(nil)) != uint64(count) {
		d.fail()
		return
	}
	n.chunks = make([]ref, 0, count)
	for range count {
		r := ref{sum: id(d.bytes(16))}
		no := d.uint32(math.MaxUint32)
		if d.err != nil || uint64(no) >= uint64(len(d.packs)) {
			d.fail()
			return
		}
		r.pack, r.offset, r.stored = d.packs[no], d.uint32(maxPack), d.uint32(maxStored)
		n.chunks = append(n.chunks, r)
	}
	n.chunks = slices.Clip(n.chunks)
}

func (d *decoder) fail() {
	if d.err == nil {
		d.err = errFormat
	}
	d.rest = nil
}

// count reads how many things of at least size bytes follow.
func (d *decoder) count(size int) int {
	n := d.uint()
	if n > uint64(len(d.rest)/size) {
		d.fail()
		return 0
	}
	return int(n)
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) uint32(most uint64) uint32 {
	v := d.uint()
	if v > most {
		d.fail()
		return 0
	}
	return uint32(v)
}

func (d *decoder) byte() byte { return d.bytes(1)[0] }

// bytes returns the next n bytes, zeros if there are fewer.
func (d *decoder) bytes(n int) []byte {
	if len(d.rest) < n {
		d.fail()
		return make([]byte, n)
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) string(most int) string {
	n := d.uint()
	if n > uint64(most) || n > uint64(len(d.rest)) {
		d.fail()
		return ""
	}
	return string(d.bytes(int(n)))
}

func (d *decoder) instant() instant {
	v, n := binary.Varint(d.rest)
	if n <= 0 {
		d.fail()
		return instant{}
	}
	d.rest = d.rest[n:]
	return instant{v, d.uint32(999_999_999)}
}
