package home

import (
	"errors"

	"golang.org/x/sys/unix"
)

// folder is the way to a folder of a home. Each part is looked up in the one
// above it, so a path may be longer than the kernel's PATH_MAX.
type folder struct {
	up    *folder // nil for the home itself
	name  string
	depth int
}

func (f *folder) in(name string) *folder { return &folder{f, name, f.depth + 1} }

// walker opens folders of a home that are near to each other: those on the way to
// the last one stay open. It is for one goroutine.
type walker struct {
	root  int // stays the caller's
	stack []opened
}

type opened struct {
	f  *folder
	fd int
}

const openFolder = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// open returns a folder's descriptor, which is good until the next call.
func (w *walker) open(f *folder) (int, error) {
	var way []*folder
	for f.depth > len(w.stack) || f.depth > 0 && w.stack[f.depth-1].f != f {
		way = append(way, f)
		f = f.up
	}
	w.leave(f.depth)
	for i := len(way) - 1; i >= 0; i-- {
		fd, err := unix.Openat(w.fd(), way[i].name, openFolder, 0)
		if err != nil {
			return -1, hostError("open folder", way[i].name, err)
		}
		w.stack = append(w.stack, opened{way[i], fd})
	}
	return w.fd(), nil
}

func (w *walker) fd() int {
	if len(w.stack) == 0 {
		return w.root
	}
	return w.stack[len(w.stack)-1].fd
}

// leave closes all folders below a depth.
func (w *walker) leave(depth int) {
	for _, o := range w.stack[depth:] {
		unix.Close(o.fd)
	}
	w.stack = w.stack[:depth]
}

func (w *walker) close() { w.leave(0) }

// openHome opens the folder that a home is in.
func openHome(dir string) (int, error) {
	fd, err := openNoTime(unix.AT_FDCWD, dir, openFolder)
	if err != nil {
		return -1, hostError("open", dir, err)
	}
	return fd, nil
}

// openNoTime opens without leaving a trace in the file's access time, where we may.
func openNoTime(dirfd int, name string, flags int) (int, error) {
	fd, err := unix.Openat(dirfd, name, flags|unix.O_NOATIME, 0)
	if errors.Is(err, unix.EPERM) {
		fd, err = unix.Openat(dirfd, name, flags, 0)
	}
	return fd, err
}

func instantOf(t unix.Timespec) instant { return instant{t.Sec, uint32(t.Nsec)} }

func (t instant) before(u instant) bool {
	return t.sec < u.sec || t.sec == u.sec && t.nsec < u.nsec
}

// kernelNow is the clock that files' times are taken from.
func kernelNow() (instant, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &t); err != nil {
		return instant{}, err
	}
	return instantOf(t), nil
}
