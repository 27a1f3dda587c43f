package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// MemoryWatch reports that a group's memory use has come near its limit. The kernel
// reports it, so that a watch of a group far below its limit uses no processor time.
//
// While there is a watch, the group's limit is higher by watchRoom: its user ends a program
// at the bound, which takes a busy host a while, and the limit is the last resort. With
// cgroup v2 the kernel also slows programs down from the former limit on.
type MemoryWatch struct {
	group *Group
	limit int64 // bytes, without a watch

	events *os.File // of version 1

	// Of version 2:
	changes chan empty // receives the kernel's reports
	wd      int32      // of changes among the parent's memoryEvents
	once    sync.Once
	closed  chan struct{}
}

const (
	// watchSteps is how many times use is reported between bound and limit. Use includes
	// page cache at the first times, which is taken back later.
	watchSteps = 16
	// watchRoom is what a program writes in 150 ms on the machines that were measured.
	watchRoom = 128 << 20
)

// WatchMemory watches a group from a use of bound bytes on, page cache included. limit is
// the group's limit, which must be above that. With cgroup v1 it takes some 200 ms: the
// kernel waits for all processors at each registration.
func (g *Group) WatchMemory(bound, limit int64) (_ *MemoryWatch, err error) {
	if limit <= bound || bound <= 0 {
		return nil, errors.New("watch memory: the bound is not below the limit")
	}
	w := &MemoryWatch{group: g, limit: limit}
	if g.parent.version == V1 {
		// First of all, because the rest takes a while.
		if err = w.setLimit(limit + watchRoom); err == nil {
			err = w.openV1(bound)
		}
	} else if err = w.openV2(); err == nil {
		err = w.setLimit(limit + watchRoom)
	}
	if err != nil {
		w.Close() // of what was opened so far
		return nil, fmt.Errorf("watch memory: %w", err)
	}
	return w, nil
}

// Wait returns when memory use has changed near the limit, or the group was removed. It
// returns an error after Close.
func (w *MemoryWatch) Wait() error {
	if w.group.parent.version == V1 {
		var counter [8]byte
		_, err := w.events.Read(counter[:])
		return err
	}
	select {
	case <-w.closed:
		return os.ErrClosed
	default:
	}
	select {
	case <-w.changes:
		return nil
	case <-w.closed:
		return os.ErrClosed
	}
}

// Close ends the watch, and a Wait. A group that uses more than its limit keeps the higher
// one.
func (w *MemoryWatch) Close() error {
	if w.group.parent.version == V1 {
		_ = w.setLimit(w.limit) // it fails if the group uses more, or is gone
		return w.events.Close() // nil is refused, which is no harm
	}
	w.once.Do(func() {
		// The kernel would end programs of a group that uses more.
		if used, err := readInt(filepath.Join(w.dir(), "memory.current")); err == nil && used <= w.limit {
			_ = w.setLimit(w.limit) // or the group is gone
		}
		_ = w.setHigh("max") // only now, for use not to grow meanwhile
		if w.changes != nil {
			w.group.parent.memory.remove(w.wd, w.changes)
		}
		close(w.closed)
	})
	return nil
}

func (w *MemoryWatch) openV1(bound int64) error {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return err
	}
	w.events = os.NewFile(uintptr(fd), "memory events")
	dir := w.dir()
	for step := range int64(watchSteps) {
		at := bound + (w.limit+watchRoom-bound)*step/watchSteps
		if err := register(dir, fd, "memory.usage_in_bytes", strconv.FormatInt(at, 10)); err != nil {
			return err
		}
	}
	// Where use stands at the limit because of page cache, the kernel reports that it
	// takes pages back.
	return register(dir, fd, "memory.pressure_level", "low")
}

// dir is the group's folder of the memory controller.
func (w *MemoryWatch) dir() string {
	controller := ""
	if w.group.parent.version == V1 {
		controller = "memory"
	}
	return filepath.Join(w.group.parent.dirs[controller], w.group.name)
}

// setLimit changes the group's limit.
func (w *MemoryWatch) setLimit(bytes int64) error {
	settings := w.group.parent.settings(Limits{Memory: bytes})
	if now, err := readInt(filepath.Join(w.dir(), settings[0].file)); err == nil && now < bytes {
		slices.Reverse(settings) // with v1, the limit with swap must never be below the other
	}
	return w.group.set(settings)
}

// register has the kernel write to an eventfd what a file of the memory controller reports.
func register(dir string, eventfd int, file, argument string) error {
	f, err := os.Open(filepath.Join(dir, file))
	if err != nil {
		return err
	}
	defer f.Close() // the kernel needs it during the registration only
	line := fmt.Sprintf("%d %d %s", eventfd, f.Fd(), argument)
	if err := os.WriteFile(filepath.Join(dir, "cgroup.event_control"), []byte(line), 0); err != nil {
		return fmt.Errorf("watch %s: %w", file, err)
	}
	return nil
}

func (w *MemoryWatch) openV2() error {
	w.closed = make(chan struct{})
	if err := w.setHigh(strconv.FormatInt(w.limit, 10)); err != nil {
		return err
	}
	changes := make(chan empty, 1)
	wd, err := w.group.parent.memory.add(filepath.Join(w.dir(), "memory.events"), changes)
	if err != nil {
		return err
	}
	w.wd, w.changes = wd, changes
	return nil
}

// setHigh says from how many bytes on the kernel slows programs down.
func (w *MemoryWatch) setHigh(bytes string) error {
	return os.WriteFile(filepath.Join(w.dir(), "memory.high"), []byte(bytes), 0)
}
