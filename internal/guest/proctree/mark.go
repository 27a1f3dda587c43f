package proctree

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Marks hands out marks for commands. A mark is the limit of file locks of a command and of
// everything that descends from it, in other sessions too: children inherit limits, and
// programs cannot raise them. On Linux they can lower this one; Atoll's gVisor denies that.
type Marks struct {
	mu   sync.Mutex // held while this process has a command's mark
	own  unix.Rlimit
	next uint64 // guarded by mu; 0 where the kernel cannot set the limit
}

// OpenMarks returns marks that no earlier process of the sandbox has handed out.
func OpenMarks() *Marks {
	m := &Marks{}
	if err := unix.Prlimit(0, unix.RLIMIT_LOCKS, nil, &m.own); err != nil {
		return m
	}
	if err := unix.Prlimit(0, unix.RLIMIT_LOCKS, &m.own, nil); err != nil {
		return m
	}
	if first := uint64(1<<62) - uint64(time.Now().UnixMicro()); first < m.own.Max {
		m.next = first
	}
	return m
}

// Next returns the mark of another command, 0 for none.
func (m *Marks) Next() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.next == 0 {
		return 0
	}
	m.next-- // lowering a limit needs no capability
	return m.next
}

// During calls fork while what this process starts gets a mark.
func (m *Marks) During(mark uint64, fork func() error) error {
	if mark == 0 {
		return fork()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := unix.Prlimit(0, unix.RLIMIT_LOCKS, &unix.Rlimit{Cur: mark, Max: mark}, nil); err != nil {
		return err
	}
	defer unix.Prlimit(0, unix.RLIMIT_LOCKS, &m.own, nil) //nolint:errcheck // Kill spares its caller
	return fork()
}

// Unmark takes the mark from a process that outlives its command.
func (m *Marks) Unmark(pid int) {
	_ = unix.Prlimit(pid, unix.RLIMIT_LOCKS, &m.own, nil) // it may have ended
}

// markOf is the mark of a process, or its limit of file locks without one.
func markOf(pid int) uint64 {
	var l unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_LOCKS, nil, &l); err != nil {
		return 0
	}
	return l.Max
}
