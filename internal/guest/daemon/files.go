package daemon

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/proto"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

// place is a path as the host wrote it: what is not absolute is in the home.
func place(b []byte) (string, error) {
	switch {
	case len(b) == 0:
		return "", refuse(proto.Invalid, "the path is empty")
	case bytes.IndexByte(b, 0) >= 0:
		return "", refuse(proto.Invalid, "a path cannot have a NUL in it")
	case b[0] != '/':
		return wire.Home + "/" + string(b), nil
	}
	return string(b), nil
}

// describe is what stat says of a file.
func describe(name string, st *unix.Stat_t) proto.File {
	f := proto.File{
		Path: []byte(name), Kind: "other", Size: st.Size, Mode: st.Mode & 0o7777, UID: st.Uid, GID: st.Gid,
		Modified: st.Mtim.Sec*1e6 + st.Mtim.Nsec/1e3,
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		f.Kind = "file"
	case unix.S_IFDIR:
		f.Kind = "folder"
	case unix.S_IFLNK:
		f.Kind = "link"
	}
	return f
}

// look describes what stands at a path. It is called as the user.
func look(name string) (proto.File, error) {
	var st unix.Stat_t
	if err := unix.Lstat(name, &st); err != nil {
		return proto.File{}, step("stat", name, err)
	}
	f := describe(name, &st)
	if f.Kind == "link" {
		if target, err := os.Readlink(name); err == nil {
			f.Target = []byte(target)
		}
	}
	return f, nil
}

func stat(q *proto.Path) (r proto.Reply, err error) {
	name, err := place(q.Path)
	if err != nil {
		return r, err
	}
	return r, asUser(func() error {
		f, err := look(name)
		r.File = &f
		return err
	})
}

const (
	maxEntries = 10_000
	maxDepth   = 64
	maxAnswer  = 4 << 20 // bytes of paths in an answer
)

func list(q *proto.List) (r proto.Reply, err error) {
	name, err := place(q.Path)
	if err != nil {
		return r, err
	}
	l := lister{limit: q.Limit}
	if l.limit <= 0 || l.limit > maxEntries {
		l.limit = maxEntries
	}
	err = asUser(func() error { return l.walk(strings.TrimRight(name, "/"), min(max(q.Depth, 1), maxDepth), true) })
	if err != nil {
		return r, err
	}
	slices.SortFunc(l.found, func(a, b proto.File) int { return bytes.Compare(a.Path, b.Path) })
	return proto.Reply{Files: l.found, Truncated: l.truncated}, nil
}

type lister struct {
	found     []proto.File
	limit     int
	bytes     int
	truncated bool
}

// walk lists a folder. What is below it and cannot be read is left out.
func (l *lister) walk(folder string, depth int, first bool) error {
	entries, err := readDir(folder + "/")
	if err != nil {
		if first {
			return step("list", folder+"/", err)
		}
		return nil
	}
	for _, e := range entries {
		if len(l.found) >= l.limit || l.bytes > maxAnswer {
			l.truncated = true
			return nil
		}
		f, err := look(folder + "/" + e.Name())
		if err != nil {
			continue // it is gone already
		}
		l.found = append(l.found, f)
		l.bytes += len(f.Path) + len(f.Target) + 100
		if f.Kind == "folder" && depth > 1 {
			if err := l.walk(folder+"/"+e.Name(), depth-1, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// readDir lists a folder by name. os.ReadDir looks at nothing but the folder.
func readDir(name string) ([]os.DirEntry, error) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	entries, err := f.ReadDir(-1)
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

func mkdir(q *proto.Path) error {
	name, err := place(q.Path)
	if err != nil {
		return err
	}
	return asUser(func() error { return makeFolders(name) })
}

// makeFolders makes a folder and those above it.
func makeFolders(name string) error {
	err := os.MkdirAll(name, 0o755)
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return step("make folder", e.Path, e.Err)
	}
	return err
}

func remove(q *proto.Remove) error {
	name, err := place(q.Path)
	if err != nil {
		return err
	}
	if clean := path.Clean(name); clean == "/" || clean == wire.Home {
		return refuse(proto.Denied, "%s stays; remove what is in it", clean)
	}
	return asUser(func() error {
		if _, err := look(name); err != nil || !q.Recursive {
			if err != nil {
				return step("remove", name, unix.ENOENT)
			}
			return step("remove", name, os.Remove(name))
		}
		err := os.RemoveAll(name)
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			return step("remove", e.Path, e.Err)
		}
		return err
	})
}

func move(q *proto.Move) error {
	from, err := place(q.From)
	if err != nil {
		return err
	}
	to, err := place(q.To)
	if err != nil {
		return err
	}
	return asUser(func() error {
		if _, err := look(from); err != nil {
			return err
		}
		if err := makeFolders(path.Dir(strings.TrimRight(to, "/"))); err != nil {
			return err
		}
		err := rename(from, to, q.Replace)
		if err == unix.EXDEV {
			err = moveAcross(from, to, q.Replace)
		}
		return step("move "+from+" to", to, err)
	})
}

func rename(from, to string, replace bool) error {
	if replace {
		return unix.Rename(from, to)
	}
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if err != unix.EINVAL && err != unix.ENOSYS {
		return err
	}
	// A file system that cannot promise it.
	if _, err := look(to); err == nil {
		return unix.EEXIST
	}
	return unix.Rename(from, to)
}
