package guestinit

import (
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/proctree"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

// diskFull reports whether one of the file systems that programs write to has
// room for no more data, or no more files.
func diskFull() bool {
	for _, path := range []string{"/", wire.Home, "/tmp", "/dev/shm"} {
		var st unix.Statfs_t
		if unix.Statfs(path, &st) != nil || st.Blocks == 0 {
			continue
		}
		if st.Bavail == 0 || st.Files > 0 && st.Ffree == 0 {
			return true
		}
	}
	return false
}

// tasksFull reports whether the unprivileged user has as many processes and
// threads as it may have, give or take the one that has just ended.
func tasksFull(limit uint64) bool {
	if limit == 0 {
		return false
	}
	var tasks uint64
	for _, name := range proctree.Processes() {
		if pid, err := strconv.Atoi(name); err != nil || pid == 1 {
			continue
		}
		var st unix.Stat_t
		if unix.Stat("/proc/"+name+"/task", &st) == nil && st.Nlink > 2 {
			tasks += uint64(st.Nlink) - 2 //nolint:unconvert // a uint32 on arm64
		}
	}
	return tasks+2 >= limit
}
