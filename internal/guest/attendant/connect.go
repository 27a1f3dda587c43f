package attendant

import (
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/proto"
)

// connect joins the connection with a port of the sandbox, until both directions
// have ended. Nothing is asked on it any more.
func (c *peer) connect(q *proto.Connect) bool {
	f, raw, err := dialPort(q.Port)
	if err != nil {
		return c.reply(proto.Reply{}, err)
	}
	defer f.Close()
	if !c.reply(proto.Reply{}, nil) {
		return false
	}
	host := c.Transport.(*os.File)
	hostRaw, err := host.SyscallConn()
	if err != nil {
		return false
	}
	back := make(chan struct{})
	go func() {
		defer close(back)
		if copyAll(host, f.Read) == nil {
			endWriting(hostRaw)
		}
		f.Close()
		c.SetReadDeadline(past) //nolint:errcheck // it is closed then
	}()
	if copyAll(f, c.Raw) == nil {
		endWriting(raw)
		awaitHangUp(hostRaw)
		f.Close()
	}
	<-back // what the program still has to say goes on
	return false
}

func endWriting(c syscall.RawConn) {
	c.Control(func(fd uintptr) { unix.Shutdown(int(fd), unix.SHUT_WR) }) //nolint:errcheck // it has ended then
}

// awaitHangUp returns when the other end is closed for both directions.
func awaitHangUp(c syscall.RawConn) {
	c.Read(func(fd uintptr) bool { //nolint:errcheck // it ends with its deadline, too
		p := []unix.PollFd{{Fd: int32(fd)}}
		n, err := unix.Poll(p, 0)
		return err != nil && err != unix.EINTR || n > 0 && p[0].Revents&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0
	})
}

// copyAll writes what is read until its end.
func copyAll(w io.Writer, read func([]byte) (int, error)) error {
	b := pieces.Get().(*[proto.Piece]byte)
	defer pieces.Put(b)
	for {
		n, err := read(b[:])
		if n > 0 {
			if _, err := w.Write(b[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// dialPort connects to a port of the loopback interface.
func dialPort(port uint16) (*os.File, syscall.RawConn, error) {
	v6 := &unix.SockaddrInet6{Port: int(port)}
	v6.Addr[15] = 1
	var first error
	for _, try := range []struct {
		family int
		addr   unix.Sockaddr
	}{{unix.AF_INET, &unix.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}}}, {unix.AF_INET6, v6}} {
		f, raw, err := dialAddr(try.family, try.addr)
		if err == nil {
			return f, raw, nil
		}
		if first == nil {
			first = err
		}
	}
	if first == unix.ECONNREFUSED {
		return nil, nil, refuse(proto.Missing, "nothing listens on port %d of the sandbox", port)
	}
	return nil, nil, first
}

func dialAddr(family int, addr unix.Sockaddr) (*os.File, syscall.RawConn, error) {
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	err = unix.Connect(fd, addr)
	if err != nil && err != unix.EINPROGRESS {
		unix.Close(fd)
		return nil, nil, err
	}
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1) //nolint:errcheck // a matter of speed
	f := os.NewFile(uintptr(fd), "port")
	raw, e := f.SyscallConn()
	if e != nil {
		f.Close()
		return nil, nil, e
	}
	if err == nil {
		return f, raw, nil
	}
	// It is writable once there is a connection, or none; which may be so by now,
	// and then nobody tells.
	e = raw.Write(func(fd uintptr) bool {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		n, err := unix.Poll(p, 0)
		return n > 0 || err != nil && err != unix.EINTR
	})
	if e == nil {
		e = raw.Control(func(fd uintptr) {
			var n int
			if n, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR); err == nil && n != 0 {
				err = unix.Errno(n)
			}
		})
	}
	if e != nil || err != nil {
		f.Close()
		if e != nil {
			err = e
		}
		return nil, nil, err
	}
	return f, raw, nil
}
