package gvisor

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/osthread"
	"github.com/atoll-run/atoll/internal/node/runtime/state"
)

// Become implements runtime.Prepared. The file server has opened nothing yet: it
// does when the kernel is given its memory, and then finds the other folders on
// top of its own. Its name is changed by Restore.
func (p *Prepared) Become(id runtime.ID, mounts []runtime.Mount) error {
	alike := func(a, b runtime.Mount) bool {
		a.Source = b.Source
		return a == b
	}
	if p.spec.Rootfs.Tree != "" && len(mounts) > 0 {
		return fmt.Errorf("%w for a folder as root file system: other mounts than a sandbox was prepared with; use an image", runtime.ErrUnsupported)
	}
	if !id.Valid() || !slices.EqualFunc(p.spec.Mounts, mounts, alike) {
		return fmt.Errorf("%s cannot be %s: it was not prepared as one like it", p.born, id)
	}
	if len(mounts) > 0 {
		server, err := p.runtime.findServer(p.born, p.pid)
		if err == nil {
			err = cover(server, mounts)
		}
		if err != nil {
			return fmt.Errorf("have %s be %s: %w", p.born, id, err)
		}
	}
	p.spec.ID, p.spec.Mounts = id, mounts
	return nil
}

// Mount shows folders of the host in a sandbox that runs, each on an empty folder below
// one of its writable mounts, which the host has made there. They are mounted in the
// namespace of the file server alone, and end with it.
func (i *Instance) Mount(mounts []runtime.Mount) error {
	server, err := i.runtime.findServer(i.born, i.pid)
	if err == nil {
		err = cover(server, mounts)
	}
	if err != nil {
		return fmt.Errorf("mount folders in %s: %w", i.id, err)
	}
	return nil
}

// rename makes what was started as another sandbox's that of the one on record.
func (r *Runtime) rename(rec state.Record) error {
	if err := os.Rename(r.dir.Path(rec.Born, runscDir, socketName(rec.Born)), r.dir.Path(rec.Born, runscDir, socketName(rec.Spec.ID))); err != nil {
		return err
	}
	return r.dir.Rename(rec)
}

// serverRoot is where a file server has the sandbox's mounts in its namespace.
const serverRoot = "/root"

// cover mounts folders on the folders that a file server has at their targets.
func cover(server int, mounts []runtime.Mount) (err error) {
	namespace, err := os.Open(procPath(server, "ns/mnt"))
	if err != nil {
		return err
	}
	defer namespace.Close()
	trees := make([]int, 0, len(mounts))
	defer func() {
		for _, tree := range trees {
			err = errors.Join(err, unix.Close(tree))
		}
	}()
	for _, m := range mounts {
		tree, err := unix.OpenTree(unix.AT_FDCWD, m.Source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW)
		if err != nil {
			return fmt.Errorf("open %s to mount it: %w", m.Source, err)
		}
		trees = append(trees, tree)
		attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV, Propagation: unix.MS_SLAVE}
		if !m.Writable {
			attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
		}
		if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
			return fmt.Errorf("set the options of a mount of %s: %w", m.Source, err)
		}
	}
	return osthread.Do(func() error {
		// A thread that shares its folders with others cannot go elsewhere.
		if err := errors.Join(unix.Unshare(unix.CLONE_FS), unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNS)); err != nil {
			return fmt.Errorf("enter the mount namespace of process %d: %w", server, err)
		}
		for i, m := range mounts {
			if err := mountTree(trees[i], serverRoot+m.Target); err != nil {
				return fmt.Errorf("mount %s on %s: %w", m.Source, m.Target, err)
			}
		}
		return nil
	})
}

// mountTree mounts what OpenTree gave on a folder, which no link may lead away from.
func mountTree(tree int, on string) error {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	target, err := unix.Openat2(unix.AT_FDCWD, on, &how)
	if err != nil {
		return err
	}
	defer unix.Close(target)
	return unix.MoveMount(tree, "", target, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}
