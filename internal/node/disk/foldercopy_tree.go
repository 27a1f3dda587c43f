package disk

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// carrying is a copy that is being made, on a thread of its own.
type folderCopy struct {
	FolderCopier
	ctx    context.Context
	device uint64 // of what is copied
	root   int    // the copy
	at     []string
	piece  []byte
	lists  [][]byte // a buffer for each depth
	names  map[uint64]first
	files  int64
	bytes  int64
	spent  int64
	most   int64 // that may be spent
}

// first is the first copy of a file with several names.
type first struct{ folder, name string }

// between opens both ends.
func (m *folderCopy) between(from, to Place, name string) error {
	source, err := unix.Open(from.Root, openDir, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: from.Root, Err: err}
	}
	defer unix.Close(source)
	into, err := unix.Open(to.Root, openDir, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: to.Root, Err: err}
	}
	defer unix.Close(into)
	// What is copied into is closed to the user, in whose hands the copy itself is.
	folder, err := descend(into, to.Path)
	if err != nil {
		return err
	}
	defer unix.Close(folder)
	return m.tree(source, from.Path, folder, name)
}

// tree copies a folder.
func (m *folderCopy) tree(source int, path string, folder int, name string) (err error) {
	if err := unix.Mkdirat(folder, name, 0o700); err != nil {
		return fmt.Errorf("make folder %s: %w", name, err)
	}
	if m.root, err = unix.Openat(folder, name, openDir, 0); err != nil {
		return fmt.Errorf("open folder %s: %w", name, err)
	}
	defer unix.Close(m.root)
	if err := unix.Fchown(m.root, m.UID, m.GID); err != nil {
		return err
	}
	if err := become(m.UID, m.GID); err != nil {
		return err
	}
	top, err := descend(source, path)
	if err != nil {
		return err
	}
	defer unix.Close(top)
	var st unix.Stat_t
	if err := unix.Fstat(top, &st); err != nil {
		return err
	}
	m.device = st.Dev
	return m.folder(top, m.root, &st)
}

// where is the path of a name that is being copied.
func (m *folderCopy) where(name string) string {
	return strings.Join(append(m.at[:len(m.at):len(m.at)], name), "/")
}

// folder copies what is in a folder, and then how it is.
func (m *folderCopy) folder(from, to int, st *unix.Stat_t) error {
	if len(m.at) >= maxCopyDepth {
		return fmt.Errorf("%w: folders are too deep in each other", ErrUnsupported)
	}
	m.files++
	if err := m.spend(blockBytes + entryBytes); err != nil {
		return err
	}
	if len(m.lists) <= len(m.at) {
		m.lists = append(m.lists, make([]byte, 32<<10))
	}
	list := m.lists[len(m.at)]
	for {
		n, err := unix.ReadDirent(from, list)
		if err != nil {
			return fmt.Errorf("list %s: %w", m.where(""), err)
		}
		if n <= 0 {
			return copyAttributes(to, st)
		}
		for rest := list[:n]; len(rest) > 0; {
			var name string
			var kind uint8
			name, kind, rest = nextEntry(rest)
			if name == "." || name == ".." {
				continue
			}
			if err := context.Cause(m.ctx); err != nil {
				return err
			}
			if err := m.entry(from, to, name, kind); err != nil {
				return err
			}
		}
	}
}

// nextEntry takes one from a list of the kernel's.
func nextEntry(list []byte) (name string, kind uint8, rest []byte) {
	const head = 19
	size := binary.NativeEndian.Uint16(list[16:])
	name, _, _ = strings.Cut(string(list[head:size]), "\x00")
	return name, list[18], list[size:]
}

// entry copies what has a name.
func (m *folderCopy) entry(from, to int, name string, kind uint8) error {
	if kind != unix.DT_REG && kind != unix.DT_DIR && kind != unix.DT_UNKNOWN {
		return m.special(from, to, name)
	}
	fd, err := unix.Openat(from, name, openAny, 0)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil // it has gone meanwhile
	case errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO):
		return m.special(from, to, name) // a link, or a socket
	case err != nil:
		return m.failed("open", name, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return m.failed("look at", name, err)
	}
	switch {
	case st.Dev != m.device:
		return fmt.Errorf("%w: %s is on another file system", ErrUnsupported, m.where(name))
	case st.Mode&unix.S_IFMT == unix.S_IFREG:
		return m.failed("copy", name, m.file(fd, to, name, &st))
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return m.special(from, to, name)
	}
	if err := unix.Mkdirat(to, name, 0o700); err != nil {
		return m.failed("make folder", name, err)
	}
	copied, err := unix.Openat(to, name, openDir, 0)
	if err != nil {
		return m.failed("open folder", name, err)
	}
	defer unix.Close(copied)
	m.at = append(m.at, name)
	defer func() { m.at = m.at[:len(m.at)-1] }()
	return m.folder(fd, copied, &st)
}

func (m *folderCopy) failed(what, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", what, m.where(name), err)
}

// special copies links and pipes. Sockets and devices mean nothing elsewhere.
func (m *folderCopy) special(from, to int, name string) error {
	var st unix.Stat_t
	err := unix.Fstatat(from, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return m.failed("look at", name, err)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		n, e := unix.Readlinkat(from, name, m.piece[:unix.PathMax])
		if errors.Is(e, unix.EINVAL) {
			return m.changing(name)
		}
		if err = e; err == nil {
			err = unix.Symlinkat(string(m.piece[:n]), to, name)
		}
	case unix.S_IFIFO:
		err = unix.Mknodat(to, name, unix.S_IFIFO|st.Mode&0o777, 0)
	case unix.S_IFREG, unix.S_IFDIR:
		return m.changing(name)
	default:
		return nil
	}
	if err == nil {
		err = unix.UtimesNanoAt(to, name, []unix.Timespec{st.Mtim, st.Mtim}, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err != nil {
		return m.failed("copy", name, err)
	}
	m.files++
	return m.spend(blockBytes + entryBytes)
}

func (m *folderCopy) changing(name string) error {
	return fmt.Errorf("%w: %s is one thing and then another", ErrUnsupported, m.where(name))
}

// copyAttributes gives a copy mode and time of its original.
func copyAttributes(fd int, st *unix.Stat_t) error {
	if err := unix.Fchmod(fd, st.Mode&0o7777); err != nil {
		return err
	}
	both := [2]unix.Timespec{st.Mtim, st.Mtim}
	// futimens(3), which package unix has only by way of /proc.
	if _, _, e := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(fd), 0, uintptr(unsafe.Pointer(&both)), 0, 0, 0); e != 0 {
		return e
	}
	return nil
}
