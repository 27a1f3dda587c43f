package guestinit

import (
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/raw"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

// draftMode is that of a draft, as most programs' files have it.
const draftMode = 0o644

// draft is the file of the program that an interpreter waits for. It is made, empty, while
// nothing waits for it, so that a program is only written into it. As long as there is one,
// the home is as the interpreter found it at its start.
type draft struct {
	path string
	fd   int
}

// startDraft makes the file of the program that w waits for, if the home is as it was when w
// started and remains so: it does not where rules or namespaces of a program hold.
func (s *supervisor) startDraft(w *warmed) {
	argv := w.cmd.Argv
	if s.draft != nil || s.own != nil || s.moved || s.dirty || len(s.runs) > 0 || s.restrictsFiles() || len(argv) != 2 || strings.Contains(argv[1], "/") {
		return
	}
	d := &draft{path: w.cmd.Dir + "/" + argv[1]}
	err := asUser(func() (err error) {
		d.fd, err = raw.OpenAt(unix.AT_FDCWD, d.path, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, draftMode)
		return err
	})
	if err == nil { // else the program's file is made when it comes, or fails to be
		s.draft = d
	}
}

// dropDraft removes the file again, if there is one.
func (s *supervisor) dropDraft() {
	if d := s.draft; d != nil {
		s.draft = nil
		raw.Close(d.fd)
		_ = asUser(func() error { return unlink(d.path) })
	}
}

// place puts a run's files in place, and reports whether the home is as the interpreter
// that waits has found it.
func (s *supervisor) place(files []wire.File) (unchanged bool, err error) {
	d := s.draft
	if d == nil || len(files) != 1 || files[0].Path != d.path || files[0].Mode&0o777 != draftMode {
		s.dropDraft()
		return false, s.within(func() error { return writeFiles(files, s.home) })
	}
	s.draft = nil
	s.closeLater(d.fd)
	if err := writeAll(d.fd, files[0].Data); err != nil {
		_ = asUser(func() error { return unlink(d.path) })
		return false, step("write "+d.path, err)
	}
	return true, nil
}
