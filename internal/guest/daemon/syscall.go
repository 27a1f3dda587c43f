package daemon

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/raw"
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

// readNow and writeNow are for descriptors that do not block: Go's scheduler is not
// told, which would wake its monitor thread.
func readNow(fd int, b []byte) (int, error) { return moveNow(unix.SYS_READ, fd, b) }

func writeNow(fd int, b []byte) (int, error) { return moveNow(unix.SYS_WRITE, fd, b) }

func moveNow(call uintptr, fd int, b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	return retry(func() (int, error) {
		n, e := raw.Direct(call, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), 0, 0, 0)
		if e != 0 {
			return 0, e
		}
		return int(n), nil
	})
}

// pollBriefly is what an epoll has within a time, for which it keeps the processor.
func pollBriefly(fd int, events []unix.EpollEvent, within time.Duration) (int, error) {
	n, e := raw.Direct(unix.SYS_EPOLL_PWAIT, uintptr(fd), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), uintptr(within.Milliseconds()), 0, 0)
	if e != 0 {
		return 0, e
	}
	return int(n), nil
}

// readable is how many bytes a pipe holds.
func readable(fd int) (int, error) { return raw.Readable(fd) }

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
