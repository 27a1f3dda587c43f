package home

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// ErrCorrupt says that stored data is not what was saved: it was changed, cut
// off, exchanged or removed, or it was saved with another key.
var ErrCorrupt = errors.New("stored data of a thread is damaged")

// corrupt describes damage to the operator; the caller learns that it is there.
func corrupt(format string, args ...any) error {
	return fault.Wrap(fault.Internal, fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...)),
		"the stored files of this thread are damaged and were not used; delete the thread or restore a backup")
}

// hostError is a failed operation on a home's files on this host.
func hostError(verb, name string, err error) error {
	wrapped := fmt.Errorf("%s %q: %w", verb, name, err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return fault.Wrap(fault.Unavailable, wrapped, "the server is low on disk space; nothing was changed. Retry later")
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE), errors.Is(err, unix.ENOMEM):
		return fault.Wrap(fault.Unavailable, wrapped, "the server is short of memory or open files; nothing was changed. Retry later")
	}
	return wrapped
}

// ErrChanged says that a program wrote to a home while it was saved.
var ErrChanged = fault.New(fault.Conflict, "the home directory was changed while it was saved; nothing was saved")

// errTooLarge says that a home cannot be described.
var errTooLarge = fault.New(fault.Exhausted, "a file of the home directory has more than 256 GiB of data; nothing was saved")

// errXattrs says that an entry of a home cannot be described.
var errXattrs = fault.New(fault.Exhausted, "a file or folder of the home directory has more than 64 KiB of extended attributes; nothing was saved")

// errTooDeep says that a home cannot be walked.
var errTooDeep = fault.New(fault.Exhausted, "the home directory has more than 4,096 folders in each other; nothing was saved")
