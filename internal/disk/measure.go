package disk

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"
)

// ErrMore says that a folder takes more than was asked about.
var ErrMore = errors.New("the folder takes more")

// entryBytes is what an entry counts for beside its blocks: its name and inode
// take room too.
const entryBytes = 256

// Measure returns how much of the disk a folder takes, with all below it on its
// file system; a file with several names counts for each. It stops with ErrMore
// beyond most. Others may change the folder meanwhile, with the worst intent: no
// link is followed, and nothing but folders is opened, one at a time.
func Measure(ctx context.Context, dir string, most int64) (used int64, err error) {
	root, err := unix.Open(dir, openDir, 0)
	if err != nil {
		return 0, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(root, &st); err != nil {
		unix.Close(root)
		return 0, err
	}
	m := measuring{ctx: ctx, device: st.Dev, most: most, buf: make([]byte, 32<<10)}
	err = m.folder(root, 0)
	return m.used, err
}

const openDir = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// deepest is how many folders in each other are looked into; each is an open file.
const deepest = 4096

type measuring struct {
	ctx    context.Context
	device uint64
	most   int64
	used   int64
	buf    []byte
}

// folder adds up an open folder, and closes it.
func (m *measuring) folder(fd, depth int) error {
	defer unix.Close(fd)
	if depth > deepest {
		m.used = m.most + 1
		return ErrMore // nobody needs that
	}
	var folders []string
	for {
		if err := context.Cause(m.ctx); err != nil {
			return err
		}
		n, err := unix.ReadDirent(fd, m.buf)
		if err != nil {
			return err
		}
		if n <= 0 {
			break
		}
		_, _, names := unix.ParseDirent(m.buf[:n], -1, nil)
		for _, name := range names {
			var st unix.Stat_t
			if unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || st.Dev != m.device {
				continue // it was removed
			}
			if m.used += st.Blocks*512 + entryBytes; m.used > m.most {
				return ErrMore
			}
			if st.Mode&unix.S_IFMT == unix.S_IFDIR {
				folders = append(folders, name)
			}
		}
	}
	for _, name := range folders {
		sub, err := unix.Openat(fd, name, openDir, 0)
		if err != nil {
			continue // it is another thing by now
		}
		if err := m.folder(sub, depth+1); err != nil {
			return err
		}
	}
	return nil
}
