package guestinit

import (
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/wire"
)

// enter puts the folder that the host has moved into Shared in the place of Home,
// and leaves no other way to it. Asked twice, it has done so. Rules about files
// reach it with seal, before the next program.
func (s *supervisor) enter(fill bool) error {
	if s.moved {
		return nil
	}
	// What is under the rules already has to be bound to them before the home
	// hides it: afterwards a path there means something else.
	if err := s.seal(); err != nil {
		return err
	}
	const home = wire.Shared + "/" + wire.HomeName
	if fill {
		if err := fillFolder(wire.Home, home); err != nil {
			return err
		}
	}
	if err := unix.Mount(home, wire.Home, "", unix.MS_BIND, ""); err != nil {
		return step("mount the home directory", err)
	}
	s.moved = true
	if err := unix.Unmount(wire.Shared, unix.MNT_DETACH); err != nil {
		return step("unmount "+wire.Shared, err)
	}
	_ = unix.Rmdir(wire.Shared) // where it was made for the mount
	return nil
}

// protect makes folders read-only, each as a mount of its own. What is mounted there
// refuses writes as well, but gVisor keeps some of those errors from programs.
func protect(folders []string) error {
	for _, folder := range folders {
		const flags = unix.MS_REMOUNT | unix.MS_BIND | unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV
		err := unix.Mount(folder, folder, "", unix.MS_BIND, "")
		if err == nil {
			err = unix.Mount("", folder, "", flags, "")
		}
		if err != nil {
			return step("make "+folder+" read-only", err)
		}
	}
	return nil
}

// fillFolder copies what an image has in a folder into another one, which is
// empty or holds what an earlier attempt came to. Times are not copied.
func fillFolder(from, to string) error {
	names, err := folderNames(from)
	if err != nil {
		return step("read "+from, err)
	}
	for _, name := range names {
		if err := copyEntry(from+"/"+name, to+"/"+name); err != nil {
			return step("copy "+from+"/"+name, err)
		}
	}
	return nil
}

func copyEntry(from, to string) error {
	var st unix.Stat_t
	if err := unix.Lstat(from, &st); err != nil {
		return err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		if err := unix.Mkdir(to, 0o700); err != nil && err != unix.EEXIST {
			return err
		}
		if err := fillFolder(from, to); err != nil {
			return err
		}
	case unix.S_IFREG:
		if err := copyFile(from, to); err != nil {
			return err
		}
	case unix.S_IFLNK:
		target := make([]byte, unix.PathMax)
		n, err := unix.Readlink(from, target)
		if err != nil {
			return err
		}
		if err := unix.Symlink(string(target[:n]), to); err != nil && err != unix.EEXIST {
			return err
		}
		return unix.Lchown(to, int(st.Uid), int(st.Gid))
	default:
		return nil // what a home does not keep either
	}
	if err := unix.Lchown(to, int(st.Uid), int(st.Gid)); err != nil {
		return err
	}
	return unix.Chmod(to, st.Mode&0o7777)
}

func copyFile(from, to string) error {
	in, err := unix.Open(from, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(in)
	out, err := unix.Open(to, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	defer unix.Close(out)
	buf := make([]byte, 64<<10)
	for {
		n, err := unix.Read(in, buf)
		if n <= 0 {
			return err
		}
		for p := buf[:n]; len(p) > 0; {
			n, err := unix.Write(out, p)
			if err != nil {
				return err
			}
			p = p[n:]
		}
	}
}

// folderNames lists a folder, "." and ".." left out.
func folderNames(path string) (names []string, err error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	buf := make([]byte, 8<<10)
	for {
		n, err := unix.ReadDirent(fd, buf)
		if err != nil || n <= 0 {
			return names, err
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
}

// hasPrefixed reports whether a folder has an entry whose name begins so, or
// cannot be told not to.
func hasPrefixed(folder, prefix string) bool {
	names, err := folderNames(folder)
	for _, name := range names {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return err != nil && err != unix.ENOENT
}
