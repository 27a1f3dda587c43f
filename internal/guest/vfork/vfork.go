// Package vfork starts programs with fewer system calls than package syscall does. Go
// resets the handlers of 56 signals in the child, one after the other; here the kernel
// does it when it makes the child (CLONE_CLEAR_SIGHAND). Under gVisor that is a tenth of
// what starting a shell takes.
package vfork

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/raw"
)

// Program is what is to be started, in a session of its own.
type Program struct {
	Path      string
	Argv, Env []string
	Dir       string
	Files     []int // its descriptors, by number; the first three at least, -1 for none. All others of the parent close themselves.
	UID, GID  uint32
	OpenFiles unix.Rlimit
	FileLocks uint64 // its limit of file locks, which is its mark (package proctree); 0 leaves that
}

// able: it was not seen to work on others.
const able = runtime.GOARCH == "amd64"

// Start starts a program and returns its process id and a descriptor of it. An error is
// that of execve(2). Where ok is false nothing was started, because the kernel or the
// arrangement of descriptors does not allow it in this way: start it by package syscall.
func Start(p *Program) (pid, pidfd int, ok bool, err error) {
	if !able || len(p.Files) < 3 {
		return 0, -1, false, nil
	}
	for _, fd := range p.Files {
		if fd >= 0 && fd < len(p.Files) { // it may be overwritten before its turn
			return 0, -1, false, nil
		}
	}
	syscall.ForkLock.Lock()
	defer syscall.ForkLock.Unlock()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// A handler must not run in the child, which has them until the kernel resets them
	// and this process's memory until it executes the program.
	all, before := ^uint64(0), new(uint64)
	steps := p.steps(before)
	if !setMask(&all, before) {
		return 0, -1, false, nil
	}
	child, err := raw.Exec(steps)
	setMask(before, nil) // cannot fail
	if err != nil {
		return 0, -1, false, nil // a string with a NUL too: package syscall says so
	}
	at, err := child.Failed()
	if err == nil {
		return child.PID, child.FD, true, nil
	}
	var status unix.WaitStatus
	for {
		if _, err := unix.Wait4(child.PID, &status, 0, nil); err != unix.EINTR {
			break
		}
	}
	unix.Close(child.FD)
	return 0, -1, at == steps.Len()-1, err
}

// steps are the calls of the child; mask are the signals that the program is to have
// blocked.
func (p *Program) steps(mask *uint64) *raw.Steps {
	s := &raw.Steps{}
	s.Add(unix.SYS_SETSID)
	if p.FileLocks != 0 {
		s.Add(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_LOCKS, raw.Address(s, &unix.Rlimit{Cur: p.FileLocks, Max: p.FileLocks}), 0)
	}
	s.Add(unix.SYS_SETGROUPS, 1, raw.Address(s, &p.GID))
	s.Add(unix.SYS_SETGID, uintptr(p.GID))
	s.Add(unix.SYS_SETUID, uintptr(p.UID))
	s.Add(unix.SYS_CHDIR, s.Text(p.Dir))
	for to, fd := range p.Files {
		switch {
		case fd >= 0:
			s.Add(unix.SYS_DUP3, uintptr(fd), uintptr(to), 0)
		case to < 3:
			s.Add(unix.SYS_CLOSE, uintptr(to))
		}
	}
	s.Add(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NOFILE, raw.Address(s, &p.OpenFiles), 0)
	s.Add(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, raw.Address(s, mask), 0, unsafe.Sizeof(*mask))
	s.Add(unix.SYS_EXECVE, s.Text(p.Path), s.Texts(p.Argv), s.Texts(p.Env))
	return s
}

// setMask sets the signals that this thread has blocked, and notes those that it had.
func setMask(to, before *uint64) bool {
	_, _, e := unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(to)), uintptr(unsafe.Pointer(before)), unsafe.Sizeof(*to), 0, 0)
	return e == 0
}
