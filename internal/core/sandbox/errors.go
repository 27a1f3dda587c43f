package sandbox

import (
	"errors"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
)

// ErrNotFound is returned by a Store for an unknown sandbox.
var ErrNotFound = fault.New(fault.NotFound, "sandbox not found")

// ErrOtherExecutor is returned to an executor that changes the record of another executor's sandbox.
var ErrOtherExecutor = fault.New(fault.Forbidden, "the sandbox belongs to another executor")

// Unknown is returned to callers for a sandbox that does not exist or is not theirs.
func Unknown(name string) error { return fault.New(fault.NotFound, "there is no sandbox %q", name) }

// ErrNoValidKey is returned for a sandbox without a valid key.
var ErrNoValidKey = fault.New(fault.Unauthorized, "every key that has used this sandbox has been revoked or may no longer work in its environment")

// ErrMayHaveRun marks an Unavailable fault for a call to another machine whose outcome is unknown,
// because the connection ended before the answer. Without the mark, the call had no effect.
var ErrMayHaveRun = errors.New("the call may have run")

var errNoEnvironment = fault.New(fault.Forbidden, "this key has no environment, so it has no sandboxes")

// TooMany rejects a sandbox if the tenant has n, the plan's limit.
func TooMany(n, limit int) error {
	return fault.Limit("sandboxes", time.Time{}, "sandbox limit reached (%d of %d, sleeping and lost ones included). Destroy one that you do not need, or ask the operator to raise the plan's limit.", n, limit)
}

// TooMuchMemory rejects a sandbox with more bytes if the tenant uses used of limit bytes.
func TooMuchMemory(used, limit, more int64) error {
	return fault.Limit("sandbox_memory", time.Time{}, "sandbox memory limit reached (%s of %s in use, and this one has %s). Destroy a sandbox, let one sleep, or ask the operator to raise the plan's limit.",
		runtime.FormatBytes(used), runtime.FormatBytes(limit), runtime.FormatBytes(more))
}

var (
	// ErrNoSnapshot is returned if the tenant has no such snapshot.
	ErrNoSnapshot = fault.New(fault.NotFound, "snapshot not found")
	// ErrSnapshotGivenUp rejects a snapshot whose record was deleted while it was made.
	ErrSnapshotGivenUp = fault.New(fault.Conflict, "the snapshot was given up while it was being made")
)

// TooManySnapshots rejects a snapshot if the tenant has n, the plan's limit.
func TooManySnapshots(n, limit int) error {
	return fault.Limit("snapshots", time.Time{}, "snapshot limit reached (%d of %d). Delete one that you do not need, or ask the operator to raise the plan's limit.", n, limit)
}

// SnapshotsTooLarge rejects a snapshot of more bytes if the tenant stores used of limit bytes.
func SnapshotsTooLarge(used, limit, more int64) error {
	return fault.Limit("snapshot_size", time.Time{}, "snapshot size limit reached (%s of %s in use, and this one has %s). Delete one that you do not need, or ask the operator to raise the plan's limit.",
		runtime.FormatBytes(used), runtime.FormatBytes(limit), runtime.FormatBytes(more))
}
