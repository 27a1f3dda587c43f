package guestinit

import (
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/raw"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

// writeFiles puts a run's files in place as the unprivileged user.
// home, if it is not negative, is the home's folder where the user may not write.
func writeFiles(files []wire.File, home int) error {
	if len(files) == 0 {
		return nil
	}
	return asUser(func() error {
		for _, f := range files {
			if readOnlyFolder(f.Path) >= 0 {
				continue
			}
			if err := writeFile(f, home); err != nil {
				return step("write "+f.Path, err)
			}
		}
		return nil
	})
}

// writeFile makes a new file, in place of whatever an earlier program may have
// left under its name: a link, a pipe, a file that others have open.
func writeFile(f wire.File, home int) error {
	if !strings.HasPrefix(f.Path, "/") {
		return unix.EINVAL
	}
	if strings.HasSuffix(f.Path, "/") {
		return makeParents(f.Path)
	}
	if name, ok := strings.CutPrefix(f.Path, wire.Home+"/"); ok && home >= 0 && !strings.Contains(name, "/") {
		return writeAt(home, name, f)
	}
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	mode := uint32(f.Mode & 0o777)
	fd, err := raw.OpenAt(unix.AT_FDCWD, f.Path, flags, mode)
	if err == unix.ENOENT {
		if err = makeParents(f.Path); err == nil {
			fd, err = raw.OpenAt(unix.AT_FDCWD, f.Path, flags, mode)
		}
	}
	if err == unix.EEXIST {
		if err = unlink(f.Path); err == nil {
			fd, err = raw.OpenAt(unix.AT_FDCWD, f.Path, flags, mode)
		}
	}
	if err != nil {
		return err
	}
	for p := f.Data; len(p) > 0 && err == nil; {
		var n int
		n, err = raw.Write(fd, p)
		p = p[n:]
	}
	if mode&^0o755 != 0 && err == nil {
		err = unix.Fchmod(fd, mode) // the umask took bits away
	}
	if e := raw.Close(fd); err == nil {
		err = e
	}
	if err != nil {
		unlink(f.Path)
	}
	return err
}

// makeParents makes the folders above a path, as mkdir -p does.
func makeParents(path string) error {
	for i := 1; i < len(path); i++ {
		if path[i] != '/' {
			continue
		}
		if err := unix.Mkdir(path[:i], 0o755); err != nil && err != unix.EEXIST {
			// An unwritable or read-only parent that exists is no obstacle.
			var st unix.Stat_t
			if unix.Stat(path[:i], &st) != nil {
				return err
			}
		}
	}
	return nil
}

// writeAt is writeFile for a folder that only process 1 can write to.
func writeAt(folder int, name string, f wire.File) error {
	if err := unix.Unlinkat(folder, name, 0); err != nil && err != unix.ENOENT {
		return err
	}
	fd, err := unix.Openat(folder, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, uint32(f.Mode&0o777))
	if err != nil {
		return err
	}
	for p := f.Data; len(p) > 0 && err == nil; {
		var n int
		n, err = raw.Write(fd, p)
		p = p[n:]
	}
	if e := raw.Close(fd); err == nil {
		err = e
	}
	return err
}
