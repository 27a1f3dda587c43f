package home

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/node/idmap"
)

// scanner compares a folder with the tree that it was last seen to hold. It looks
// at every entry, and reads none.
type scanner struct {
	ctx    context.Context
	owners idmap.Map
	dev    uint64
	now    instant // when it began
	group  *errgroup.Group

	mu      sync.Mutex
	changes []change
	links   bool // some file may have several names
}

// change is a file whose content is to be read.
type change struct {
	n     *node
	in    *folder
	alloc int64 // bytes of it on disk, roughly
}

// scan returns the tree of a home, base's nodes where nothing changed, and the
// files that must be read to complete it, in the order of the tree.
func scan(ctx context.Context, fd int, owners idmap.Map, base *node) (*node, []change, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, nil, hostError("look at", ".", err)
	}
	now, err := kernelNow()
	if err != nil {
		return nil, nil, err
	}
	sc := &scanner{ctx: ctx, owners: owners, dev: st.Dev, now: now, group: &errgroup.Group{}}
	sc.group.SetLimit(max(runtime.GOMAXPROCS(0)-1, 1))
	root, err := sc.folder(fd, &st, base, &folder{})
	if err != nil {
		return nil, nil, err
	}
	if sc.links {
		joinLinks(root)
	}
	return root, sc.inOrder(root), nil
}

// inOrder sorts the changes as the tree is, and leaves those out that turned out
// to be further names of a file.
func (sc *scanner) inOrder(root *node) []change {
	if len(sc.changes) == 0 {
		return nil
	}
	of := make(map[*node]change, len(sc.changes))
	for _, c := range sc.changes {
		of[c.n] = c
	}
	sorted := sc.changes[:0]
	var visit func(*node)
	visit = func(n *node) {
		if c, ok := of[n]; ok && n.link == nil {
			sorted = append(sorted, c)
		}
		for _, c := range n.children {
			visit(c)
		}
	}
	visit(root)
	return sorted
}

// seen reports whether an entry is the one that n describes, unchanged.
func (n *node) seen(st *unix.Stat_t) bool {
	s := &n.stamp
	return s.sure && s.ino == st.Ino && s.ctime == instantOf(st.Ctim) && n.mtime == instantOf(st.Mtim) &&
		(n.kind != kindFile || n.size == st.Size)
}

func (sc *scanner) describe(name string, k kind, st *unix.Stat_t) *node {
	n := &node{name: name, kind: k, mode: st.Mode & 0o7777, uid: toGuest(sc.owners.UID, st.Uid), gid: toGuest(sc.owners.GID, st.Gid),
		mtime: instantOf(st.Mtim), atime: instantOf(st.Atim)}
	if k == kindDir || k == kindSymlink {
		n.atime = n.mtime // every list of a folder and every use of a link would change it
	}
	n.stamp = stamp{ino: st.Ino, ctime: instantOf(st.Ctim)}
	n.stamp.sure = n.stamp.ctime.before(sc.now)
	return n
}

// folder looks at an open folder.
func (sc *scanner) folder(fd int, st *unix.Stat_t, base *node, f *folder) (*node, error) {
	if err := context.Cause(sc.ctx); err != nil {
		return nil, err
	}
	if f.depth >= maxDepth {
		return nil, errTooDeep
	}
	var had []*node
	same := false
	if base != nil {
		had = base.children
		same = base.seen(st)
	}
	var names []string
	if same { // no name came or went; those that are not kept, such as sockets, need no look
		names = make([]string, len(had))
		for i, c := range had {
			names[i] = c.name
		}
	} else {
		var err error
		if names, err = readNames(fd); err != nil {
			return nil, hostError("list", f.name, err)
		}
	}
	stats, err := sc.stat(fd, names)
	if err != nil {
		return nil, err
	}
	children, reused, err := sc.entries(fd, f, names, stats, had)
	if err != nil {
		return nil, err
	}
	if same && reused {
		return base, nil
	}
	n := sc.describe(f.name, kindDir, st)
	n.children = children
	if same {
		n.xattrs, n.foreign = base.xattrs, base.foreign
		return n, nil
	}
	if n.xattrs, err = readXattrs(fd); err != nil {
		return nil, hostError("read attributes of", f.name, err)
	}
	for i := range stats {
		if kindOf(&stats[i]) == 0 {
			n.foreign = append(n.foreign, names[i])
		}
	}
	return n, nil
}

