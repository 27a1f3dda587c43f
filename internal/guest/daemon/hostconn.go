package daemon

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/wire"
)

// hostConn is a connection with the host.
type hostConn struct{ *os.File }

// dialHost connects to the host.
func dialHost() (*hostConn, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	err = unix.Connect(fd, &unix.SockaddrUnix{Name: wire.DaemonMount + "/" + wire.HostSocket})
	if err == nil {
		err = unix.SetNonblock(fd, true) // so that Go's poller waits for it
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &hostConn{os.NewFile(uintptr(fd), "host")}, nil
}

// Close ends the connection, also where other descriptors of it are open.
func (c *hostConn) Close() error {
	shutdown(c.File, unix.SHUT_RDWR)
	return c.File.Close()
}

// shutdown ends a direction of a socket, or both. It has no effect on one that is
// closed.
func shutdown(socket *os.File, how int) {
	conn, err := socket.SyscallConn()
	if err == nil {
		conn.Control(func(fd uintptr) { unix.Shutdown(int(fd), how) }) //nolint:errcheck // it is closed then
	}
}
