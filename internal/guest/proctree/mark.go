package proctree

import (
	"strconv"
	"strings"
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
	return m.another()
}

func (m *Marks) another() uint64 {
	if m.next == 0 {
		return 0
	}
	m.next-- // lowering a limit needs no capability
	return m.next
}

// During calls fork so that the new process inherits a mark, and returns the mark; 0 if it
// cannot set one. It takes a fresh mark, because this process's limit may since have dropped
// below a mark that Next returned earlier, and without privileges it cannot raise the limit.
func (m *Marks) During(fork func() error) (mark uint64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if mark = m.another(); mark == 0 {
		return 0, fork()
	}
	if unix.Prlimit(0, unix.RLIMIT_LOCKS, &unix.Rlimit{Cur: mark, Max: mark}, nil) != nil {
		return 0, fork()
	}
	defer m.unmark(0)
	return mark, fork()
}

// Unmark takes the mark from a process that outlives its command.
func (m *Marks) Unmark(pid int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unmark(pid)
}

// unmark restores a process's original limit; pid 0 is this process. Raising a limit needs
// SYS_RESOURCE. Without it, the process gets a mark that belongs to no command. The process
// may have ended.
func (m *Marks) unmark(pid int) {
	if unix.Prlimit(pid, unix.RLIMIT_LOCKS, &m.own, nil) != unix.EPERM {
		return
	}
	mark := m.another()
	_ = unix.Prlimit(pid, unix.RLIMIT_LOCKS, &unix.Rlimit{Cur: mark, Max: mark}, nil)
}

// markOf is the mark of a process, or its limit of file locks without one.
func markOf(pid int) uint64 {
	var l unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_LOCKS, nil, &l); err == nil {
		return l.Max
	} else if err != unix.EPERM { // for want of SYS_RESOURCE
		return 0
	}
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/limits", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	buf := make([]byte, 4<<10)
	n, _ := unix.Read(fd, buf)
	_, rest, _ := strings.Cut(string(buf[:max(n, 0)]), "Max file locks")
	if f := strings.Fields(rest); len(f) > 1 {
		l.Max, _ = strconv.ParseUint(f[1], 10, 64) // "unlimited" is no mark
	}
	return l.Max
}
