package home

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/thread"
)

// WriteFile returns a state in which a file holds what r gives, and all else is as
// in t. Missing folders are made. A file that is there keeps its owner and mode;
// of several names of one file, only this one has the new content. An error of r
// is returned as it is.
func (s *Store) WriteFile(ctx context.Context, tenant string, t *Tree, path string, r io.Reader, limit thread.Quota) (*Tree, error) {
	return s.edit(ctx, tenant, t, limit, 0, func(p *packer, root *node) error {
		now := time.Now()
		in, name, err := makeWay(root, path, now)
		if err != nil {
			return err
		}
		n := newFile(name, now)
		at, there := in.child(name)
		if there {
			old := in.children[at].file()
			if old.kind != kindFile {
				return fault.New(fault.Invalid, "%q is there and is no file", path)
			}
			n.mode, n.uid, n.gid = old.mode&0o777, old.uid, old.gid
			in.children[at] = n
		} else {
			in.children = slices.Insert(in.children, at, n)
			in.mtime = n.mtime
		}
		used, files := tally(root)
		if err := limit.Check(used, files); err != nil {
			return err
		}
		return fill(p, n, r, limit, used)
	})
}

// Remove returns a state without a file, or a folder and all that is in it.
func (s *Store) Remove(ctx context.Context, tenant string, t *Tree, path string) (*Tree, error) {
	return s.edit(ctx, tenant, t, thread.Quota{}, 0, func(_ *packer, root *node) error {
		parts, err := parsePath(path)
		if err != nil {
			return err
		}
		if len(parts) == 0 {
			return fault.New(fault.Invalid, "the home directory itself cannot be removed; delete the thread")
		}
		in := root
		for _, p := range parts[:len(parts)-1] {
			i, ok := in.child(p)
			if !ok {
				return errNoFile(path)
			}
			in = in.children[i]
		}
		i, ok := in.child(parts[len(parts)-1])
		if !ok {
			return errNoFile(path)
		}
		in.children = slices.Delete(in.children, i, i+1)
		in.mtime = instantAt(time.Now())
		return nil
	})
}

// edit makes a state of a changed copy of a tree, to which about size bytes come.
func (s *Store) edit(ctx context.Context, tenant string, t *Tree, limit thread.Quota, size int64, change func(*packer, *node) error) (*Tree, error) {
	ts, err := s.tenant(ctx, tenant)
	if err != nil {
		return nil, err
	}
	p := s.newPacker(ctx, ts, s.known(ctx, ts, t, size))
	defer p.stop()
	root := t.root.clone(map[*node]*node{})
	if err := change(p, root); err != nil {
		return nil, err
	}
	sortLinks(root)
	return s.commit(ctx, ts, p, root, t, limit)
}

// clone copies a tree, without what is known of it on this host.
func (n *node) clone(links map[*node]*node) *node {
	c := *n
	c.stamp, c.foreign = stamp{}, nil
	if n.linked {
		links[n] = &c
	}
	if n.link != nil {
		c.link = links[n.link]
	}
	c.children = make([]*node, len(n.children))
	for i, child := range n.children {
		c.children[i] = child.clone(links)
	}
	return &c
}

// sortLinks makes the first name of a file in a changed tree the one that the
// others refer to.
func sortLinks(root *node) {
	names := map[*node][]*node{}
	var order []*node
	var collect func(*node)
	collect = func(n *node) {
		if f := n.file(); f.kind == kindFile && (f.linked || n.link != nil) {
			if names[f] == nil {
				order = append(order, f)
			}
			names[f] = append(names[f], n)
		}
		for _, c := range n.children {
			collect(c)
		}
	}
	collect(root)
	for _, f := range order {
		content, all := *f, names[f]
		first := all[0]
		name := first.name
		*first = content
		first.name, first.link, first.linked = name, nil, len(all) > 1
		for _, n := range all[1:] {
			*n = node{name: n.name, kind: kindFile, link: first}
		}
	}
}

func instantAt(t time.Time) instant { return instant{t.Unix(), uint32(t.Nanosecond())} }

func newFile(name string, at time.Time) *node {
	return &node{name: name, kind: kindFile, mode: 0o644, uid: runtime.UID, gid: runtime.GID, mtime: instantAt(at), atime: instantAt(at)}
}

// makeWay finds the folder that a path ends in, and makes what is missing of it.
func makeWay(root *node, path string, now time.Time) (in *node, name string, err error) {
	parts, err := parsePath(path)
	if err != nil {
		return nil, "", err
	}
	if len(parts) == 0 || strings.HasSuffix(path, "/") {
		return nil, "", fault.New(fault.Invalid, "path must name a file")
	}
	if len(parts) >= maxDepth {
		return nil, "", errTooDeep
	}
	in = root
	for _, p := range parts[:len(parts)-1] {
		i, ok := in.child(p)
		if !ok {
			d := newFile(p, now)
			d.kind, d.mode = kindDir, 0o755
			in.children = slices.Insert(in.children, i, d)
			in.mtime = d.mtime
		}
		if in = in.children[i]; in.kind != kindDir {
			return nil, "", fault.New(fault.Invalid, "%q is there and is no folder", p)
		}
	}
	return in, parts[len(parts)-1], nil
}

// fill stores what r gives as a file's content. used is what the home has already.
func fill(p *packer, n *node, r io.Reader, limit thread.Quota, used int64) error {
	group, ctx := errgroup.WithContext(p.ctx)
	group.SetLimit(uploads)
	defer func() { _ = group.Wait() }() // the buffers and packs are not read any more
	var refs []*ref
	for ctx.Err() == nil {
		buf := buffers.Get().(*[]byte)
		data := slices.Grow((*buf)[:0], blockSize)[:blockSize]
		*buf = data
		k, err := io.ReadFull(r, data)
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return err
		}
		if n.size += int64(k); n.size > thread.MaxUpload {
			return fault.New(fault.TooLarge, "a file must have at most %s", runtime.FormatBytes(thread.MaxUpload))
		}
		if err := limit.Check(used+n.size, 0); err != nil {
			return err
		}
		if k > 0 {
			to := &ref{}
			refs = append(refs, to)
			group.Go(func() (err error) {
				defer buffers.Put(buf)
				*to, err = p.put(data[:k])
				return err
			})
		}
		if err != nil {
			break
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, r := range refs {
		n.chunks = append(n.chunks, *r)
	}
	return context.Cause(p.ctx)
}
