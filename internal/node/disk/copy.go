package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// MergeTree copies a folder to a new name, with owners, modes, times, links, holes
// and the attributes of programs; sockets and devices are left out. Folders may be there
// already, other files may not. No process may write to either meanwhile. Where the file
// system can, the copy shares the data of files until one of them changes. If MergeTree
// fails, it leaves a part of the copy.
func MergeTree(ctx context.Context, from, to string) error {
	c := &copier{ctx, map[uint64]string{}}
	return c.entry(from, to)
}

type copier struct {
	ctx   context.Context
	names map[uint64]string // first copy of each file with several names, by inode
}

func (c *copier) entry(from, to string) error {
	if err := context.Cause(c.ctx); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Lstat(from, &st); err != nil {
		return fmt.Errorf("look at %s: %w", from, err)
	}
	if err := c.make(from, to, &st); err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	return nil
}

func (c *copier) make(from, to string, st *unix.Stat_t) error {
	kind := st.Mode & unix.S_IFMT
	if st.Nlink > 1 && kind != unix.S_IFDIR {
		if first, ok := c.names[st.Ino]; ok {
			return os.Link(first, to)
		}
		c.names[st.Ino] = to
	}
	switch kind {
	case unix.S_IFREG:
		if err := copyFile(from, to); err != nil {
			return err
		}
	case unix.S_IFDIR:
		if err := os.Mkdir(to, 0o700); err != nil && !isFolder(to) {
			return err
		}
		entries, err := os.ReadDir(from)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := c.entry(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
				return err
			}
		}
	case unix.S_IFLNK:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		if err := os.Symlink(target, to); err != nil {
			return err
		}
	case unix.S_IFIFO:
		if err := unix.Mkfifo(to, 0o600); err != nil {
			return err
		}
	default:
		return nil
	}
	return copyMetadata(from, to, st)
}

func isFolder(path string) bool {
	var st unix.Stat_t
	return unix.Lstat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR
}

// copyFile copies the data of a file, and leaves its holes.
func copyFile(from, to string) (err error) {
	in, err := os.OpenFile(from, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if unix.IoctlFileClone(int(out.Fd()), int(in.Fd())) == nil {
		return nil
	}
	for at := int64(0); ; {
		data, err := unix.Seek(int(in.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) { // a hole to the end
			return out.Truncate(info.Size())
		}
		if err != nil {
			return err
		}
		hole, err := unix.Seek(int(in.Fd()), data, unix.SEEK_HOLE)
		if err != nil {
			return err
		}
		if _, err := in.Seek(data, io.SeekStart); err != nil {
			return err
		}
		if _, err := out.Seek(data, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.CopyN(out, in, hole-data); err != nil {
			return err
		}
		at = hole
	}
}

// copyMetadata gives a copy what its original has besides its data.
func copyMetadata(from, to string, st *unix.Stat_t) error {
	if err := os.Lchown(to, int(st.Uid), int(st.Gid)); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFLNK {
		if err := copyXattrs(from, to); err != nil {
			return err
		}
		if err := unix.Chmod(to, st.Mode&0o7777); err != nil { // after the owner, which takes bits away
			return err
		}
	}
	return unix.UtimesNanoAt(unix.AT_FDCWD, to, []unix.Timespec{st.Atim, st.Mtim}, unix.AT_SYMLINK_NOFOLLOW)
}

// copyXattrs copies the attributes that programs may set.
func copyXattrs(from, to string) error {
	list := make([]byte, 64<<10)
	n, err := unix.Llistxattr(from, list)
	if errors.Is(err, unix.ENOTSUP) || n == 0 && err == nil {
		return nil
	}
	if err != nil {
		return err
	}
	value := make([]byte, 64<<10)
	for name := range strings.SplitSeq(string(list[:n]), "\x00") {
		if !strings.HasPrefix(name, "user.") {
			continue
		}
		n, err := unix.Lgetxattr(from, name, value)
		if err != nil {
			return err
		}
		if err := unix.Lsetxattr(to, name, value[:n], 0); err != nil {
			return err
		}
	}
	return nil
}
