package runtime

import (
	"context"
	"errors"
	"os"
)

// ErrNotFound says that a runtime has no sandbox of that ID.
var ErrNotFound = errors.New("sandbox not found")

// ErrUnsupported says that a runtime cannot do what was asked at all; the
// wrapping error says why and what would help.
var ErrUnsupported = errors.New("not supported by this runtime")

// SaveError says why the state of a sandbox cannot be written as it is now.
type SaveError struct{ Reason string }

// Error implements error.
func (e *SaveError) Error() string { return "the sandbox's state cannot be saved: " + e.Reason }

// Runtime makes sandboxes. It owns its state folder; two Runtimes on one
// folder corrupt it. All methods may be called concurrently.
type Runtime interface {
	// Name is the runtime's name in logs and metrics, such as "gvisor".
	Name() string

	// Create makes a sandbox whose process 1 is the guest and returns when the
	// guest's channel is open. A failed Create leaves nothing behind.
	Create(ctx context.Context, spec Spec) (Instance, error)

	// Restore makes a sandbox from what Checkpoint wrote to folder dir, as often
	// as wanted. The spec must have the Rootfs and Limits of the checkpointed one
	// and mounts on the same targets, each with the files that were open there; a
	// network if that had one, another of the same configuration. Connections
	// through it are then reset. The folder is needed until Restore returns. Sandboxes
	// that share the memory of their programs take less for as long as they wait: it
	// stays in the file that all of them were restored from, and what a program writes is
	// copied when it does, which takes it longer.
	Restore(ctx context.Context, spec Spec, dir string, share bool) (Instance, error)

	// Prepare does what of Restore takes no checkpoint, for one that is not written
	// or looked at yet.
	Prepare(ctx context.Context, spec Spec) (Prepared, error)

	// Open takes over a living sandbox that this or an earlier process made.
	// It fails with ErrNotFound when there is none or it has died.
	Open(ctx context.Context, id ID) (Instance, error)

	// List returns every sandbox in the state folder, dead ones included.
	List(ctx context.Context) ([]Info, error)

	// Kill ends all of a sandbox's processes, its file server's included, and
	// leaves the rest for Destroy: when it returns, no process of it writes to its mounts.
	// It is idempotent.
	Kill(ctx context.Context, id ID) error

	// Destroy ends a sandbox and removes all that belongs to it: processes,
	// mounts, cgroups, files. It is idempotent, and works on what a crash left.
	Destroy(ctx context.Context, id ID) error
}

// Prepared is a sandbox that waits for its state. Restore or Destroy is called, once.
// When its maker has died, Destroy of the Runtime removes it; it does not live.
type Prepared interface {
	// Become has it be another sandbox than it was prepared as: one of another ID,
	// and with other folders mounted on the same targets. It is called once at most,
	// ahead of Restore; if it fails, only Destroy is left. Until Restore has done its
	// work, what there is of it has the ID that it was prepared with.
	Become(id ID, mounts []Mount) error
	// Restore does the rest of Runtime.Restore. One that failed is destroyed.
	// Meanwhile whole, if it is not nil, finds out whether the folder holds what
	// Checkpoint wrote: no program runs before it has said so, or if it fails.
	Restore(ctx context.Context, dir string, whole func() error) (Instance, error)
	Destroy(ctx context.Context) error
}

// Info describes a sandbox found in a runtime's state folder.
type Info struct {
	ID     ID
	Labels map[string]string
	Alive  bool
}

// Instance is a living sandbox.
type Instance interface {
	ID() ID

	// Channel returns the host's ends of the guest's FIFOs. The Instance owns
	// them and closes them on Detach and Destroy.
	Channel() Channel

	// Namespace is the path of the network namespace that the sandbox is in, for
	// as long as it lives.
	Namespace() string

	// Done is closed when the sandbox has ended by itself or was destroyed.
	Done() <-chan struct{}

	// Usage reads the sandbox's accounting; after the sandbox has ended it
	// returns the last figures that could be read.
	Usage(ctx context.Context) (Usage, error)

	// Holders are the host's processes that have open what its programs have open
	// of its mounts. There are none without mounts.
	Holders() ([]int, error)

	// Freeze stops all of the sandbox where it is, its kernel too: it costs no
	// processor time, keeps its memory, answers no call, and its clocks run on.
	// Only Thaw has it go on, also in a later process; Kill and Destroy end it all
	// the same. Both may be repeated.
	Freeze(ctx context.Context) error
	Thaw(ctx context.Context) error

	// Checkpoint writes the sandbox's memory and its files in memory to the empty
	// folder dir; what lies on mounts stays there. Its programs are then stopped
	// where that was, so that mounts can be copied as they were: Resume has them
	// go on, also in a later process, Destroy ends them. Nothing else may be
	// asked of it meanwhile. A sandbox that cannot be written, with *SaveError,
	// goes on as if nothing had been asked.
	Checkpoint(ctx context.Context, dir string) error
	Resume(ctx context.Context) error

	// Detach lets go of the sandbox without ending it; Open finds it again.
	Detach() error

	// Destroy is Runtime.Destroy for this sandbox.
	Destroy(ctx context.Context) error
}

// FileServed is an Instance that a process of the host serves files to.
type FileServed interface {
	// FileDescriptors returns how many descriptors that process has open, and how many it
	// may have. At the limit every path of a mount fails with EMFILE. Counts far below the
	// limit are estimates. Both are 0 without a file server.
	FileDescriptors() (open, limit int, err error)
}

// MemoryWatcher is an Instance whose host reports that its memory is nearly used up.
type MemoryWatcher interface {
	// WatchMemory watches from the sandbox's memory limit on; the error is
	// errors.ErrUnsupported where the host does not report it.
	WatchMemory() (MemoryWatch, error)
}

// MemoryWatch reports changes of a sandbox's memory use near its limit. Use includes page
// cache, so that a report need not mean that memory is used up.
type MemoryWatch interface {
	// Wait returns at the next change. It returns an error after Close.
	Wait() error
	// Close ends the watch, and a Wait.
	Close() error
}

// Channel is the pair of FIFOs between host and guest, opened read-write on
// the host side so that neither end sees EOF when the other restarts.
type Channel struct {
	ToGuest   *os.File // the guest's stdin
	FromGuest *os.File // the guest's stdout
}
