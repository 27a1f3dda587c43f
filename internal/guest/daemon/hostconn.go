package daemon

import (
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/wire"
)

// hostConn is a connection with the host.
type hostConn struct {
	*os.File
	raw syscall.RawConn
}

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
	f := os.NewFile(uintptr(fd), "host")
	conn, err := f.SyscallConn()
	if err != nil {
		f.Close()
		return nil, err
	}
	return &hostConn{f, conn}, nil
}

// Read implements io.Reader.
func (c *hostConn) Read(p []byte) (n int, err error) {
	if e := c.raw.Read(func(fd uintptr) bool {
		n, err = readNow(int(fd), p)
		return err != unix.EAGAIN
	}); e != nil {
		return 0, e
	}
	if n == 0 && err == nil && len(p) > 0 {
		err = io.EOF
	}
	return n, err
}

// Write implements io.Writer.
func (c *hostConn) Write(p []byte) (total int, err error) {
	if e := c.raw.Write(func(fd uintptr) bool {
		for err = nil; total < len(p) && err == nil; {
			var n int
			n, err = writeNow(int(fd), p[total:])
			total += n
		}
		return err != unix.EAGAIN
	}); e != nil {
		return total, e
	}
	return total, err
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
