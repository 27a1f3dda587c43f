package home

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Secure makes a folder fit for homes, or for a folder that has the Cache's and
// those that sandboxes mount in it: a home moves between them by a rename, which
// works within one mount alone. It is made if it is missing, only its owner may
// enter it, and it is mounted on itself so that set-user-id bits and devices in
// it mean nothing to this host. What an earlier process mounted is used.
//
// It needs to be root, in the machine or in a user namespace of its own.
func Secure(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return err
	}
	flags, err := mountFlags(dir)
	if err != nil || flags&safe == safe {
		return err
	}
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s: %w", dir, err)
	}
	// A namespace may not take flags away that the mount has already.
	err = unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|flags|safe, "")
	if err == nil {
		if flags, err = mountFlags(dir); err == nil && flags&safe != safe {
			err = errors.New("the kernel does not do it")
		}
	}
	if err != nil {
		return errors.Join(fmt.Errorf("mount %s nosuid and nodev: %w", dir, err), Unmount(dir))
	}
	return nil
}

const safe = unix.MS_NOSUID | unix.MS_NODEV

// Unmount undoes what Secure mounted. Sandboxes that have a part of it keep that.
func Unmount(dir string) error {
	err := unix.Unmount(dir, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	switch {
	case err == nil, err == unix.EINVAL, err == unix.ENOENT: // EINVAL: there is no mount
		return nil
	case err == unix.EPERM && !isMount(dir): // the kernel asks for CAP_SYS_ADMIN before it looks
		return nil
	}
	return fmt.Errorf("unmount %s: %w", dir, err)
}

// isMount reports whether a folder is the root of a mount, or may be.
func isMount(dir string) bool {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, dir, unix.AT_SYMLINK_NOFOLLOW, 0, &st)
	return err != nil || st.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT == 0 || st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}

// mountFlags returns how the file system of a folder is mounted.
func mountFlags(dir string) (flags uintptr, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("look at the file system of %s: %w", dir, err)
	}
	for has, is := range map[int64]uintptr{unix.ST_RDONLY: unix.MS_RDONLY, unix.ST_NOSUID: unix.MS_NOSUID, unix.ST_NODEV: unix.MS_NODEV,
		unix.ST_NOEXEC: unix.MS_NOEXEC, unix.ST_NOATIME: unix.MS_NOATIME, unix.ST_NODIRATIME: unix.MS_NODIRATIME, unix.ST_RELATIME: unix.MS_RELATIME} {
		if st.Flags&has != 0 {
			flags |= is
		}
	}
	return flags, nil
}
