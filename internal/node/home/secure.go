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
	switch err := unix.Unmount(dir, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err {
	case nil, unix.EINVAL, unix.ENOENT: // EINVAL: there is no mount
		return nil
	default:
		return fmt.Errorf("unmount %s: %w", dir, err)
	}
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
