package thread

import (
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
)

// Check refuses a home that is over the quota, and says by how much.
func (q Quota) Check(bytes, files int64) error {
	switch {
	case q.Bytes > 0 && bytes > q.Bytes:
		return fault.Limit("thread_bytes", time.Time{}, "the home directory has %s of files, %s more than the %s a thread may have; delete some",
			runtime.FormatBytes(bytes), runtime.FormatBytes(bytes-q.Bytes), runtime.FormatBytes(q.Bytes))
	case q.Files > 0 && files > q.Files:
		return fault.Limit("thread_files", time.Time{}, "the home directory has %d files and folders, %d more than the %d a thread may have; delete some",
			files, files-q.Files, q.Files)
	}
	return nil
}
