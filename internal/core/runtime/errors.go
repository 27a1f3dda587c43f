package runtime

import (
	"errors"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// ErrNotFound says that the runtime has no sandbox with the ID.
var ErrNotFound = errors.New("sandbox not found")

// ErrUnsupported says that the runtime does not support the operation. The wrapping error says why
// and what would help.
var ErrUnsupported = errors.New("not supported by this runtime")

// ErrNoNetwork rejects a network for a sandbox that was created without one.
var ErrNoNetwork = fault.New(fault.Conflict, "this sandbox was made without a network, and cannot be given one; make another")

// NotConnected says that a sandbox did not get its network.
func NotConnected(err error) error {
	return fault.Wrap(fault.Unavailable, err, "the sandbox could not be connected to the network; nothing was run. Retry in a few seconds")
}

// Unenforceable says that the runtime cannot enforce an environment's permissions.
func Unenforceable(err error) error {
	return fault.Wrap(fault.Unavailable, err, "the permissions of this environment cannot be enforced on this server: "+err.Error())
}
