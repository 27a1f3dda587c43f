package daemon

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// joinCall is a system call that only Atoll's gVisor has: see runsc/sentry/join.go. Other
	// kernels refuse it.
	joinCall  = 1999
	joinPiece = 32 << 10
	// maxJoined is how many connections the kernel carries at a time: each keeps a thread for
	// as long. It is what previews keep of connections without a request.
	maxJoined = 64
)

// joinInKernel has the kernel carry bytes between the host and a port. It returns when
// something else is to be done, at once where the kernel cannot, and gives what was read of
// each side that the other has not got.
func (c *peer) joinInKernel(hostFD, portFD int) (left [2][]byte) {
	defer c.joined.Add(-1)
	if c.joined.Add(1) > maxJoined || !c.of.instead(c.Conn, joinedHost(hostFD)) {
		return left
	}
	buf := new([2][joinPiece]byte)
	n, _, e := unix.Syscall(joinCall, uintptr(hostFD), uintptr(portFD), uintptr(unsafe.Pointer(buf)))
	if e == 0 {
		for i := range left {
			left[i] = buf[i][:uint32(n>>(32*i))]
		}
	}
	return left
}

// joinedHost is a connection of the host that the kernel carries.
type joinedHost int

// Close ends it. Closing the descriptor would not, as long as the kernel uses it.
func (fd joinedHost) Close() error { return unix.Shutdown(int(fd), unix.SHUT_RDWR) }
