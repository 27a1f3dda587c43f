package home

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/atoll-run/atoll/internal/core/thread"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// Save stores what dir holds and returns it as a state: base itself when nothing
// changed. base is what the folder held earlier, as Restore or Save returned it for this
// very folder, or the tree of any state; nil for nothing. What it has is neither
// read again, where the folder still has it untouched, nor stored again.
//
// The folder must not change meanwhile; a Save that sees it gives a Conflict
// fault. A home over the quota gives an Exhausted one. Whatever the error,
// earlier states are as they were.
func (s *Store) Save(ctx context.Context, tenant, dir string, base *Tree, limit thread.Quota) (*Tree, error) {
	t, err := s.tenant(ctx, tenant)
	if err != nil {
		return nil, err
	}
	fd, err := openHome(dir)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var was *node
	if base != nil {
		was = base.root
	}
	root, changes, err := scan(ctx, fd, s.cfg.Owners, was)
	if err != nil {
		return nil, err
	}
	if base != nil && root == base.root {
		return base, limit.Check(base.Bytes, base.Files)
	}
	bytes, files := tally(root)
	var size int64
	for _, c := range changes {
		bytes += c.alloc - c.n.size
		size += c.alloc
	}
	if err := limit.Check(bytes, files); err != nil {
		return nil, err
	}
	p := s.newPacker(ctx, t, s.known(ctx, t, base, size))
	defer p.stop()
	if err := s.readChanges(p, fd, changes); err != nil {
		return nil, err
	}
	return s.commit(ctx, t, p, root, base, limit)
}

// readChanges reads files and stores what is new of them.
func (s *Store) readChanges(p *packer, fd int, changes []change) error {
	group, ctx := errgroup.WithContext(p.ctx)
	var next atomic.Int64
	for range min(runtime.GOMAXPROCS(0), len(changes)) {
		group.Go(func() error {
			w := &walker{root: fd}
			defer w.close()
			for {
				i := int(next.Add(1)) - 1
				if i >= len(changes) {
					return nil
				}
				if err := context.Cause(ctx); err != nil {
					return err
				}
				if err := readChange(p, w, changes[i]); err != nil {
					return err
				}
			}
		})
	}
	err := group.Wait()
	if stored := context.Cause(p.ctx); errors.Is(err, context.Canceled) && stored != nil {
		return stored
	}
	return err
}

func readChange(p *packer, w *walker, c change) error {
	in, err := w.open(c.in)
	if err != nil {
		return err
	}
	fd, err := openNoTime(in, c.n.name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC)
	if err == unix.ENOENT || err == unix.ELOOP {
		return ErrChanged
	}
	if err != nil {
		return hostError("open", c.n.name, err)
	}
	defer unix.Close(fd)
	if err := unchanged(fd, c.n); err != nil {
		return err
	}
	if err := readFile(p, fd, c); err != nil {
		return err
	}
	return unchanged(fd, c.n)
}

// unchanged refuses a file that is not the one that was scanned.
func unchanged(fd int, n *node) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return hostError("look at", n.name, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Ino != n.stamp.ino || instantOf(st.Ctim) != n.stamp.ctime || st.Size != n.size {
		return ErrChanged
	}
	return nil
}

func readFile(p *packer, fd int, c change) (err error) {
	n := c.n
	if n.xattrs, err = readXattrs(fd); err != nil {
		return hostError("read attributes of", n.name, err)
	}
	if c.alloc < n.size {
		if n.extents, err = readExtents(fd, n.size); err != nil {
			return hostError("find the holes of", n.name, err)
		}
	}
	if n.dataBytes() > maxFileSize {
		return errTooLarge
	}
	n.chunks = make([]ref, n.blocks(nil))
	read := func(i int, off, size int64) error {
		buf := buffers.Get().(*[]byte)
		defer buffers.Put(buf)
		data := slices.Grow((*buf)[:0], int(size))[:size]
		*buf = data
		if err := n.readBlock(fd, data, off); err != nil {
			return err
		}
		r, err := p.put(data)
		n.chunks[i] = r
		return err
	}
	if len(n.chunks) <= 1 {
		n.blocks(func(i int, off, size int64) { err = read(i, off, size) })
		return err
	}
	group, ctx := errgroup.WithContext(p.ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	n.blocks(func(i int, off, size int64) {
		if ctx.Err() == nil {
			group.Go(func() error { return read(i, off, size) })
		}
	})
	return errors.Join(group.Wait(), context.Cause(p.ctx))
}

// readBlock reads a block, with zeros for holes.
func (n *node) readBlock(fd int, data []byte, off int64) error {
	parts := []extent{{off, int64(len(data))}}
	if n.extents != nil {
		clear(data)
		parts = within(n.extents, off, int64(len(data)))
	}
	for _, e := range parts {
		for part := data[e.off-off:][:e.len]; len(part) > 0; {
			k, err := unix.Pread(fd, part, e.off)
			if err == unix.EINTR {
				continue
			}
			if err != nil {
				return hostError("read", n.name, err)
			}
			if k == 0 {
				return ErrChanged
			}
			part = part[k:]
			e.off += int64(k)
		}
	}
	return nil
}

// within returns the parts of extents that lie in a range.
func within(extents []extent, off, size int64) (parts []extent) {
	i, _ := slices.BinarySearchFunc(extents, off, func(e extent, off int64) int { return cmp.Compare(e.off+e.len-1, off) })
	for _, e := range extents[i:] {
		from, to := max(e.off, off), min(e.off+e.len, off+size)
		if from >= to {
			break
		}
		parts = append(parts, extent{from, to - from})
	}
	return parts
}

// readExtents returns which parts of a file are data; nil for all of it.
func readExtents(fd int, size int64) ([]extent, error) {
	all := []extent{}
	for at := int64(0); at < size; {
		data, err := unix.Seek(fd, at, unix.SEEK_DATA)
		if err == unix.ENXIO {
			break
		}
		if err != nil {
			return nil, err
		}
		hole, err := unix.Seek(fd, data, unix.SEEK_HOLE)
		if err != nil {
			return nil, err
		}
		hole = min(hole, size)
		if data >= hole {
			break // it was cut off meanwhile, which the caller sees
		}
		all = append(all, extent{data, hole - data})
		at = hole
	}
	if len(all) == 1 && all[0] == (extent{0, size}) {
		return nil, nil
	}
	return all, nil
}
