package home

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// target is a file that is made or changed.
type target struct {
	n    *node
	in   *folder
	left atomic.Int64 // blocks to be written

	mu   sync.Mutex
	made bool
}

// block is a place in a file for a chunk.
type block struct {
	t         *target
	off, size int64
}

// target notes a file to be made, or with was, to be changed in place.
func (p *plan) target(f *folder, n, was *node) {
	t := &target{n: n, in: f, made: was != nil}
	p.files = append(p.files, t)
	var blocks []block
	var refs []ref
	n.blocks(func(i int, off, size int64) {
		if was != nil && i < len(was.chunks) && was.chunks[i].sum == n.chunks[i].sum {
			return
		}
		blocks, refs = append(blocks, block{t, off, size}), append(refs, n.chunks[i])
	})
	t.left.Store(int64(len(blocks)))
	for i, b := range blocks {
		p.wants[refs[i]] = append(p.wants[refs[i]], b)
	}
}

// write makes all files, with their content.
func (p *plan) write(ctx context.Context, s *Store, ts *tenantStore) error {
	defer func() {
		for _, w := range p.walkers {
			w.close()
		}
	}()
	var wants []want
	seen := map[ref]bool{}
	var empty []*target
	for _, t := range p.files {
		if t.left.Load() == 0 {
			empty = append(empty, t)
		}
		t.n.blocks(func(i int, _, size int64) {
			r := t.n.chunks[i]
			if blocks := p.wants[r]; len(blocks) > 0 && !seen[r] {
				seen[r] = true
				wants = append(wants, want{r, int(size), func(data []byte) error { return p.place(data, blocks) }})
			}
		})
	}
	group, gctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range min(runtime.GOMAXPROCS(0), len(empty)) {
		group.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(empty) || gctx.Err() != nil {
					return nil
				}
				if err := p.place(nil, []block{{t: empty[i]}}); err != nil {
					return err
				}
			}
		})
	}
	group.Go(func() error { return s.fetch(gctx, ts, wants) })
	if err := group.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// place writes a chunk wherever it belongs.
func (p *plan) place(data []byte, blocks []block) error {
	p.mu.Lock()
	w := &walker{root: p.root}
	if k := len(p.walkers); k > 0 {
		w, p.walkers = p.walkers[k-1], p.walkers[:k-1]
	}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.walkers = append(p.walkers, w)
		p.mu.Unlock()
	}()
	for _, b := range blocks {
		in, err := w.open(b.t.in)
		if err != nil {
			return err
		}
		if err := p.placeIn(in, data, b); err != nil {
			return err
		}
	}
	return nil
}

func (p *plan) placeIn(in int, data []byte, b block) error {
	t := b.t
	fd, err := t.open(in)
	if err != nil {
		return hostError("make", t.n.name, err)
	}
	defer unix.Close(fd)
	if int64(len(data)) != b.size {
		return corrupt("a block has %d bytes, not %d", len(data), b.size)
	}
	parts := []extent{{b.off, b.size}}
	if t.n.extents != nil {
		parts = within(t.n.extents, b.off, b.size)
	}
	for _, e := range parts {
		if err := writeAt(fd, data[e.off-b.off:][:e.len], e.off); err != nil {
			return hostError("write", t.n.name, err)
		}
	}
	if b.size > 0 && t.left.Add(-1) > 0 {
		return nil
	}
	if err := unix.Ftruncate(fd, t.n.size); err != nil {
		return hostError("size", t.n.name, err)
	}
	if err := p.dress(fd, t.n); err != nil {
		return err
	}
	return setTimes(in, t.n.name, t.n)
}

// open makes the file the first time.
func (t *target) open(in int) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	flags := unix.O_WRONLY | unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK
	if !t.made {
		flags |= unix.O_CREAT | unix.O_EXCL
	}
	fd, err := unix.Openat(in, t.n.name, flags, 0o600)
	t.made = t.made || err == nil
	return fd, err
}

func writeAt(fd int, data []byte, off int64) error {
	for len(data) > 0 {
		n, err := unix.Pwrite(fd, data, off)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		data = data[n:]
		off += int64(n)
	}
	return nil
}

// dress gives an open file or folder its attributes, owner and mode. The owner
// comes before the mode, of which it takes bits away.
func (p *plan) dress(fd int, n *node) error {
	if err := setXattrs(fd, n.xattrs); err != nil {
		return hostError("set attributes of", n.name, err)
	}
	if err := unix.Fchown(fd, toHost(p.owners.UID, n.uid), toHost(p.owners.GID, n.gid)); err != nil {
		return hostError("set the owner of", n.name, err)
	}
	if err := unix.Fchmod(fd, p.mode(n)); err != nil {
		return hostError("set the mode of", n.name, err)
	}
	return nil
}

func (p *plan) mode(n *node) uint32 {
	if n.kind != kindDir && !p.setID {
		return n.mode &^ (unix.S_ISUID | unix.S_ISGID)
	}
	return n.mode
}

// dressByName is for what cannot be opened.
func (p *plan) dressByName(in int, n *node) error {
	if err := unix.Fchownat(in, n.name, toHost(p.owners.UID, n.uid), toHost(p.owners.GID, n.gid), unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return hostError("set the owner of", n.name, err)
	}
	if n.kind != kindSymlink { // a link has no mode
		if err := unix.Fchmodat(in, n.name, p.mode(n), 0); err != nil {
			return hostError("set the mode of", n.name, err)
		}
	}
	return setTimes(in, n.name, n)
}

func setTimes(in int, name string, n *node) error {
	times := []unix.Timespec{timespec(n.atime), timespec(n.mtime)}
	if err := unix.UtimesNanoAt(in, name, times, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return hostError("set the times of", n.name, err)
	}
	return nil
}

func timespec(t instant) unix.Timespec {
	return unix.Timespec{Sec: t.sec, Nsec: int64(t.nsec)}
}

// setXattrs gives an open file these attributes and no others.
func setXattrs(fd int, want []xattr) error {
	have, err := readXattrs(fd)
	if err != nil {
		return err
	}
	for _, x := range have {
		if !slices.ContainsFunc(want, func(y xattr) bool { return y.name == x.name }) {
			if err := unix.Fremovexattr(fd, x.name); err != nil {
				return err
			}
		}
	}
	for _, x := range want {
		if slices.Contains(have, x) {
			continue
		}
		if err := unix.Fsetxattr(fd, x.name, []byte(x.value), 0); err != nil {
			return err
		}
	}
	return nil
}
