//go:build !amd64

package raw

import "golang.org/x/sys/unix"

//go:uintptrescapes
func syscall6(trap, a1, a2, a3, a4, a5, a6 uintptr) (uintptr, unix.Errno) {
	r1, _, err := unix.RawSyscall6(trap, a1, a2, a3, a4, a5, a6)
	return r1, err
}
