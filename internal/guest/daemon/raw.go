package daemon

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/raw"
)

func pread(fd int, b []byte, at int64) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	for {
		n, e := raw.Call(unix.SYS_PREAD64, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), uintptr(at), 0, 0)
		if e == 0 {
			return int(n), nil
		}
		if e != unix.EINTR {
			return 0, e
		}
	}
}

// shut closes what nothing was written to, which cannot fail.
func shut(fd int) { _ = raw.Close(fd) }

func fstat(fd int, st *unix.Stat_t) error {
	_, e := raw.Call(unix.SYS_FSTAT, uintptr(fd), uintptr(unsafe.Pointer(st)), 0, 0, 0, 0)
	return raw.Number(e)
}

// standsAt follows links.
func standsAt(path string) (st unix.Statx_t, err error) {
	p, err := unix.BytePtrFromString(path)
	if err != nil {
		return st, err
	}
	_, e := raw.Call(unix.SYS_STATX, raw.CWD, uintptr(unsafe.Pointer(p)), 0, unix.STATX_BASIC_STATS, uintptr(unsafe.Pointer(&st)), 0)
	return st, raw.Number(e)
}

// executable asks with the rights in effect.
func executable(path string) error {
	p, err := unix.BytePtrFromString(path)
	if err != nil {
		return err
	}
	_, e := raw.Call(unix.SYS_FACCESSAT2, raw.CWD, uintptr(unsafe.Pointer(p)), unix.X_OK, unix.AT_EACCESS, 0, 0)
	return raw.Number(e)
}

func fchmod(fd int, mode uint32) error {
	_, e := raw.Call(unix.SYS_FCHMOD, uintptr(fd), uintptr(mode), 0, 0, 0, 0)
	return raw.Number(e)
}

// setTime is futimens(3), which package unix has only by way of /proc.
func setTime(fd int, at unix.Timespec) error {
	both := [2]unix.Timespec{at, at}
	_, e := raw.Call(unix.SYS_UTIMENSAT, uintptr(fd), 0, uintptr(unsafe.Pointer(&both)), 0, 0, 0)
	return raw.Number(e)
}

// epollWait returns at once, or after timeout in ms.
func epollWait(fd int, events []unix.EpollEvent, timeout int) (int, error) {
	n, e := raw.Direct(unix.SYS_EPOLL_PWAIT, uintptr(fd), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), uintptr(timeout), 0, 0)
	if e != 0 {
		return 0, e
	}
	return int(n), nil
}

func epollCtl(poll, op, fd int, event *unix.EpollEvent) error {
	_, e := raw.Direct(unix.SYS_EPOLL_CTL, uintptr(poll), uintptr(op), uintptr(fd), uintptr(unsafe.Pointer(event)), 0, 0)
	return raw.Number(e)
}
