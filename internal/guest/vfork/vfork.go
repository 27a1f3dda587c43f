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
)

// Program is what is to be started, in a session of its own.
type Program struct {
	Path      string
	Argv, Env []string
	Dir       string
	Files     []int // its descriptors, by number; the first three at least, -1 for none. All others of the parent close themselves.
	UID, GID  uint32
	OpenFiles unix.Rlimit
}

// call is a system call of the child.
type call struct {
	number uintptr
	args   [6]uintptr
}

// maxCalls is how many a child makes: 8 and one for each of its descriptors.
const maxCalls = 8 + 16

// cloneArgs is what clone3(2) takes: see struct clone_args. The child has no stack of its
// own.
type cloneArgs [8]uint64

const (
	cloneFlags      = 0
	clonePidfd      = 1
	cloneExitSignal = 4
)

// child is all that a child reads and writes, which shares its parent's memory. It is
// never on a stack, which could be moved.
type child struct {
	clone     cloneArgs
	calls     [maxCalls]call
	count     int
	failed    [2]int64 // what a call returned, and how many were left with it
	pidfd     int32
	path, dir *byte
	argv, env []*byte
	group     uint32
	limit     unix.Rlimit
	mask      [8]byte // of signals, before
}

// held keeps the memory of a child off the stack and alive; guarded by syscall.ForkLock.
var held *child

func (c *child) add(number uintptr, args ...uintptr) {
	c.calls[c.count].number = number
	copy(c.calls[c.count].args[:], args)
	c.count++
}

// Start starts a program and returns its process id and a descriptor of it. An error is
// that of execve(2). Where ok is false nothing was started, because the kernel or the
// arrangement of descriptors does not allow it in this way: start it by package syscall.
func Start(p *Program) (pid, pidfd int, ok bool, err error) {
	syscall.ForkLock.Lock()
	defer syscall.ForkLock.Unlock()
	held = &child{pidfd: -1, group: p.GID, limit: p.OpenFiles}
	c := held
	defer func() { held = nil }()
	if !able || !c.prepare(p) {
		return 0, -1, false, nil
	}
	n, started := held.run()
	if !started {
		return 0, -1, false, nil
	}
	if c.failed[0] == 0 {
		return n, int(c.pidfd), true, nil
	}
	var status unix.WaitStatus
	for {
		if _, err := unix.Wait4(n, &status, 0, nil); err != unix.EINTR {
			break
		}
	}
	unix.Close(int(c.pidfd))
	const last = 1
	return 0, -1, c.failed[1] == last, unix.Errno(-c.failed[0])
}

// prepare writes down the calls of the child, and reports whether that can be.
func (c *child) prepare(p *Program) bool {
	if len(p.Files) < 3 || len(p.Files) > maxCalls-8 {
		return false
	}
	for _, fd := range p.Files {
		if fd >= 0 && fd < len(p.Files) { // it may be overwritten before its turn
			return false
		}
	}
	var errs [4]error
	c.path, errs[0] = unix.BytePtrFromString(p.Path)
	c.dir, errs[1] = unix.BytePtrFromString(p.Dir)
	c.argv, errs[2] = syscall.SlicePtrFromStrings(p.Argv)
	c.env, errs[3] = syscall.SlicePtrFromStrings(p.Env)
	for _, err := range errs {
		if err != nil {
			return false // package syscall says why
		}
	}
	c.clone = cloneArgs{
		cloneFlags:      unix.CLONE_VM | unix.CLONE_VFORK | unix.CLONE_PIDFD | unix.CLONE_CLEAR_SIGHAND,
		clonePidfd:      uint64(uintptr(unsafe.Pointer(&c.pidfd))),
		cloneExitSignal: uint64(unix.SIGCHLD),
	}
	c.add(unix.SYS_SETSID)
	c.add(unix.SYS_SETGROUPS, 1, uintptr(unsafe.Pointer(&c.group)))
	c.add(unix.SYS_SETGID, uintptr(p.GID))
	c.add(unix.SYS_SETUID, uintptr(p.UID))
	c.add(unix.SYS_CHDIR, uintptr(unsafe.Pointer(c.dir)))
	for to, fd := range p.Files {
		switch {
		case fd >= 0:
			c.add(unix.SYS_DUP3, uintptr(fd), uintptr(to), 0)
		case to < 3:
			c.add(unix.SYS_CLOSE, uintptr(to))
		}
	}
	c.add(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NOFILE, uintptr(unsafe.Pointer(&c.limit)), 0)
	c.add(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&c.mask)), 0, unsafe.Sizeof(c.mask))
	c.add(unix.SYS_EXECVE, uintptr(unsafe.Pointer(c.path)), uintptr(unsafe.Pointer(&c.argv[0])), uintptr(unsafe.Pointer(&c.env[0])))
	return true
}

// run makes the child, which holds this thread until it executes the program or fails.
// Signals are blocked in both meanwhile, since a handler must not run in the child.
func (c *child) run() (pid int, ok bool) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	all := [8]byte{255, 255, 255, 255, 255, 255, 255, 255}
	if _, _, e := unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&all)), uintptr(unsafe.Pointer(&c.mask)), unsafe.Sizeof(all), 0, 0); e != 0 {
		return 0, false
	}
	n := vfork(&c.clone, unsafe.Sizeof(c.clone), &c.calls[0], uintptr(c.count), &c.failed[0])
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&c.mask)), 0, unsafe.Sizeof(all), 0, 0) // as it was; cannot fail
	return n, n > 0
}
