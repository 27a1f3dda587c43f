package guestinit

import (
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/raw"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

// ofSkill reports whether a path is in the folder of skills, which process 1 writes to alone.
func ofSkill(path string) bool { return strings.HasPrefix(path, wire.Skills+"/") }

// putSkills puts the files of skills in place, as root, so that programs can read them and not
// change them. The folder is kept open: rules of the sandbox make it read-only for process 1,
// too.
func (s *supervisor) putSkills(files []wire.File) error {
	for _, f := range files {
		if !ofSkill(f.Path) {
			continue
		}
		if s.skills < 0 {
			if err := present(wire.Skills, false); err != nil {
				return err
			}
			fd, err := s.skillsFolder()
			if err != nil {
				return err
			}
			s.skills = fd
		}
		if err := putBelow(s.skills, strings.TrimPrefix(f.Path, wire.Skills+"/"), f); err != nil {
			return step("write "+f.Path, err)
		}
	}
	return nil
}

func (s *supervisor) skillsFolder() (int, error) {
	if s.restrictsFiles() {
		return kept(wire.Skills)
	}
	return unix.Open(wire.Skills, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
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
