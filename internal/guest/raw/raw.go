// Package raw makes system calls without telling Go's scheduler of them. The usual
// wrappers wake its monitor thread with each call; under gVisor that thread's
// polling costs more than the calls themselves. So nothing here may block for long:
// it is for what is ready, for memory, or for files that are near.
package raw

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// CWD is AT_FDCWD.
const CWD = ^uintptr(99)

// Patient has what files may keep waiting told to the scheduler after all: where some
// are far away. A processor that waits for one is lost to the program otherwise, and
// all of it stands still when the garbage collector waits for that. It is set before
// there is a second goroutine.
var Patient bool

// Call makes a system call, by way of the scheduler if Patient.
//
//go:uintptrescapes
func Call(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1 uintptr, err unix.Errno) {
	if Patient {
		r1, _, err = unix.Syscall6(trap, a1, a2, a3, a4, a5, a6)
	} else {
		r1, err = syscall6(trap, a1, a2, a3, a4, a5, a6)
	}
	return r1, err
}

// Direct makes a system call that does not wait, or is to keep its thread while it
// does.
//
//go:uintptrescapes
func Direct(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1 uintptr, err unix.Errno) {
	return syscall6(trap, a1, a2, a3, a4, a5, a6)
}

// Read is read(2).
func Read(fd int, b []byte) (int, error) { return move(unix.SYS_READ, fd, b) }

// Write is write(2); it may write less than all of b.
func Write(fd int, b []byte) (int, error) { return move(unix.SYS_WRITE, fd, b) }

func move(call uintptr, fd int, b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	for {
		n, e := Call(call, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), 0, 0, 0)
		if e == 0 {
			return int(n), nil
		}
		if e != unix.EINTR {
			return 0, e
		}
	}
}

// Close is close(2).
func Close(fd int) error {
	_, e := syscall6(unix.SYS_CLOSE, uintptr(fd), 0, 0, 0, 0, 0)
	return Number(e)
}

// OpenAt is openat(2); dir may be unix.AT_FDCWD.
func OpenAt(dir int, path string, flags int, mode uint32) (int, error) {
	p, err := unix.BytePtrFromString(path)
	if err != nil {
		return -1, err
	}
	for {
		fd, e := Call(unix.SYS_OPENAT, uintptr(dir), uintptr(unsafe.Pointer(p)), uintptr(flags), uintptr(mode), 0, 0)
		if e == 0 {
			return int(fd), nil
		}
		if e != unix.EINTR {
			return -1, e
		}
	}
}

// Reap is wait4(2) with WNOHANG; pid 0 says that nothing has ended.
func Reap(pid int, status *unix.WaitStatus, usage *unix.Rusage) (int, error) {
	var st int32
	got, e := syscall6(unix.SYS_WAIT4, uintptr(pid), uintptr(unsafe.Pointer(&st)), unix.WNOHANG, uintptr(unsafe.Pointer(usage)), 0, 0)
	*status = unix.WaitStatus(st)
	return int(got), Number(e)
}

// Readable returns how many bytes stand in a pipe.
func Readable(fd int) (int, error) {
	var n int32
	_, e := syscall6(unix.SYS_IOCTL, uintptr(fd), unix.TIOCINQ, uintptr(unsafe.Pointer(&n)), 0, 0, 0)
	return int(n), Number(e)
}

// Number is e as an error, nil when it is 0.
func Number(e unix.Errno) error {
	if e == 0 {
		return nil
	}
	return e
}
