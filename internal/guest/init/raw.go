package guestinit

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/raw"
)

func unlink(path string) error {
	p, err := unix.BytePtrFromString(path)
	if err != nil {
		return err
	}
	_, e := raw.Direct(unix.SYS_UNLINKAT, raw.CWD, uintptr(unsafe.Pointer(p)), 0, 0, 0, 0)
	return raw.Number(e)
}

func exists(path string) bool {
	p, err := unix.BytePtrFromString(path)
	if err != nil {
		return false
	}
	_, e := raw.Direct(unix.SYS_FACCESSAT, raw.CWD, uintptr(unsafe.Pointer(p)), unix.F_OK, 0, 0, 0)
	return e == 0
}

// nap does nothing for d, but for a signal.
func nap(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	raw.Direct(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0, 0, 0, 0)
}
