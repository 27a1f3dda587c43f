package raw

import "golang.org/x/sys/unix"

// syscall6 is unix.RawSyscall6 in a form that gVisor's systrap makes cheap: 2 µs for
// 12. Its own, with the number in a register that was set elsewhere, is a signal
// each time.
//
//go:noescape
func syscall6(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1 uintptr, err unix.Errno)
