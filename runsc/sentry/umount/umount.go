// Package umount is the sentry's command of that name, with which its boot
// command gets rid of /proc once it has given up the right to do so itself.
//
// A process that serves this one purpose has no use for what all the kernel's
// packages prepare as they are initialized, so this happens before them: Go
// initializes packages in the order of their paths, as far as their imports
// allow, and this one imports next to nothing.
package umount

import (
	"os"
	"syscall"
)

// What gVisor calls itself with.
const (
	command = "umount"
	syncFD  = 3
	flag    = "--sync-fd=3"
	proc    = "/proc"
)

func init() {
	if len(os.Args) == 4 && os.Args[1] == command && os.Args[2] == flag && os.Args[3] == proc {
		os.Exit(serve())
	}
}

// serve waits for a byte, unmounts /proc and returns the exit status.
func serve() int {
	for {
		switch n, err := syscall.Read(syncFD, make([]byte, 1)); {
		case err == syscall.EINTR:
			continue
		case n != 1:
			return 1 // who wanted it has ended
		}
		if syscall.Unmount(proc, syscall.MNT_DETACH) != nil {
			return 1
		}
		return 0
	}
}
