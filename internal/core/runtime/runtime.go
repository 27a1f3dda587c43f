package runtime

import (
	"context"
	"os"
)

// SaveError says why a sandbox's state cannot be saved at the moment.
type SaveError struct{ Reason string }

// Error implements error.
func (e *SaveError) Error() string { return "the sandbox's state cannot be saved: " + e.Reason }

// Runtime creates sandboxes. It owns its state directory; two Runtimes on one directory corrupt it.
// It is safe for concurrent use.
type Runtime interface {
	// Name is the runtime's name in logs and metrics, such as "gvisor".
	Name() string

	// Create creates a sandbox with the guest as process 1 and returns when the guest's channel is
	// open. If it fails, it cleans up.
	Create(ctx context.Context, spec Spec) (Instance, error)

	// Restore creates a sandbox from the checkpoint in directory dir, which may be restored any
	// number of times. The spec must have the checkpoint's Rootfs and Limits. Its mounts must have
	// the same targets, each with the files that were open there. If the checkpoint had a network,
	// the spec needs one with the same configuration; its connections are reset. dir must exist
	// until Restore returns.
	//
	// With share, sandboxes restored from one checkpoint share memory: pages stay in the checkpoint
	// file, and a program's first write to a page copies it, which is slower. This saves memory
	// while they wait.
	Restore(ctx context.Context, spec Spec, dir string, share bool) (Instance, error)

	// Prepare does the part of Restore that does not need the checkpoint, so that it can run before
	// the checkpoint is written or verified.
	Prepare(ctx context.Context, spec Spec) (Prepared, error)

	// Open opens a running sandbox that this or an earlier process created. It returns ErrNotFound
	// if the sandbox does not exist or has died.
	Open(ctx context.Context, id ID) (Instance, error)

	// List returns every sandbox in the state directory, including dead ones.
	List(ctx context.Context) ([]Info, error)

	// Kill ends all processes of a sandbox, including its file server, and leaves the rest to
	// Destroy. When it returns, no process of the sandbox writes to its mounts. It is idempotent.
	Kill(ctx context.Context, id ID) error

	// Destroy ends a sandbox and deletes its processes, mounts, cgroups and files. It is idempotent
	// and also cleans up after a crash.
	Destroy(ctx context.Context, id ID) error
}

// Prepared is a sandbox that waits for its state. Callers must call Restore or Destroy exactly
// once. If the process that prepared it dies, Runtime.Destroy deletes it.
type Prepared interface {
	// Become gives the prepared sandbox another ID and other source directories for the same mount
	// targets. Callers may call it once, before Restore; if it fails, call Destroy. Until Restore
	// succeeds, host resources keep the original ID.
	Become(id ID, mounts []Mount) error
	// Restore completes Runtime.Restore. If it fails, it destroys the sandbox. A non-nil whole
	// verifies the checkpoint in dir concurrently: no program runs before whole has returned nil.
	Restore(ctx context.Context, dir string, whole func() error) (Instance, error)
	Destroy(ctx context.Context) error
}

// Info describes a sandbox in a runtime's state directory.
type Info struct {
	ID     ID
	Labels map[string]string
	Alive  bool
}

// Instance is a running sandbox.
type Instance interface {
	ID() ID

	// Channel returns the host's ends of the guest's FIFOs. The Instance owns them and closes them
	// on Detach and Destroy.
	Channel() Channel

	// Namespace returns the path of the sandbox's network namespace, valid while the sandbox runs.
	Namespace() string

	// Done is closed when the sandbox has exited or was destroyed.
	Done() <-chan struct{}

	// Usage reads the sandbox's resource usage. After the sandbox has ended, it returns the last
	// known values.
	Usage(ctx context.Context) (Usage, error)

	// Holders returns the host processes that keep the sandbox's open files on mounts open; empty
	// without mounts.
	Holders() ([]int, error)

	// Freeze pauses the sandbox with its kernel. A frozen sandbox uses no CPU, keeps its memory and
	// answers no calls, while its clocks advance. Thaw resumes it, also in a later process; Kill
	// and Destroy still end it. Freeze and Thaw are idempotent.
	Freeze(ctx context.Context) error
	Thaw(ctx context.Context) error

	// Checkpoint writes the sandbox's memory and in-memory files to the empty directory dir,
	// without the contents of mounts. Its programs stay paused, so that the caller can copy mounts
	// in a consistent state. Resume continues them, also in a later process, and Destroy ends them;
	// make no other call until then. With a *SaveError the sandbox cannot be saved and keeps
	// running.
	Checkpoint(ctx context.Context, dir string) error
	Resume(ctx context.Context) error

	// Detach releases the sandbox without ending it. Open finds it again.
	Detach() error

	// Destroy is Runtime.Destroy for this sandbox.
	Destroy(ctx context.Context) error
}

// FileServed is an Instance whose files a host process serves.
type FileServed interface {
	// FileDescriptors returns how many descriptors that process has open, and its limit. At the
	// limit every path on a mount fails with EMFILE. Counts far below the limit are estimates. Both
	// are 0 without a file server.
	FileDescriptors() (open, limit int, err error)
}

// MemoryWatcher is an Instance whose host reports when its memory is nearly used up.
type MemoryWatcher interface {
	// WatchMemory starts a watch near the sandbox's memory limit. It returns errors.ErrUnsupported
	// if the host does not report memory use.
	WatchMemory() (MemoryWatch, error)
}

// MemoryWatch reports changes of a sandbox's memory use near its limit. Usage includes the page
// cache, so a report does not always mean that memory is exhausted.
type MemoryWatch interface {
	// Wait blocks until the next change. It returns an error after Close.
	Wait() error
	// Close ends the watch and unblocks Wait.
	Close() error
}

// Channel is the pair of FIFOs between host and guest. The host opens them read-write, so that
// neither end sees EOF when the other restarts.
type Channel struct {
	ToGuest   *os.File // the guest's stdin
	FromGuest *os.File // the guest's stdout
}
