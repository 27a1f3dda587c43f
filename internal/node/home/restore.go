package home

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/node/idmap"
)

// Restore makes dir, which is there, hold exactly what t does. have is what it
// holds already, as Restore or Save returned it for this very folder; with nil,
// whatever is in it goes. Only the difference is fetched and written. No other
// caller may use the folder meanwhile; after an error its content is of no use.
//
// Restore notes in t what it made, so from then on t is for this folder alone.
//
// Set-user-id and set-group-id bits of files are set only where the file system
// is mounted so that they mean nothing; t has them in any case.
func (s *Store) Restore(ctx context.Context, tenant string, t *Tree, dir string, have *Tree) error {
	ts, err := s.tenant(ctx, tenant)
	if err != nil {
		return err
	}
	fd, err := openHome(dir)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return hostError("look at the file system of", dir, err)
	}
	p := &plan{owners: s.cfg.Owners, setID: fs.Flags&unix.ST_NOSUID != 0, root: fd, wants: map[ref][]block{}, firsts: map[*node]*folder{}}
	var was *node
	if have != nil {
		was = have.root
		p.compare(t.root, was)
	} else if err := clearFolder(fd); err != nil {
		return err
	}
	if was == nil || p.differ[t.root] {
		if err := p.folder(ctx, fd, &folder{}, t.root, was); err != nil {
			return err
		}
	}
	if err := p.write(ctx, s, ts); err != nil {
		return err
	}
	if err := p.finish(); err != nil {
		return err
	}
	return stampTree(ctx, fd, t.root)
}

// plan is what has to be done to a folder.
type plan struct {
	owners idmap.Map
	setID  bool
	root   int

	differ map[*node]bool  // folders of the new tree in which, or below which, something differs
	same   map[*node]*node // files of the old tree that stay, by what they are in the new one

	touched []touchedFolder // each before those in it
	files   []*target
	wants   map[ref][]block
	links   []newLink
	firsts  map[*node]*folder // where the first names of linked files are

	mu      sync.Mutex
	walkers []*walker // not in use
}

type touchedFolder struct {
	f *folder
	n *node
}

type newLink struct {
	in *folder
	n  *node
}

// compare finds out which folders differ.
func (p *plan) compare(want, have *node) {
	p.differ, p.same = map[*node]bool{}, map[*node]*node{}
	var folder func(w, h *node) bool
	folder = func(w, h *node) bool {
		differs := !w.sameMeta(h) || len(h.foreign) > 0
		i := 0
		for _, c := range w.children {
			for i < len(h.children) && h.children[i].name < c.name {
				i++
				differs = true
			}
			if i == len(h.children) || h.children[i].name != c.name {
				differs = true
				continue
			}
			old := h.children[i]
			i++
			switch {
			case c.kind == kindDir && old.kind == kindDir:
				differs = folder(c, old) || differs
			case p.sameFile(c, old):
			default:
				differs = true
			}
		}
		differs = differs || i < len(h.children)
		if differs {
			p.differ[w] = true
		}
		return differs
	}
	folder(want, have)
}

// sameFile reports whether an entry that is no folder may stay as it is.
func (p *plan) sameFile(w, h *node) bool {
	if w.kind != h.kind || (w.link == nil) != (h.link == nil) {
		return false
	}
	if w.link != nil {
		return p.same[h.link] == w.link
	}
	if w.linked != h.linked || !w.sameMeta(h) || !w.sameContent(h) {
		return false
	}
	if h.linked {
		p.same[h] = w
	}
	return true
}

func (n *node) sameMeta(m *node) bool {
	return n.mode == m.mode && n.uid == m.uid && n.gid == m.gid && n.mtime == m.mtime && n.atime == m.atime && slices.Equal(n.xattrs, m.xattrs)
}

