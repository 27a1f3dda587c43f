package bucket

import (
	"context"
	"errors"
	"io"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

// node is a file or a folder. A folder is there while an object lies below it, or
// one that ends in its name and a slash.
type node struct {
	fs.Inode
	m *Mount
}

var _ = []any{
	(fs.NodeLookuper)((*node)(nil)), (fs.NodeGetattrer)((*node)(nil)), (fs.NodeSetattrer)((*node)(nil)), (fs.NodeReaddirer)((*node)(nil)),
	(fs.NodeOpener)((*node)(nil)), (fs.NodeCreater)((*node)(nil)), (fs.NodeMkdirer)((*node)(nil)), (fs.NodeUnlinker)((*node)(nil)),
	(fs.NodeRmdirer)((*node)(nil)), (fs.NodeRenamer)((*node)(nil)), (fs.NodeStatfser)((*node)(nil)),
}

// key is the object's name.
func (n *node) key() string { return n.m.cfg.Objects.Prefix + n.Path(n.Root()) }

// below is what the keys of everything in a folder begin with.
func (n *node) below() string {
	if p := n.Path(n.Root()); p != "" {
		return n.m.cfg.Objects.Prefix + p + "/"
	}
	return n.m.cfg.Objects.Prefix
}

// attr fills in what the kernel is told of a file or folder.
func attr(out *fuse.Attr, folder bool, size int64, modified time.Time) {
	out.Mode, out.Nlink = syscall.S_IFREG|0o644, 1
	if folder {
		out.Mode = syscall.S_IFDIR | 0o755
	} else {
		out.Size, out.Blocks = uint64(size), uint64(size+511)/512
	}
	out.SetTimes(&modified, &modified, &modified)
}

// stat looks for a key, as a file and then as a folder.
func (m *Mount) stat(key string) (folder bool, size int64, modified time.Time, no syscall.Errno) {
	if f := m.known(key); f != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		return false, f.size, f.modified, 0
	}
	a, err := m.cfg.Objects.Attributes(m.ctx, key)
	if err == nil {
		return false, a.Size, a.ModTime, 0
	}
	if gcerrors.Code(err) != gcerrors.NotFound {
		return false, 0, time.Time{}, errno(err)
	}
	some, no := m.first(key+"/", 1)
	if no == 0 && len(some) == 0 {
		no = syscall.ENOENT
	}
	return true, 0, time.Time{}, no
}

// first lists at most n keys with a prefix.
func (m *Mount) first(prefix string, n int) ([]*blob.ListObject, syscall.Errno) {
	some, _, err := m.cfg.Objects.ListPage(m.ctx, blob.FirstPageToken, n, &blob.ListOptions{Prefix: prefix})
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, errno(err)
	}
	return some, 0
}

// Lookup implements fs.NodeLookuper.
func (n *node) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	folder, size, modified, no := n.m.stat(n.below() + name)
	if no != 0 {
		return nil, no
	}
	attr(&out.Attr, folder, size, modified)
	return n.NewInode(ctx, &node{m: n.m}, fs.StableAttr{Mode: out.Mode & syscall.S_IFMT}), 0
}

// Getattr implements fs.NodeGetattrer.
func (n *node) Getattr(ctx context.Context, h fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	if n.IsRoot() || n.IsDir() {
		attr(&out.Attr, true, 0, time.Time{})
		return 0
	}
	if open, ok := h.(*handle); ok { // it may have been removed
		open.f.mu.Lock()
		defer open.f.mu.Unlock()
		attr(&out.Attr, false, open.f.size, open.f.modified)
		return 0
	}
	folder, size, modified, no := n.m.stat(n.key())
	attr(&out.Attr, folder, size, modified)
	return no
}

// Setattr implements fs.NodeSetattrer: files have a size that can be changed.
// Modes, owners and times they have none of their own; asking for others is no
// error, since too many programs do.
func (n *node) Setattr(ctx context.Context, h fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if size, ok := in.GetSize(); ok {
		open, ok := h.(*handle)
		if !ok {
			_, now, modified, no := n.m.stat(n.key())
			if no != 0 {
				return no
			}
			if open, no = n.m.open(n.key(), now, modified); no != 0 {
				return no
			}
			defer func() { _ = open.Release(ctx) }()
		}
		if no := open.f.truncate(int64(size)); no != 0 {
			return no
		}
		if !ok {
			if no := open.f.put(); no != 0 {
				return no
			}
		}
		h = open
	}
	return n.Getattr(ctx, h, out)
}

