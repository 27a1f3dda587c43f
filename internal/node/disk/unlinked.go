package disk

import (
	"context"
	"errors"
	"strconv"

	"golang.org/x/sys/unix"
)

// UnlinkedSize returns how much of the disk files take that have lost their last name, are
// on dir's file system, and are still open in one of some processes, unless they were
// opened through a mount that does not show dir. A process that has ended holds none.
func UnlinkedSize(ctx context.Context, dir string, pids []int) (used int64, err error) {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return 0, err
	}
	seen := map[uint64]bool{}
	buf := make([]byte, 32<<10)
	for _, pid := range pids {
		n, err := unlinkedOf(ctx, &mountView{pid: strconv.Itoa(pid), dir: dir}, st.Dev, seen, buf)
		used += n
		if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ESRCH) {
			return used, err
		}
	}
	return used, nil
}

// unlinkedOf is Held for one process, of those files that were not seen yet.
func unlinkedOf(ctx context.Context, in *mountView, device uint64, seen map[uint64]bool, buf []byte) (used int64, err error) {
	fd, err := unix.Open("/proc/"+in.pid+"/fd", openDir, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	for {
		if err := context.Cause(ctx); err != nil {
			return used, err
		}
		n, err := unix.ReadDirent(fd, buf)
		if err != nil || n <= 0 {
			return used, err
		}
		_, _, names := unix.ParseDirent(buf[:n], -1, nil)
		for _, name := range names {
			var st unix.Stat_t
			if unix.Fstatat(fd, name, &st, 0) != nil || st.Dev != device || st.Nlink > 0 || seen[st.Ino] || !in.has(name) {
				continue // closed, or counted by its name
			}
			seen[st.Ino] = true
			used += st.Blocks*512 + entryBytes
		}
	}
}
