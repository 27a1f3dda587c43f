package thread

import (
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// ErrNotFound is returned if the tenant has no such thread.
var ErrNotFound = fault.New(fault.NotFound, "thread not found")

// ErrRunning rejects an execution on a machine where another one uses the thread.
var ErrRunning = fault.New(fault.Conflict, "another execution is using this thread")

// ErrLeaseLost says that an edit no longer holds its thread.
var ErrLeaseLost = fault.New(fault.Conflict, "the edit took too long and lost its hold on the thread; nothing was changed, try again")

// InUse rejects an execution or edit of a thread in use.
func InUse(id string) error {
	return fault.New(fault.Conflict, "thread %q is in use: one execution or edit of a thread at a time; try again when it has ended", id)
}

// TooMany rejects a thread above the plan's limit.
func TooMany(limit int) error {
	return fault.Limit("threads", time.Time{}, "thread limit reached (%d). Delete threads that you do not need, or ask the operator to raise the plan's limit.", limit)
}
