package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/node/cleanup"
	"github.com/atoll-run/atoll/internal/node/executor"
	"github.com/atoll-run/atoll/internal/node/warm"
)

// Folders opens folders of managed volumes.
type Folders interface {
	Open(tenant, connection string, p storage.Path, make bool) (*os.File, error)
}

// mountsDir is the folder, in a process's own on disk, of what its sandboxes
// mount: one folder a sandbox and in it one a connection, which is mounted on.
const mountsDir = "mounts"

func (h *host) mounts(id runtime.ID) string { return filepath.Join(h.disk, mountsDir, string(id)) }

// mount prepares what of a tenant's storage is to be seen in the sandbox id. What a
// program does to the volume meanwhile leads nowhere else: the folder that was
// opened is the one that is mounted.
func (e *Engine) mount(ctx context.Context, id runtime.ID, tenant string, mounts []storage.Mount) (_ []runtime.Mount, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, e.host.unmount(id))
		}
	}()
	out := make([]runtime.Mount, 0, len(mounts))
	if !e.cfg.mounts() {
		return nil, errNoMounts
	}
	for i := range mounts {
		m := &mounts[i]
		source := filepath.Join(e.host.mounts(id), m.Slug)
		if err := os.MkdirAll(source, 0o711); err != nil {
			return nil, err
		}
		if e.cfg.Buckets.Has(m.Kind) {
			err = e.mountBucket(ctx, id, tenant, m, source)
		} else {
			err = e.mountVolume(tenant, m, source)
		}
		if err != nil {
			return nil, fmt.Errorf("mount %s: %w", m.Slug, err)
		}
		out = append(out, runtime.Mount{Source: source, Target: m.Folder(), Writable: !m.ReadOnly})
	}
	return out, nil
}

// mounts reports whether anything can be mounted.
func (c *Config) mounts() bool { return c.Volumes != nil || c.Buckets.Volumes != nil }

var errNoMounts = fault.New(fault.Invalid, "this server cannot mount connections: 'atoll doctor' says what it lacks")

func (e *Engine) mountVolume(tenant string, m *storage.Mount, source string) error {
	folder, err := e.cfg.Volumes.Open(tenant, m.Connection, m.Path, !m.ReadOnly)
	if err != nil {
		return err
	}
	return errors.Join(bind(folder, source, m.ReadOnly), folder.Close())
}

// bind mounts an open folder on another one.
func bind(folder *os.File, on string, readOnly bool) error {
	if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", folder.Fd()), on, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	flags := uintptr(unix.MS_REMOUNT | unix.MS_BIND | unix.MS_NOSUID | unix.MS_NODEV)
	if readOnly {
		flags |= unix.MS_RDONLY
	}
	return unix.Mount("", on, "", flags, "")
}

// unmount undoes mount, also what another process did. What still uses a mount
// keeps it; nothing else can reach it any more.
func (h *host) unmount(id runtime.ID) error {
	return errors.Join(h.drop(id), h.clearMounts(h.mounts(id)))
}

// clearMounts removes a folder of places to mount on, and whatever is mounted
// there.
func (h *host) clearMounts(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		on := filepath.Join(dir, e.Name())
		for err = nil; err == nil; { // it may be mounted on more than once
			err = unix.Unmount(on, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		}
		if !errors.Is(err, unix.EINVAL) { // EINVAL: nothing is mounted there
			errs = append(errs, fmt.Errorf("unmount %s: %w", on, err))
			continue
		}
		errs = append(errs, os.Remove(on)) // and never what is in it
	}
	return errors.Join(append(errs, os.Remove(dir))...)
}

// sweepMounts removes the mounts of sandboxes that ended with an earlier process, except
// those in skip. It returns how many it could not remove.
func (h *host) sweepMounts(ctx context.Context, skip map[runtime.ID]bool) (failed int) {
	return h.sweepEach(ctx, cleanup.Mount, filepath.Join(h.disk, mountsDir), skip, h.unmount)
}

// mountsLate reports whether a job's storage can be mounted in a sandbox that runs.
// Rules about files are put into force while a sandbox is made, on what is mounted then.
func (e *Engine) mountsLate(env *environment, job *execution.Job) bool {
	files := runtime.Permissions{Filesystem: job.Permissions.Filesystem}
	return env.maker.Stores() && !e.early.Load() && files.Equal(runtime.Permissions{})
}

// mountIn mounts a job's storage in a sandbox from the pool.
func (e *Engine) mountIn(ctx context.Context, sb *warm.Sandbox, job *execution.Job) error {
	mounts, err := e.mount(ctx, sb.ID(), job.Tenant, job.Mounts)
	if err != nil {
		return err
	}
	err = sb.Mount(ctx, mounts)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) || errors.Is(err, runtime.ErrUnsupported) {
		return fmt.Errorf("%w: %w", errLate, err)
	}
	return err
}

// errLate says that no sandbox of this machine can have folders mounted while it runs.
var errLate = errors.New("a sandbox that runs cannot mount")

// claimMounted makes a sandbox for a job whose storage has to be mounted as it is made.
func (e *Engine) claimMounted(ctx context.Context, env *environment, job *execution.Job) (_ executor.Claimed, err error) {
	id := runtime.NewID()
	mounts, err := e.mount(ctx, id, job.Tenant, job.Mounts)
	if err != nil {
		return nil, err
	}
	sb, err := env.maker.MakeMounted(ctx, job.Language, job.Thread != nil, id, mounts)
	if err != nil {
		return nil, errors.Join(err, e.host.unmount(id))
	}
	c, err := e.hand(sb, job)
	if err != nil {
		return nil, errors.Join(err, c.Destroy(context.WithoutCancel(ctx)))
	}
	if !e.cfg.Journals {
		return c, nil
	}
	if err := executor.Prepare(c.folder); err != nil {
		return nil, errors.Join(err, c.Destroy(context.WithoutCancel(ctx)))
	}
	return c, nil
}

// Destroy ends the sandbox, and then what it had mounted.
func (c claimed) Destroy(ctx context.Context) error {
	c.ended()
	c.host.abandon(c.ID())
	return errors.Join(c.Sandbox.Destroy(ctx), c.host.unmount(c.ID()))
}
