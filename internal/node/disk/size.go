package disk

import (
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// sizeAttribute is the attribute that gVisor's file server reads; see runsc/patch/disksize.go.txt.
const sizeAttribute = "user.atoll.disk_size"

// SetSize records a sandbox's disk limit in bytes, 0 for none, on a folder that it mounts. In the
// sandbox, statfs(2) then reports that limit and the total use of all folders with a size, instead
// of the host's whole disk. SetSize does nothing if the file system lacks extended attributes.
func SetSize(dir string, bytes int64) error {
	err := unix.Lsetxattr(dir, sizeAttribute, strconv.AppendInt(nil, bytes, 10), 0)
	if err == nil || errors.Is(err, unix.ENOTSUP) {
		return nil
	}
	return fmt.Errorf("record the disk limit at %s: %w", dir, err)
}
