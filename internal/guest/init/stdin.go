package guestinit

import (
	"path"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/raw"
)

// stdinFile is where an interpreter that has started finds what its program is to
// read. The hooks have the path, too.
const stdinFile = "/run/atoll/stdin"

// newStdin returns a descriptor of what a program reads: a file without a name, or
// /dev/null if there is nothing to read.
func newStdin(data []byte) (fd int, err error) {
	if len(data) == 0 {
		fd, err = unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		return fd, step("/dev/null", err)
	}
	// The file is the user's, so that a program may open it again as /dev/stdin.
	err = asUser(func() error {
		fd, err = unix.MemfdCreate("stdin", unix.MFD_CLOEXEC)
		return err
	})
	if err != nil {
		return -1, step("make a file for stdin", err)
	}
	if err = writeAll(fd, data); err == nil {
		_, err = unix.Seek(fd, 0, unix.SEEK_SET)
	}
	if err != nil {
		unix.Close(fd)
		return -1, step("write stdin", err)
	}
	return fd, nil
}

// offerStdin puts data where an interpreter that waits opens it. Nothing is to be
// read if there is none.
func (s *supervisor) offerStdin(data []byte) error {
	if len(data) == 0 {
		return nil
	}
	for _, dir := range []string{"/run", path.Dir(stdinFile)} {
		if err := unix.Mkdir(dir, 0o755); err != nil && err != unix.EEXIST {
			return step("make "+dir, err)
		}
	}
	s.offered = true
	s.withdrawStdin() // an earlier run's
	fd, err := raw.OpenAt(unix.AT_FDCWD, stdinFile, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return step("make "+stdinFile, err)
	}
	s.offered = true
	err = writeAll(fd, data)
	if e := raw.Close(fd); err == nil {
		err = e
	}
	return step("write "+stdinFile, err)
}

// withdrawStdin removes what offerStdin made.
func (s *supervisor) withdrawStdin() {
	if s.offered {
		s.offered = false
		unlink(stdinFile)
	}
}

func writeAll(fd int, p []byte) error {
	for len(p) > 0 {
		n, err := raw.Write(fd, p)
		if err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}
