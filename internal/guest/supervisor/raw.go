package supervisor

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls between a request and its program go to the kernel directly. The
// usual wrappers tell Go's scheduler of each, which wakes its monitor thread;
// under gVisor that thread's polling costs more than the calls themselves. None
// of these blocks: they are made on what is ready, or on memory.

func read(fd int, b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	for {
		n, _, e := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		if e == 0 {
			return int(n), nil
		}
		if e != unix.EINTR {
			return 0, e
		}
	}
}

func write(fd int, b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	for {
		n, _, e := unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		if e == 0 {
			return int(n), nil
		}
		if e != unix.EINTR {
			return 0, e
		}
	}
}

func closeFD(fd int) error {
	_, _, e := unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0)
	return number(e)
}

func open(path string, flags int, mode uint32) (int, error) {
	p, err := unix.BytePtrFromString(path)
	if err != nil {
		return -1, err
	}
	fd, _, e := unix.RawSyscall6(unix.SYS_OPENAT, atCWD, uintptr(unsafe.Pointer(p)), uintptr(flags), uintptr(mode), 0, 0)
	if e != 0 {
		return -1, e
	}
	return int(fd), nil
}

func unlink(path string) error {
	p, err := unix.BytePtrFromString(path)
	if err != nil {
		return err
	}
	_, _, e := unix.RawSyscall(unix.SYS_UNLINKAT, atCWD, uintptr(unsafe.Pointer(p)), 0)
	return number(e)
}

func exists(path string) bool {
	p, err := unix.BytePtrFromString(path)
	if err != nil {
		return false
	}
	_, _, e := unix.RawSyscall(unix.SYS_FACCESSAT, atCWD, uintptr(unsafe.Pointer(p)), unix.F_OK)
	return e == 0
}

// wait is wait4(2) with WNOHANG; pid 0 says that nothing has ended.
func wait(pid int, status *unix.WaitStatus, usage *unix.Rusage) (int, error) {
	var st int32
	got, _, e := unix.RawSyscall6(unix.SYS_WAIT4, uintptr(pid), uintptr(unsafe.Pointer(&st)), unix.WNOHANG, uintptr(unsafe.Pointer(usage)), 0, 0)
	*status = unix.WaitStatus(st)
	return int(got), number(e)
}

// readable returns how many bytes stand in a pipe.
func readable(fd int) int {
	var n int32
	if _, _, e := unix.RawSyscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCINQ, uintptr(unsafe.Pointer(&n))); e != 0 {
		return 0
	}
	return int(n)
}

// nap does nothing for d, but for a signal.
func nap(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0)
}

const atCWD = ^uintptr(99) // AT_FDCWD

func number(e unix.Errno) error {
	if e == 0 {
		return nil
	}
	return e
}
