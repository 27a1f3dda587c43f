package run

import (
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
)

var (
	// ErrNotFound is returned if the tenant has no such run.
	ErrNotFound = fault.New(fault.NotFound, "run not found")
	// ErrEmpty rejects a run without an id or a first entry.
	ErrEmpty = fault.New(fault.Invalid, "a run has an id and a first entry")
	// ErrParentEnded rejects the run of a handoff if the delegating run has ended.
	ErrParentEnded = fault.New(fault.Conflict, "the run that hands work on has ended")
	// ErrEnded rejects cancelling a run that has ended.
	ErrEnded = fault.New(fault.Conflict, "the run has ended")
	// ErrNotEnded rejects deleting a run that has not ended.
	ErrNotEnded = fault.New(fault.Conflict, "the run has not ended; cancel it first")
)

// TooMany rejects a run if the tenant has n, the limit. The error wraps cause.
func TooMany(n int, cause error) error {
	f := fault.Limit("responses", time.Time{}, "%d responses of this tenant are in progress, which is the limit; wait for one to end, or cancel one", n)
	f.Err = cause
	return f
}
