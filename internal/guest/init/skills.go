package guestinit

import (
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/raw"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

// readOnly are the folders that process 1 writes to alone.
var readOnly = [...]string{wire.Skills, wire.Uploads}

// readOnlyFolder is the place in readOnly of the folder that a path is in, negative for none.
func readOnlyFolder(path string) int {
	for i, folder := range readOnly {
		if strings.HasPrefix(path, folder+"/") {
			return i
		}
	}
	return -1
}

// putReadOnly puts files in place as root, so that programs can read them and not change them.
// The folders are kept open: rules of the sandbox make them read-only for process 1, too.
func (s *supervisor) putReadOnly(files []wire.File) error {
	for _, f := range files {
		i := readOnlyFolder(f.Path)
		if i < 0 {
			continue
		}
		if err := s.haveReadOnly(i); err != nil {
			return err
		}
		if err := putBelow(s.readOnly[i], strings.TrimPrefix(f.Path, readOnly[i]+"/"), f); err != nil {
			return step("write "+f.Path, err)
		}
	}
	return nil
}

// haveReadOnly opens a folder of readOnly, and makes it where there is none.
func (s *supervisor) haveReadOnly(i int) error {
	if s.readOnly[i] >= 0 {
		return nil
	}
	if err := present(readOnly[i], false); err != nil {
		return err
	}
	fd, err := s.openReadOnly(readOnly[i])
	if err == nil {
		s.readOnly[i] = fd
	}
	return err
}

// skillsFolder is the folder of skills for the guest daemon; -1 in an image that has something
// else there. It is opened before rules of the sandbox make it read-only.
func (s *supervisor) skillsFolder() int {
	if s.haveReadOnly(0) != nil {
		return -1
	}
	return s.readOnly[0]
}

func (s *supervisor) openReadOnly(folder string) (int, error) {
	if s.restrictsFiles() {
		return kept(folder)
	}
	return unix.Open(folder, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}

// putBelow makes a file below a folder, and the folders between them.
func putBelow(folder int, name string, f wire.File) error {
	for at := folder; ; {
		dir, rest, deeper := strings.Cut(name, "/")
		if !deeper {
			err := writeAt(at, name, f)
			if at != folder {
				raw.Close(at)
			}
			return err
		}
		err := unix.Mkdirat(at, dir, 0o755)
		next := -1
		if err == nil || err == unix.EEXIST {
			next, err = unix.Openat(at, dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		}
		if at != folder {
			raw.Close(at)
		}
		if err != nil {
			return err
		}
		at, name = next, rest
	}
}
