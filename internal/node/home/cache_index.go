package home

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"slices"
	"time"
	"unique"

	"github.com/atoll-run/atoll/internal/node/cleanup"
)

// An index says what a home on this host holds: a magic, the digest of the rest,
// whose home it is, the state, and the tree with its stamps, which mean something
// until the machine is booted again.
const indexMagic = "atollI01"

func (c *Cache) writeIndex(e *cached, name string, t *Tree) error {
	enc := &encoder{}
	for _, s := range []string{c.boot, e.tenant, e.id, string(t.State)} {
		enc.string(s)
	}
	enc.uint(uint64(t.Bytes))
	enc.uint(uint64(t.Files))
	enc.uint(uint64(len(t.segments)))
	for _, g := range t.segments {
		v := g.pack.Value()
		enc.body = append(append(enc.body, g.sum[:]...), v[:]...)
		enc.uint(uint64(g.offset))
		enc.uint(uint64(g.stored))
		enc.uint(uint64(g.size))
	}
	out := append(make([]byte, len(indexMagic)+sha256.Size), enc.body...)
	err := encodeTree(t.root, true, func(part []byte) error {
		out = append(binary.AppendUvarint(out, uint64(len(part))), part...)
		return nil
	})
	if err != nil {
		return err
	}
	sum := sha256.Sum256(out[len(indexMagic)+sha256.Size:])
	copy(out, indexMagic)
	copy(out[len(indexMagic):], sum[:])
	temp := e.file(c, name+".tmp")
	if err := os.WriteFile(temp, out, 0o600); err != nil {
		return hostError("write", temp, err)
	}
	return os.Rename(temp, e.file(c, name))
}

var errIndex = errors.New("not an index of this machine since it was booted")

// readIndex reads an index, and fills in whose it is.
func (c *Cache) readIndex(e *cached, name string) (*Tree, error) {
	data, err := os.ReadFile(e.file(c, name))
	if err != nil {
		return nil, err
	}
	rest, ok := bytes.CutPrefix(data, []byte(indexMagic))
	if !ok || len(rest) < sha256.Size || sha256.Sum256(rest[sha256.Size:]) != [sha256.Size]byte(rest[:sha256.Size]) {
		return nil, errIndex
	}
	d := &decoder{rest: rest[sha256.Size:]}
	boot := d.string(len(c.boot))
	e.tenant, e.id = d.string(math.MaxInt32), d.string(math.MaxInt32)
	t := &Tree{State: State(d.string(32)), Bytes: int64(d.uint()), Files: int64(d.uint())}
	for range d.count(32 + 3) {
		g := segment{ref: ref{sum: id(d.bytes(16)), pack: unique.Make([16]byte(d.bytes(16)))}}
		g.offset, g.stored, g.size = d.uint32(maxPack), d.uint32(maxStored), d.uint32(maxSegment)
		t.segments = append(t.segments, g)
	}
	if d.err != nil || boot != c.boot || keyOf(e.tenant, e.id) != e.key {
		return nil, errIndex
	}
	t.root, err = decodeTree(true, func() ([]byte, error) {
		if d.err != nil || len(d.rest) == 0 {
			return nil, d.err
		}
		return d.bytes(d.count(1)), nil
	})
	return t, err
}

// find takes over what an earlier process left: homes with a sound index. A base
// without a home stays for Adopt; the rest is dropped.
func (c *Cache) find() error {
	entries, err := os.ReadDir(c.path("homes"))
	if err != nil {
		return err
	}
	type found struct {
		e    *cached
		used time.Time
	}
	var all []found
	for _, entry := range entries {
		e := &cached{key: entry.Name()}
		index, indexErr := os.Lstat(e.file(c, "index"))
		_, homeErr := os.Lstat(e.file(c, "home"))
		_, baseErr := os.Lstat(e.file(c, "base"))
		if indexErr != nil && homeErr != nil && baseErr == nil {
			continue
		}
		t, err := c.readIndex(e, "index")
		if err != nil || homeErr != nil {
			if err := c.discard(e); err != nil {
				c.cfg.Cleanup.Later(cleanup.Home, e.key, err, func(context.Context) error { return c.dropUnknown(e.key) })
			}
			continue
		}
		e.entries = t.Files + 1
		e.size = t.Bytes + e.entries*entrySize
		all = append(all, found{e, index.ModTime()})
	}
	slices.SortFunc(all, func(a, b found) int { return cmp.Compare(a.used.UnixNano(), b.used.UnixNano()) })
	for _, f := range all {
		c.take(f.e)
	}
	if err := c.evict(); err != nil { // what could not be removed is forgotten, and found by the next start
		c.cfg.Cleanup.Count(cleanup.Home, c.cfg.Dir, err)
	}
	return nil
}

// take counts a home as unused.
func (c *Cache) take(e *cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all[e.key] = e
	e.at = c.idle.PushFront(e)
	c.count(e, e.size)
}