// Open implements fs.NodeOpener.
func (n *node) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	_, size, modified, no := n.m.stat(n.key())
	if no != 0 {
		return nil, 0, no
	}
	h, no := n.m.open(n.key(), size, modified)
	if no != 0 {
		return nil, 0, no
	}
	if flags&syscall.O_TRUNC != 0 {
		no = h.f.truncate(0)
	}
	if no != 0 {
		_ = h.Release(ctx)
		return nil, 0, no
	}
	return h, 0, 0
}

// Create implements fs.NodeCreater.
func (n *node) Create(ctx context.Context, name string, flags, _ uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	h, no := n.m.open(n.below()+name, 0, time.Now())
	if no != 0 {
		return nil, nil, 0, no
	}
	if no := h.f.truncate(0); no != 0 {
		_ = h.Release(ctx)
		return nil, nil, 0, no
	}
	attr(&out.Attr, false, 0, time.Now())
	return n.NewInode(ctx, &node{m: n.m}, fs.StableAttr{Mode: syscall.S_IFREG}), h, 0, 0
}

// Mkdir implements fs.NodeMkdirer.
func (n *node) Mkdir(ctx context.Context, name string, _ uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	if _, _, _, no := n.m.stat(n.below() + name); no != syscall.ENOENT {
		if no == 0 {
			no = syscall.EEXIST
		}
		return nil, no
	}
	if err := n.m.cfg.Objects.WriteAll(n.m.ctx, n.below()+name+"/", nil, nil); err != nil {
		return nil, errno(err)
	}
	attr(&out.Attr, true, 0, time.Now())
	return n.NewInode(ctx, &node{m: n.m}, fs.StableAttr{Mode: syscall.S_IFDIR}), 0
}

// forget takes the place from a file that is open or not stored yet, and reports
// whether there is one. Nothing of it is stored any more.
func (m *Mount) forget(key string) bool {
	m.mu.Lock()
	f := m.files[key]
	delete(m.files, key)
	unused := f != nil && f.opens == 0
	m.mu.Unlock()
	if f == nil {
		return false
	}
	f.mu.Lock() // it may just be stored, which takes its time
	defer f.mu.Unlock()
	f.gone = true
	if unused {
		f.drop()
	}
	return true
}

// Unlink implements fs.NodeUnlinker.
func (n *node) Unlink(_ context.Context, name string) syscall.Errno {
	key := n.below() + name
	known := n.m.forget(key)
	err := n.m.cfg.Objects.Delete(n.m.ctx, key)
	if known && gcerrors.Code(err) == gcerrors.NotFound {
		return 0 // it had not been stored
	}
	return errno(err)
}

// Rmdir implements fs.NodeRmdirer.
func (n *node) Rmdir(_ context.Context, name string) syscall.Errno {
	marker := n.below() + name + "/"
	some, no := n.m.first(marker, 2)
	if no != 0 {
		return no
	}
	for _, o := range some {
		if o.Key != marker {
			return syscall.ENOTEMPTY
		}
	}
	n.m.mu.Lock()
	for key := range n.m.files {
		if strings.HasPrefix(key, marker) {
			no = syscall.ENOTEMPTY
		}
	}
	n.m.mu.Unlock()
	if no != 0 || len(some) == 0 {
		return no
	}
	return errno(n.m.cfg.Objects.Delete(n.m.ctx, marker))
}

// Rename implements fs.NodeRenamer, for files: a bucket would copy every object
// of a folder. A program that moves one is told to copy it, and does.
func (n *node) Rename(_ context.Context, name string, to fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	child := n.GetChild(name)
	if child == nil || child.IsDir() {
		return syscall.EXDEV
	}
	if flags != 0 {
		return syscall.EINVAL
	}
	from, onto := n.below()+name, path.Join(to.(*node).below(), newName)
	f, stored := n.m.known(from), 0
	if f != nil {
		if no := f.put(); no != 0 {
			return no
		}
		f.mu.Lock()
		stored = f.stored
		f.mu.Unlock()
	}
	if err := n.m.cfg.Objects.Copy(n.m.ctx, onto, from, nil); err != nil {
		return errno(err)
	}
	n.m.forget(onto)
	n.m.mu.Lock()
	if f != nil && n.m.files[from] == f { // it may have been closed meanwhile
		delete(n.m.files, from)
		n.m.files[onto] = f
		f.mu.Lock()
		f.key = onto
		f.dirty = f.dirty || f.stored != stored // what was stored since is not in the copy
		f.mu.Unlock()
	}
	n.m.mu.Unlock()
	return errno(n.m.cfg.Objects.Delete(n.m.ctx, from))
}

// Statfs implements fs.NodeStatfser: a bucket has no end.
func (n *node) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	out.Bsize, out.Frsize, out.NameLen = 4096, 4096, 255
	out.Blocks, out.Bfree, out.Bavail = 1<<40, 1<<40, 1<<40
	out.Files, out.Ffree = 1<<40, 1<<40
	return 0
}
