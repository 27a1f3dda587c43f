package disk

import (
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// sizeAttribute is what gVisor's file server reads: see runsc/patch/disksize.go.txt.
const sizeAttribute = "user.atoll.disk_size"

// SetSize says how many bytes a sandbox may take of the disk, 0 for no bound, at a folder that
// it mounts. Its programs are told that by statfs(2), which otherwise tells of the host's whole
// disk, and what all folders with a size take together. A file system without extended
// attributes leaves it at that.
func SetSize(dir string, bytes int64) error {
	err := unix.Lsetxattr(dir, sizeAttribute, strconv.AppendInt(nil, bytes, 10), 0)
	if err == nil || errors.Is(err, unix.ENOTSUP) {
		return nil
	}
	return fmt.Errorf("note the size of the disk at %s: %w", dir, err)
}
