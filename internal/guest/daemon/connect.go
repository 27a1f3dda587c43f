package daemon

import (
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/proto"
)

// connect carries bytes between the connection and a port of the sandbox, until both
// directions have ended. Nothing is asked on it any more.
func (c *peer) connect(q *proto.Connect) bool {
	port, err := c.reach(q)
	if err != nil {
		return c.reply(proto.Reply{}, err)
	}
	return c.carry(port)
}

// carry answers that there is a connection, and carries its bytes from then on.
func (c *peer) carry(port *os.File) bool {
	if !c.reply(proto.Reply{}, nil) || c.Waiting() { // nothing comes before the answer
		port.Close()
		return false
	}
	r, err := c.relay()
	if err != nil {
		return false
	}
	hf, _ := takeFD(c.Transport.(*hostConn).File)
	pf, _ := takeFD(port)
	j := r.join(hf, pf, c.joinInKernel(hf, pf))
	if c.of.instead(c.Conn, j) {
		<-j.done
	}
	return false
}

const (
	// startTime is how long after it was started something may begin to listen.
	startTime = 30 * time.Second
	// maxAwaiting is how many requests wait for that at a time.
	maxAwaiting = 128
	// How often the daemon looks whether something listens: at first, and at last. The
	// kernel has no event for it.
	soon, late = 5 * time.Millisecond, 100 * time.Millisecond
)

// reach connects to a port. Where something was started lately, it may yet begin to
// listen.
func (c *peer) reach(q *proto.Connect) (f *os.File, err error) {
	f, err = dialPort(q.Port)
	if q.Wait <= 0 || !refused(err) || time.Since(time.Unix(0, c.told.Load())) > startTime {
		return f, err
	}
	defer c.awaiting.Add(-1)
	if c.awaiting.Add(1) > maxAwaiting {
		return f, err
	}
	over := make(chan struct{})
	defer c.watchOut(sync.OnceFunc(func() { close(over) }))()
	end := time.After(time.Duration(q.Wait))
	for pause := soon; ; pause = min(pause*5/4, late) {
		select {
		case <-over:
			return nil, err
		case <-end:
			return nil, err
		case <-time.After(pause):
		}
		if f, err = dialPort(q.Port); !refused(err) {
			return f, err
		}
	}
}

// refused reports whether nothing listens on a port.
func refused(err error) bool {
	e, ok := errors.AsType[*proto.Error](err)
	return ok && e.Reason == proto.Missing
}

// dialPort connects to a port of the loopback interface.
func dialPort(port uint16) (f *os.File, err error) {
	v6 := &unix.SockaddrInet6{Port: int(port)}
	v6.Addr[15] = 1
	var first error
	for _, try := range []struct {
		family int
		addr   unix.Sockaddr
	}{{unix.AF_INET, &unix.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}}}, {unix.AF_INET6, v6}} {
		if f, err = dialAddr(try.family, try.addr); err == nil {
			return f, nil
		}
		if first == nil {
			first = err
		}
	}
	if first == unix.ECONNREFUSED {
		return nil, refuse(proto.Missing, "nothing listens on port %d of the sandbox", port)
	}
	return nil, first
}

func dialAddr(family int, addr unix.Sockaddr) (*os.File, error) {
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1) //nolint:errcheck // a matter of speed
	err = unix.Connect(fd, addr)
	if err != nil && err != unix.EINPROGRESS {
		unix.Close(fd)
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "port")
	if err == unix.EINPROGRESS {
		err = awaitConnect(f)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// awaitConnect waits until there is a connection, or none. That may be so by now, and
// then there is no event.
func awaitConnect(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	if err := conn.Write(func(fd uintptr) bool {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		n, err := unix.Poll(p, 0)
		return n > 0 || err != nil && err != unix.EINTR
	}); err != nil {
		return err
	}
	var n int
	if e := conn.Control(func(fd uintptr) { n, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR) }); e != nil {
		return e
	}
	if err == nil && n != 0 {
		err = unix.Errno(n)
	}
	return err
}

func takeFD(f *os.File) (fd int, err error) {
	defer f.Close()
	raw, err := f.SyscallConn()
	if err != nil {
		return -1, err
	}
	e := raw.Control(func(old uintptr) { fd, err = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0) })
	if e != nil {
		return -1, e
	}
	return fd, err
}
