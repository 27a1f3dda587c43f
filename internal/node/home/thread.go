// Package home keeps persistent homes: directories that outlive the sandboxes
// they are used in.
//
// A Store saves states of homes in a blob store, restores them into folders, and
// edits them without a sandbox. Only what changed is saved. A Cache is an
// executor's folder of the homes that were used last.
//
// Below threads/TENANT/ the blob store holds:
//
//   - packs/…: up to about 5 MiB of chunks. A pack begins with "atollP01"; then come
//     the chunks, an encrypted index (digest, offset, stored and plain length of each),
//     and the length of the index in 4 bytes.
//   - states/…: one object for each saved state. It begins with "atollS01"; then,
//     encrypted, come the byte and entry counts, the packs in use, and the positions
//     of the tree's segments.
//   - condemned: in clear, the packs without references, and since when.
//
// A chunk is 1 MiB of a file, a smaller file, or a segment of the tree with some
// hundred entries, cut by a hash of names. It is compressed with zstd if that makes it
// shorter (first byte 1, else 0), and encrypted with AES-256-GCM. Its name is a 16-byte
// BLAKE2b under the tenant's key, so a tenant's equal chunks are stored once, and
// tenants cannot compare. Keys come from the operator's secret key by HKDF-SHA-256; a
// pack's key also from its name, and the nonce of a part is its offset.
//
// A save compares inode, times, size and change time of each entry, reads what differs,
// and stores the chunks that neither the last state nor the tenant's 256 newest packs
// have. Objects without references are removed a day later: a pack is condemned first
// and deleted a day after that, and no save uses a condemned pack of another thread.
//
// What is in a home was made by untrusted programs. No path of it is
// ever followed on the host: folders are opened one by one, relative to the one
// above, and never through a link.
package home

import (
	"context"
	"io"
	"iter"
	"slices"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/storage"
)

// State names one saved state of a home, which never changes. The zero State is
// an empty home.
type State string

// Blobs is what a Store needs of a blob store. Package blob describes its methods.
type Blobs interface {
	Put(ctx context.Context, name string, r io.Reader) error
	Open(ctx context.Context, name string, offset, limit int64) (io.ReadCloser, error)
	Range(ctx context.Context, name string, offset, size int64) (io.ReadCloser, error)
	Delete(ctx context.Context, name string) error
	DeletePrefix(ctx context.Context, folder string) error
	List(ctx context.Context, folder string) iter.Seq2[storage.BlobInfo, error]
}

// Tree is what one state of a home holds. It is not changed once it is made, and
// may be used by several goroutines.
type Tree struct {
	State State
	Bytes int64 // as Quota counts them
	Files int64

	root     *node
	segments []segment // where the encoded tree is
}

// ThreadState is the state as a Result of an execution carries it.
func (t *Tree) ThreadState() execution.ThreadState {
	return execution.ThreadState{State: string(t.State), Bytes: t.Bytes, Files: t.Files}
}

// Only returns the part of t that has some entries of its folder and no others.
// It is no state.
func (t *Tree) Only(names ...string) *Tree {
	root := *t.root
	root.children = nil
	for _, c := range t.root.children {
		if slices.Contains(names, c.name) {
			root.children = append(root.children, c)
		}
	}
	part := &Tree{root: &root}
	part.Bytes, part.Files = tally(&root)
	return part
}

// kind is what an entry of a home is.
type kind uint8

const (
	kindFile kind = iota + 1
	kindDir
	kindSymlink
	kindFIFO
)

// instant is a time of a file. Nanoseconds since 1970 in one number would not
// reach as far as file systems do.
type instant struct {
	sec  int64
	nsec uint32
}

// node is an entry of a home.
type node struct {
	name string // any bytes but / and NUL; empty for the home itself
	kind kind
	mode uint32 // permissions, set-user-id, set-group-id and sticky
	uid  uint32 // as programs in the sandbox see them
	gid  uint32

	mtime, atime instant

	size     int64    // of a file, as programs see it
	extents  []extent // the parts of a file with holes that are data; nil for all of it
	chunks   []ref    // a file's blocks that have data, in order
	target   string   // of a symbolic link
	xattrs   []xattr  // of files and folders, by name
	children []*node  // of a folder, by name

	// link is the first name of a file that has several; the first itself and all
	// other entries have nil. All that describes the file is there.
	link   *node
	linked bool // the first name of several

	stamp   stamp
	foreign []string // what else is in a folder on this host, and not kept: sockets and devices
}

// file is where a node's content and metadata are.
func (n *node) file() *node {
	if n.link != nil {
		return n.link
	}
	return n
}

// extent is a part of a file that is data.
type extent struct{ off, len int64 }

// xattr is an extended attribute of the user namespace.
type xattr struct{ name, value string }

// stamp tells whether an entry of a folder on this host is the one that was seen
// earlier. Programs choose all of a file's metadata but the time of its last
// change of any kind, ctime, which the kernel sets.
type stamp struct {
	ino   uint64
	ctime instant
	// sure says that the clock had left ctime behind when the entry was seen: a
	// change in the same tick would not have shown.
	sure bool
}

// newRoot is an empty home.
func newRoot() *node {
	return &node{kind: kindDir, mode: 0o700, uid: runtime.UID, gid: runtime.GID}
}

// Bounds of a home, whatever its quota.
const (
	maxDepth    = 4096      // folders in each other; each is an open file while one below is walked
	maxName     = 255       // bytes; what Linux allows
	maxTarget   = 4095      // bytes of a symbolic link's target; likewise
	maxFileSize = 256 << 30 // bytes of data
	maxXattrs   = 64 << 10  // bytes of all attributes of an entry
)

// tally counts a tree as Quota does.
func tally(n *node) (bytes, files int64) {
	if n.link == nil && n.kind == kindFile {
		bytes = n.dataBytes()
	}
	for _, c := range n.children {
		b, f := tally(c)
		bytes += b
		files += f + 1
	}
	return bytes, files
}

// checkXattrs refuses attributes that could be saved and then not be read again.
// Not every file system has a bound of its own.
func (n *node) checkXattrs() error {
	sum := 0
	for _, x := range n.xattrs {
		sum += len(x.name) + len(x.value)
	}
	if sum > maxXattrs {
		return errXattrs
	}
	for _, c := range n.children {
		if err := c.checkXattrs(); err != nil {
			return err
		}
	}
	return nil
}

func (n *node) dataBytes() int64 {
	if n.extents == nil {
		return n.size
	}
	var sum int64
	for _, e := range n.extents {
		sum += e.len
	}
	return sum
}
