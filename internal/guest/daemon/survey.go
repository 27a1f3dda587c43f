package daemon

import (
	"encoding/binary"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/proto"
)

// survey counts what a folder has below it that the kernel of the sandbox has alone,
// and the host does not see: pipes with a name. It stops with the first.
func (c *peer) survey(q *proto.Path) bool {
	s := &surveyor{}
	stop := c.watchOut(func() { s.gone.Store(true) })
	err := s.survey(q)
	stop()
	return c.reply(proto.Reply{Count: s.found}, err)
}

func (s *surveyor) survey(q *proto.Path) error {
	name, err := place(q.Path)
	if err != nil {
		return err
	}
	return asUser(func() error {
		fd, err := unix.Open(name, folderFlags, 0)
		if err != nil {
			return step("open", name, err)
		}
		return step("list", name, s.folder(fd, 0))
	})
}

// surveyor works as the user.
type surveyor struct {
	found int64
	lists [][]byte    // a buffer for each depth
	gone  atomic.Bool // the host does not wait for the answer any more
}

// folder looks through a folder, which it closes. Those that are too deep are
// counted, since their content is not known.
func (s *surveyor) folder(fd, depth int) error {
	defer unix.Close(fd)
	if depth > maxDepth {
		s.found++
		return nil
	}
	if len(s.lists) <= depth {
		s.lists = append(s.lists, make([]byte, 32<<10))
	}
	list := s.lists[depth]
	for s.found == 0 && !s.gone.Load() {
		n, err := unix.ReadDirent(fd, list)
		if err != nil || n <= 0 {
			return err
		}
		for rest := list[:n]; len(rest) > 0; {
			entry := rest[:binary.NativeEndian.Uint16(rest[16:])]
			rest = rest[len(entry):]
			switch name := unix.ByteSliceToString(entry[19:]); entry[18] {
			case unix.DT_FIFO, unix.DT_UNKNOWN:
				s.found++
				return nil
			case unix.DT_DIR:
				if name == "." || name == ".." {
					continue
				}
				below, err := unix.Openat(fd, name, folderFlags|unix.O_NOFOLLOW, 0)
				if err == unix.ENOENT {
					continue
				}
				if err != nil {
					return err
				}
				if err := s.folder(below, depth+1); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
