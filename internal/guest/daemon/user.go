package daemon

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/raw"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

// asUser runs f with the rights of the unprivileged user, and only those: what
// f creates is the user's, and a planted link leads f nowhere the user could not
// go. The raw calls change this thread alone; f must stay on it.
func asUser(f func() error) (err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const keep = ^uintptr(0)
	if _, e := raw.Direct(unix.SYS_SETRESGID, keep, wire.GID, keep, 0, 0, 0); e != 0 {
		return fmt.Errorf("setresgid: %w", e)
	}
	if _, e := raw.Direct(unix.SYS_SETRESUID, keep, wire.UID, keep, 0, 0, 0); e != 0 {
		_, _ = raw.Direct(unix.SYS_SETRESGID, keep, 0, keep, 0, 0, 0)
		return fmt.Errorf("setresuid: %w", e)
	}
	defer func() {
		_, e1 := raw.Direct(unix.SYS_SETRESUID, keep, 0, keep, 0, 0, 0)
		_, e2 := raw.Direct(unix.SYS_SETRESGID, keep, 0, keep, 0, 0, 0)
		if e1 != 0 || e2 != 0 {
			panic("atoll-guestd: cannot become uid 0 again") // going on as someone else would be worse
		}
	}()
	return f()
}
