package daemon

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// retry repeats a system call that a signal interrupted.
func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != unix.EINTR {
			return max(n, 0), err
		}
	}
}

func read(fd int, b []byte) (int, error) {
	return retry(func() (int, error) { return unix.Read(fd, b) })
}

func write(fd int, b []byte) (int, error) {
	return retry(func() (int, error) { return unix.Write(fd, b) })
}

func openAt(dir int, name string, flags int, mode uint32) (int, error) {
	fd, err := retry(func() (int, error) { return unix.Openat(dir, name, flags, mode) })
	if err != nil {
		return -1, err
	}
	return fd, nil
}

// readable is how many bytes a pipe holds.
func readable(fd int) (int, error) { return unix.IoctlGetInt(fd, unix.TIOCINQ) }

// closeRead closes a descriptor that nothing was written to, which cannot fail.
func closeRead(fd int) { _ = unix.Close(fd) }

// setTime is futimens(3): golang.org/x/sys has it for paths alone.
func setTime(fd int, at unix.Timespec) error {
	both := [2]unix.Timespec{at, at}
	if _, _, e := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(fd), 0, uintptr(unsafe.Pointer(&both)), 0, 0, 0); e != 0 {
		return e
	}
	return nil
}
