package daemon

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/confine"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

// rootPrograms says that programs of this sandbox run as uid 0. It is set before
// the first host is served.
var rootPrograms bool

// asUser runs f with the rights of the user that programs run as, and only those:
// what f creates is the user's, and a planted link leads f nowhere the user could not
// go. Raw system calls change this thread alone; f must stay on it.
func asUser(f func() error) (err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if rootPrograms {
		return confine.AsRoot(f)
	}
	const keep = ^uintptr(0)
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESGID, keep, wire.GID, keep); e != 0 {
		return fmt.Errorf("setresgid: %w", e)
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, keep, wire.UID, keep); e != 0 {
		_, _, _ = unix.RawSyscall(unix.SYS_SETRESGID, keep, 0, keep)
		return fmt.Errorf("setresuid: %w", e)
	}
	defer func() {
		_, _, e1 := unix.RawSyscall(unix.SYS_SETRESUID, keep, 0, keep)
		_, _, e2 := unix.RawSyscall(unix.SYS_SETRESGID, keep, 0, keep)
		if e1 != 0 || e2 != 0 {
			panic("atoll-guestd: cannot become uid 0 again") // going on as someone else would be worse
		}
	}()
	return f()
}
