package sandboxes

import (
	"context"
	"errors"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/guest/daemonclient"
	"github.com/atoll-run/atoll/internal/node/disk"
)

// Recipe is what an Engine makes a sandbox from.
type Recipe struct {
	ID          runtime.ID
	Tenant      tenant.ID
	Image       string // name in the image store
	Limits      runtime.Limits
	Disk        int64               // limit of its files in bytes; 0 for none
	Permissions runtime.Permissions // the network's are said with Live.Connect
	Connected   bool                // it has a network device
	Mounts      []storage.Mount     // of its tenant's storage, as it is now
	FromFiles   bool                // there are files of it, which stay if it cannot be made
}

// ErrCheckpoint says that a sandbox cannot be made from its checkpoint: that is
// damaged, or needs another kernel, guest or image than there is now.
var ErrCheckpoint = errors.New("its memory cannot be used")

// Engine makes the named sandboxes of a machine.
type Engine interface {
	// Admit says why a recipe cannot be made on this machine, before anything is
	// recorded.
	Admit(r Recipe) error
	// Create makes a sandbox whose guest daemon answers. Its network is closed until
	// Live.Connect. A failed Create leaves nothing.
	Create(ctx context.Context, r Recipe) (Live, error)
	// Open takes over one that an earlier process made; runtime.ErrNotFound when it
	// does not live. One that was about to fall asleep goes on, or stays frozen.
	Open(ctx context.Context, r Recipe) (Live, error)

	// CheckpointSize is how many bytes of disk a sandbox's checkpoint takes.
	CheckpointSize(id runtime.ID) int64
	// HasCheckpoint reports whether there is a checkpoint to Restore a sandbox from.
	HasCheckpoint(id runtime.ID) bool
	// Restore makes a sandbox from the checkpoint that Live.Checkpoint wrote, or from a
	// copy of it, and tells it its name. If that fails it is asleep as before; ErrCheckpoint says that
	// it always will.
	Restore(ctx context.Context, r Recipe) (Live, error)
	// EndProcesses ends processes that are left of a sandbox that is asleep.
	EndProcesses(ctx context.Context, r Recipe) error
	// DropCheckpoint removes the checkpoint of a sleeping sandbox, which then starts from its
	// files alone.
	DropCheckpoint(ctx context.Context, r Recipe) error
	// PrepareFork begins a copy of a sandbox with what needs neither its files nor its
	// checkpoint. Fork and Restore do the rest, Remove undoes it.
	PrepareFork(ctx context.Context, from runtime.ID, r Recipe) error
	// KeepStandby keeps count standby kernels for the next forks of such a sandbox, for a
	// while.
	KeepStandby(from runtime.ID, r Recipe, count int)
	// Fork makes another sandbox that is asleep from one that is.
	Fork(ctx context.Context, from, to runtime.ID) error
	// ForkFiles makes another sandbox, of files alone, from one that does not run.
	ForkFiles(ctx context.Context, from, to runtime.ID) error
	// FolderCopier reads and copies files of sandboxes with the rights of their programs;
	// more is its More, nil for a caller that only reads.
	FolderCopier(more func(spent int64) (most int64, err error)) (disk.FolderCopier, error)
	// List lists all sandboxes that have files, a checkpoint or processes.
	List(ctx context.Context) ([]runtime.ID, error)
	// Remove ends a sandbox that is not open, and removes its files and checkpoint.
	Remove(ctx context.Context, id runtime.ID) error
}

// Live is a sandbox that runs or is frozen on this machine.
type Live interface {
	// Guest is the client of its guest daemon, which is told to connect again if the
	// connection has ended.
	Guest(ctx context.Context) (*daemonclient.Client, error)
	// CloseGuest closes the connection to the guest daemon, until Guest is called.
	CloseGuest() error
	// Environ is the whole environment of a program, "NAME=value" each, of
	// variables over those of image and operator.
	Environ(variables map[string]string) []string
	// Done is closed when it has ended.
	Done() <-chan struct{}
	Usage(ctx context.Context) (runtime.Usage, error)
	// RelieveMemory ends the largest programs until memory use is below the limit. It does
	// nothing where it is. An error says that no program could be ended, for instance
	// because the guest daemon is of a version that cannot.
	RelieveMemory(ctx context.Context) error
	// FileDescriptors is runtime.FileServed's, 0 without a file server.
	FileDescriptors() (open, limit int, err error)
	// Folder is the host's folder of its files: all that it has on disk.
	Folder() string
	// HostPath is where the folder at a path is on the host, if no name in that is a link;
	// ok is false for what is elsewhere.
	HostPath(path string) (at disk.Place, ok bool)
	// Measure returns how much of the disk it takes, files included that have no name
	// any more and are open. It stops with disk.ErrOverLimit beyond most.
	Measure(ctx context.Context, most int64) (used int64, err error)

	// SetNetwork puts a network policy into force, at once and for connections there
	// are, and gives requests these secrets. It fails for a sandbox without a device
	// unless the policy is blocked.
	SetNetwork(p runtime.NetworkPolicy, secrets []execution.BoundSecret) error
	// Traffic is its network traffic since the last call.
	Traffic() execution.Traffic

	// Refusals returns up to execution.MaxRefusals connections that the network policy refused
	// since a time, newest first. It reports the same refusal again after
	// execution.RefusalAgain. Traffic does not clear refusals.
	Refusals(since time.Time) []execution.Refusal

	// Freeze stops it where it is, Thaw has it go on: see runtime.Instance.
	Freeze(ctx context.Context) error
	Thaw(ctx context.Context) error
	// Checkpoint closes the connection to the guest daemon, stops the sandbox, frozen or
	// not, and writes its checkpoint beside its files. Resume then has it go on, and
	// drops the checkpoint; EndProcesses ends it, and it is asleep. One whose checkpoint
	// cannot be written goes on: a *runtime.SaveError says why.
	Checkpoint(ctx context.Context) error
	Resume(ctx context.Context) error
	EndProcesses(ctx context.Context) error

	// Detach lets go of it; Open finds it again.
	Detach() error
	// Destroy ends it and removes its files and checkpoint.
	Destroy(ctx context.Context) error
}
