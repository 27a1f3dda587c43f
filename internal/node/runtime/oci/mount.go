package oci

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	goruntime "runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/runtime"
)

func tmpfs(dir, options string, flags uintptr) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !os.IsExist(err) {
		return err
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", flags, options); err != nil {
		return fmt.Errorf("mount a tmpfs on %s: %w", dir, err)
	}
	return nil
}

// mountEROFS mounts an image file: as it is where the kernel can (Linux 6.12,
// if configured), else by way of a loop device, which goes with its last mount.
func mountEROFS(path, dir string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("mount image: %w", err)
	}
	defer file.Close()
	// By descriptor: sandboxes can read the name that a mount was made with.
	const flags = unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV
	err = unix.Mount("/proc/self/fd/"+strconv.Itoa(int(file.Fd())), dir, "erofs", flags, "")
	if errors.Is(err, unix.ENOTBLK) {
		var device *os.File
		if device, err = attachLoop(file); err != nil {
			return err
		}
		defer device.Close()
		err = unix.Mount(device.Name(), dir, "erofs", flags, "")
	}
	if errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("mount image %s: %w: this kernel has no erofs", path, err)
	}
	if err != nil {
		return fmt.Errorf("mount image %s: %w", path, err)
	}
	return nil
}

// loopTries bounds how often another process may take the loop device that was
// free a moment ago.
const loopTries = 100

// attachLoop gives a file a loop device, which the kernel takes away when the
// last one that has it open or mounted is gone.
func attachLoop(file *os.File) (*os.File, error) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("mounting an image takes a loop device: %w", err)
	}
	defer control.Close()
	for range loopTries {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("find a free loop device: %w", err)
		}
		device, err := os.OpenFile("/dev/loop"+strconv.Itoa(n), os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		config := unix.LoopConfig{Fd: uint32(file.Fd())}
		config.Info.Flags = unix.LO_FLAGS_READ_ONLY | unix.LO_FLAGS_AUTOCLEAR
		err = unix.IoctlLoopConfigure(int(device.Fd()), &config)
		if err == nil {
			return device, nil
		}
		device.Close()
		if !errors.Is(err, unix.EBUSY) {
			return nil, fmt.Errorf("attach %s to %s: %w", file.Name(), device.Name(), err)
		}
	}
	return nil, fmt.Errorf("attach %s to a loop device: none stays free", file.Name())
}

// shift shows a folder of the host, with what is mounted below it, on the new
// folder target, with owners as the user namespace has them.
func shift(source, target string, users *os.File, writable bool) error {
	if err := os.Mkdir(target, 0o755); err != nil {
		return err
	}
	tree, err := unix.OpenTree(unix.AT_FDCWD, source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return fmt.Errorf("show %s: %w", source, err)
	}
	defer unix.Close(tree)
	attr := unix.MountAttr{
		Attr_set:    unix.MOUNT_ATTR_IDMAP | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV,
		Propagation: unix.MS_PRIVATE,
		Userns_fd:   uint64(users.Fd()),
	}
	if !writable {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	err = unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr)
	if errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("shift the owners of %s: %w: the kernel or a file system there has no idmapped mounts (Linux 5.19 with ext4, xfs, btrfs or erofs has)", source, runtime.ErrUnsupported)
	}
	if err != nil {
		return fmt.Errorf("shift the owners of %s: %w", source, err)
	}
	if err := unix.MoveMount(tree, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("show %s: %w", source, err)
	}
	return nil
}

// newUserNamespace makes a user namespace whose ids from first on begin at the
// host's base. It takes a process to make one; that one is stopped before its
// first instruction, and killed.
func newUserNamespace(first, base uint32) (*os.File, error) {
	goruntime.LockOSThread() // the thread traces the process; it must not end before
	defer goruntime.UnlockOSThread()
	ids := []syscall.SysProcIDMap{{ContainerID: int(first), HostID: int(base), Size: slotSize}}
	cmd := exec.Command("/proc/self/exe") //nolint:noctx // it ends by itself, and at once
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER, UidMappings: ids, GidMappings: ids,
		Ptrace: true, Pdeathsig: unix.SIGKILL,
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("make a user namespace: %w", err)
	}
	users, err := os.Open("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/ns/user")
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // says only that it was killed
	if err != nil {
		return nil, fmt.Errorf("open a user namespace: %w", err)
	}
	return users, nil
}
