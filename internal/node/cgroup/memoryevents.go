package cgroup

import (
	"encoding/binary"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// memoryEvents reports writes to the memory.events files of a Parent's groups. All groups
// share one inotify instance, because Linux allows a user 128 of them
// (fs.inotify.max_user_instances). The instance and its goroutine exist while there is a
// watch. The zero value is ready.
type memoryEvents struct {
	mu      sync.Mutex
	inotify *os.File                 // guarded by mu; nil without a watch
	fd      int                      // guarded by mu; of inotify, for the system calls that os.File lacks
	ended   chan struct{}            // guarded by mu; closed when the goroutine that reads inotify has ended
	watches map[int32][]chan<- empty // guarded by mu; by watch descriptor, which a file has one of
}

type empty = struct{}

// add has the kernel's reports of a file sent to a channel, until remove. A report is
// dropped if the channel is full.
func (e *memoryEvents) add(file string, to chan<- empty) (wd int32, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.inotify == nil {
		if err := e.open(); err != nil {
			return 0, err
		}
	}
	n, err := unix.InotifyAddWatch(e.fd, file, unix.IN_MODIFY)
	if err != nil {
		e.closeUnused()
		return 0, &os.PathError{Op: "watch", Path: file, Err: err}
	}
	wd = int32(n)
	e.watches[wd] = append(e.watches[wd], to)
	return wd, nil
}

// remove undoes add.
func (e *memoryEvents) remove(wd int32, to chan<- empty) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.watches[wd] = slices.DeleteFunc(e.watches[wd], func(c chan<- empty) bool { return c == to })
	if len(e.watches[wd]) == 0 {
		delete(e.watches, wd)
		_, _ = unix.InotifyRmWatch(e.fd, uint32(wd)) // it fails if the group was removed, and the watch with it
	}
	e.closeUnused()
}

// open starts the instance. e.mu is held.
func (e *memoryEvents) open() error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return os.NewSyscallError("inotify_init1", err)
	}
	e.inotify, e.fd = os.NewFile(uintptr(fd), "memory events"), fd
	e.ended, e.watches = make(chan struct{}), map[int32][]chan<- empty{}
	go e.read(e.inotify, e.ended) // ends with close
	return nil
}

// closeUnused ends the instance if there is no watch. e.mu is held, and released while
// the goroutine ends, which may want it.
func (e *memoryEvents) closeUnused() {
	if len(e.watches) > 0 {
		return
	}
	e.inotify.Close()
	e.inotify = nil
	ended := e.ended
	e.mu.Unlock()
	<-ended
	e.mu.Lock()
}

// read sends the reports of an instance on, until that is closed.
func (e *memoryEvents) read(inotify *os.File, ended chan<- struct{}) {
	defer close(ended)
	var buf [64 * unix.SizeofInotifyEvent]byte // events of files have no names
	for {
		n, err := inotify.Read(buf[:])
		if err != nil {
			return
		}
		e.report(inotify, buf[:n])
	}
}

// report sends on what an instance reports.
func (e *memoryEvents) report(inotify *os.File, events []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.inotify != inotify {
		return // another was opened since
	}
	for len(events) >= unix.SizeofInotifyEvent {
		wd, mask := int32(binary.NativeEndian.Uint32(events)), binary.NativeEndian.Uint32(events[4:])
		name := binary.NativeEndian.Uint32(events[12:])
		events = events[min(len(events), unix.SizeofInotifyEvent+int(name)):]
		if mask&unix.IN_Q_OVERFLOW != 0 { // reports were lost, of any group
			for _, to := range e.watches {
				send(to)
			}
			continue
		}
		send(e.watches[wd])
	}
}

func send(to []chan<- empty) {
	for _, c := range to {
		select {
		case c <- empty{}:
		default: // one that was not yet read says as much
		}
	}
}