func (n *node) sameContent(m *node) bool {
	return (n.kind != kindFile || n.size == m.size) && n.target == m.target && (n.extents == nil) == (m.extents == nil) && slices.Equal(n.extents, m.extents) &&
		slices.EqualFunc(n.chunks, m.chunks, func(a, b ref) bool { return a.sum == b.sum })
}

// folder makes an open folder hold what w does, but for the files' content.
func (p *plan) folder(ctx context.Context, fd int, f *folder, w, h *node) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	p.touched = append(p.touched, touchedFolder{f, w})
	var old []*node
	if h != nil {
		old = h.children
		for _, name := range h.foreign {
			if err := unix.Unlinkat(fd, name, 0); err != nil && err != unix.ENOENT {
				return hostError("remove", name, err)
			}
		}
	}
	for _, c := range w.children {
		for len(old) > 0 && old[0].name < c.name {
			if err := remove(fd, old[0]); err != nil {
				return err
			}
			old = old[1:]
		}
		var was *node
		if len(old) > 0 && old[0].name == c.name {
			was, old = old[0], old[1:]
		}
		if err := p.entry(ctx, fd, f, c, was); err != nil {
			return err
		}
	}
	for _, o := range old {
		if err := remove(fd, o); err != nil {
			return err
		}
	}
	return nil
}

func (p *plan) entry(ctx context.Context, fd int, f *folder, c, was *node) error {
	if was != nil && c.kind == kindDir && was.kind == kindDir {
		if !p.differ[c] {
			return nil
		}
		return p.below(ctx, fd, f, c, was)
	}
	if c.linked {
		p.firsts[c] = f
	}
	if was != nil {
		if p.sameFile(c, was) {
			return nil
		}
		if c.kind == kindFile && was.kind == kindFile && !c.inSet() && !was.inSet() && c.extents == nil && was.extents == nil {
			p.target(f, c, was)
			return nil
		}
		if err := remove(fd, was); err != nil {
			return err
		}
	}
	switch c.kind {
	case kindDir:
		if err := unix.Mkdirat(fd, c.name, 0o700); err != nil {
			return hostError("make folder", c.name, err)
		}
		return p.below(ctx, fd, f, c, nil)
	case kindFile:
		if c.link != nil {
			p.links = append(p.links, newLink{f, c})
		} else {
			p.target(f, c, nil)
		}
		return nil
	case kindSymlink:
		if err := unix.Symlinkat(c.target, fd, c.name); err != nil {
			return hostError("make link", c.name, err)
		}
	case kindFIFO:
		if err := unix.Mknodat(fd, c.name, unix.S_IFIFO|0o600, 0); err != nil {
			return hostError("make FIFO", c.name, err)
		}
	}
	return p.dressByName(fd, c)
}

// inSet reports whether a file has several names.
func (n *node) inSet() bool { return n.linked || n.link != nil }

func (p *plan) below(ctx context.Context, fd int, f *folder, c, was *node) error {
	sub, err := unix.Openat(fd, c.name, openFolder, 0)
	if err != nil {
		return hostError("open folder", c.name, err)
	}
	defer unix.Close(sub)
	return p.folder(ctx, sub, f.in(c.name), c, was)
}

// finish makes the hard links, then gives the folders their metadata, those in a
// folder before it.
func (p *plan) finish() error {
	a, b := &walker{root: p.root}, &walker{root: p.root}
	defer a.close()
	defer b.close()
	for _, l := range p.links {
		first := l.n.link
		from, err := a.open(p.firsts[first])
		if err != nil {
			return err
		}
		to, err := b.open(l.in)
		if err != nil {
			return err
		}
		if err := unix.Linkat(from, first.name, to, l.n.name, 0); err != nil {
			return hostError("link", l.n.name, err)
		}
	}
	for _, t := range slices.Backward(p.touched) {
		fd, err := a.open(t.f)
		if err != nil {
			return err
		}
		if err := p.dress(fd, t.n); err != nil {
			return err
		}
		if err := setTimes(fd, ".", t.n); err != nil {
			return err
		}
	}
	return nil
}