// kindOf is what an entry is; 0 if it is not kept: sockets need their process,
// and devices have no place in a home.
func kindOf(st *unix.Stat_t) kind {
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return kindFile
	case unix.S_IFDIR:
		return kindDir
	case unix.S_IFLNK:
		return kindSymlink
	case unix.S_IFIFO:
		return kindFIFO
	}
	return 0
}

// entries makes the nodes of a folder's entries, and reports whether all of them
// are those it had.
func (sc *scanner) entries(fd int, f *folder, names []string, stats []unix.Stat_t, had []*node) (_ []*node, reused bool, err error) {
	children := make([]*node, len(names))
	failed := make([]error, len(names))
	var wait sync.WaitGroup
	defer wait.Wait()
	reused = true
	var bases []*node // by index of children, where they are folders
	for i, name := range names {
		for len(had) > 0 && had[0].name < name {
			had, reused = had[1:], false
		}
		var base *node
		if len(had) > 0 && had[0].name == name {
			base, had = had[0], had[1:]
		}
		st := &stats[i]
		if kindOf(st) == kindDir {
			if base != nil && base.kind != kindDir {
				base = nil
			}
			if bases == nil {
				bases = make([]*node, len(names))
			}
			bases[i] = base
			sub, err := sc.enter(fd, name, st)
			if err != nil {
				return nil, false, err
			}
			below := func() {
				defer unix.Close(sub)
				children[i], failed[i] = sc.folder(sub, st, base, f.in(name))
			}
			wait.Add(1)
			if !sc.group.TryGo(func() error { defer wait.Done(); below(); return nil }) {
				below()
				wait.Done()
				if failed[i] != nil {
					return nil, false, failed[i]
				}
			}
			continue
		}
		if children[i], err = sc.entry(fd, f, name, st, base); err != nil {
			return nil, false, err
		}
		reused = reused && children[i] == base
	}
	wait.Wait()
	if err := errors.Join(failed...); err != nil {
		return nil, false, err
	}
	for i, b := range bases {
		if kindOf(&stats[i]) == kindDir {
			reused = reused && children[i] == b
		}
	}
	children = slices.DeleteFunc(children, func(n *node) bool { return n == nil })
	return children, reused && len(had) == 0, nil
}

func (sc *scanner) enter(fd int, name string, st *unix.Stat_t) (int, error) {
	if st.Dev != sc.dev {
		return -1, hostError("enter", name, unix.EXDEV) // nothing may be mounted in a home
	}
	sub, err := openNoTime(fd, name, openFolder)
	if err == unix.ENOENT || err == unix.ELOOP || err == unix.ENOTDIR {
		return -1, ErrChanged
	}
	return sub, hostError("open folder", name, err)
}

// entry makes the node of what is no folder; nil for what is not kept.
func (sc *scanner) entry(fd int, f *folder, name string, st *unix.Stat_t, base *node) (*node, error) {
	k := kindOf(st)
	if k == 0 {
		return nil, nil
	}
	same := base != nil && base.file().kind == k && base.file().seen(st)
	several := k == kindFile && st.Nlink > 1
	if same && !several {
		return base, nil
	}
	n := sc.describe(name, k, st)
	if k == kindSymlink {
		var err error
		if n.target, err = readLink(fd, name); err != nil {
			return nil, hostError("read link", name, err)
		}
	}
	if k != kindFile {
		return n, nil
	}
	n.size = st.Size
	if base != nil && base.file().stamp.ino == st.Ino && base.file().stamp.ctime == n.stamp.ctime {
		n.mode |= base.file().mode & (unix.S_ISUID | unix.S_ISGID) // which Restore left off
	}
	if same {
		was := base.file()
		n.extents, n.chunks, n.xattrs = was.extents, was.chunks, was.xattrs
	}
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.links = sc.links || several
	if !same {
		sc.changes = append(sc.changes, change{n, f, min(st.Size, st.Blocks*512)})
	}
	return n, nil
}

// joinLinks makes the names of one file refer to the first of them.
func joinLinks(root *node) {
	first := map[uint64]*node{}
	var join func(*node)
	join = func(n *node) {
		for _, c := range n.children {
			if c.kind == kindDir {
				join(c)
			} else if c.kind == kindFile {
				if p := first[c.stamp.ino]; p == nil {
					first[c.stamp.ino] = c
				} else {
					p.linked = true
					*c = node{name: c.name, kind: kindFile, link: p}
				}
			}
		}
	}
	join(root)
}
