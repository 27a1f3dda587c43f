package disk

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// ErrOverLimit says that a folder takes more than was asked about.
var ErrOverLimit = errors.New("the folder takes more")

// entryBytes is what an entry counts for beside its blocks: its name and inode
// take room too.
const entryBytes = 256

// Measure returns how much of the disk a folder takes, with all below it on its
// file system; a file with several names counts for each. It stops with ErrOverLimit
// beyond most. Others may change the folder meanwhile, with the worst intent: no
// link is followed, nothing but folders is opened, and no depth of them takes more
// descriptors than some dozens.
func Measure(ctx context.Context, dir string, most int64) (used int64, err error) {
	root, err := unix.Open(dir, openDir, 0)
	if err != nil {
		return 0, err
	}
	m := measurement{ctx: ctx, most: most, buf: make([]byte, 32<<10)}
	defer m.close()
	if err := m.enter(root, ""); err != nil {
		return m.used, err
	}
	for len(m.path) > 0 {
		if err := m.step(); err != nil {
			return m.used, err
		}
	}
	return m.used, nil
}

const openDir = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

const (
	// keptOpen is how many folders in each other are open at a time, beside the last.
	// Below them the way up is by "..".
	keptOpen = 64
	// maxMoves is how many folders may be moved away from around the measuring.
	// Only a program that works against it moves that many.
	maxMoves = 100
)

// measurement is on its way through a folder.
type measurement struct {
	ctx    context.Context
	device uint64
	most   int64
	used   int64
	moved  int
	path   []level // from the root to where it is
	buf    []byte
}

// level is a folder on the way.
type level struct {
	fd   int // -1 for one that is to be come back to by ".."
	name string
	ino  uint64
	next []string // folders in it that were not looked into yet
}

func (m *measurement) close() {
	for _, l := range m.path {
		if l.fd >= 0 {
			unix.Close(l.fd)
		}
	}
}

// enter adds up an open folder's entries and makes it the last of the path.
func (m *measurement) enter(fd int, name string) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return err
	}
	if len(m.path) == 0 {
		m.device = st.Dev
	}
	if n := len(m.path); n > keptOpen {
		unix.Close(m.path[n-1].fd)
		m.path[n-1].fd = -1
	}
	m.path = append(m.path, level{fd: fd, name: name, ino: st.Ino})
	l := &m.path[len(m.path)-1]
	for {
		if err := context.Cause(m.ctx); err != nil {
			return err
		}
		n, err := unix.ReadDirent(fd, m.buf)
		if err != nil || n <= 0 {
			return err
		}
		_, _, names := unix.ParseDirent(m.buf[:n], -1, nil)
		for _, name := range names {
			var st unix.Stat_t
			if unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || st.Dev != m.device {
				continue // it was removed
			}
			if m.used += st.Blocks*512 + entryBytes; m.used > m.most {
				return ErrOverLimit
			}
			if st.Mode&unix.S_IFMT == unix.S_IFDIR {
				l.next = append(l.next, name)
			}
		}
	}
}

// step enters the next folder, or goes back up from one that has no more.
func (m *measurement) step() error {
	l := &m.path[len(m.path)-1]
	if len(l.next) == 0 {
		return m.leave()
	}
	name := l.next[0]
	l.next = l.next[1:]
	sub, err := unix.Openat(l.fd, name, openDir, 0)
	if err != nil {
		return nil //nolint:nilerr // it is another thing by now
	}
	return m.enter(sub, name)
}

// leave goes to the folder that the last one is in.
func (m *measurement) leave() error {
	if err := context.Cause(m.ctx); err != nil {
		return err
	}
	last := m.path[len(m.path)-1]
	defer unix.Close(last.fd)
	m.path = m.path[:len(m.path)-1]
	if n := len(m.path); n == 0 || m.path[n-1].fd >= 0 {
		return nil
	}
	above := &m.path[len(m.path)-1]
	if fd, ok := m.open(last.fd, "..", above.ino); ok {
		above.fd = fd
		return nil
	}
	return m.descend()
}

// open opens a folder, if it is the one that it should be.
func (m *measurement) open(at int, name string, ino uint64) (fd int, ok bool) {
	fd, err := unix.Openat(at, name, openDir, 0)
	if err != nil {
		return -1, false
	}
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Dev != m.device || st.Ino != ino {
		unix.Close(fd)
		return -1, false
	}
	return fd, true
}

// descend finds the way again after a folder was moved away from around it: down
// the path from the last that is open, as far as that still leads.
func (m *measurement) descend() error {
	if m.moved++; m.moved > maxMoves {
		return fmt.Errorf("%w than could be measured: its folders are being moved all the time", ErrOverLimit)
	}
	for i := keptOpen; i < len(m.path); i++ {
		above := &m.path[i-1]
		fd, ok := m.open(above.fd, m.path[i].name, m.path[i].ino)
		if !ok {
			m.path = m.path[:i] // above is what is left of it
			return nil
		}
		if i > keptOpen {
			unix.Close(above.fd)
			above.fd = -1
		}
		m.path[i].fd = fd
	}
	return nil
}
