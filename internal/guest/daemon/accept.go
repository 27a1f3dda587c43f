package daemon

import (
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/proto"
)

const (
	// lingerTime is how long the daemon listens on while no host asks who comes: the next one
	// may, after the one before was killed.
	lingerTime = 15 * time.Second
	backlog    = 64
	maxDoors   = 8
)

// doors are the ports on which the daemon listens for the host.
type doors struct {
	mu   sync.Mutex
	open map[uint16]*door // guarded by mu
}

// door is one of them.
type door struct {
	fd     int
	asking int         // guarded by doors.mu: requests that wait
	end    *time.Timer // guarded by doors.mu: closes it; nil while there are some
}

// accept waits for a connection that a program makes, and carries its bytes.
func (c *peer) accept(q *proto.Accept) bool {
	f, err := c.doors.wait(c, q)
	if err != nil {
		return c.reply(proto.Reply{}, err)
	}
	return c.carry(f)
}

func (d *doors) wait(c *peer, q *proto.Accept) (*os.File, error) {
	listener, err := d.enter(q.Port)
	if err != nil {
		return nil, step("listen on a port", "127.0.0.1", err)
	}
	defer d.leave(q.Port)
	defer listener.Close()
	if err := listener.SetReadDeadline(time.Now().Add(time.Duration(q.Wait))); err != nil {
		return nil, err
	}
	defer c.watchOut(func() { _ = listener.SetReadDeadline(past) })() // or it waits to its end
	raw, err := listener.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd := -1
	var failed error
	err = raw.Read(func(on uintptr) bool {
		fd, _, failed = unix.Accept4(int(on), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		return failed != unix.EAGAIN && failed != unix.ECONNABORTED && failed != unix.EINTR
	})
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, refuse(proto.Missing, "no program has connected")
	case err != nil:
		return nil, err
	case failed != nil:
		return nil, step("accept on a port", "127.0.0.1", failed)
	}
	return os.NewFile(uintptr(fd), "program"), nil
}

// enter listens on a port, unless the daemon does, and returns a descriptor for one request,
// which has a deadline of its own.
func (d *doors) enter(port uint16) (*os.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := d.open[port]
	if at == nil {
		if len(d.open) >= maxDoors {
			return nil, unix.EMFILE
		}
		fd, err := listen(port)
		if err != nil {
			return nil, err
		}
		if d.open == nil {
			d.open = map[uint16]*door{}
		}
		at = &door{fd: fd}
		d.open[port] = at
	}
	fd, err := unix.FcntlInt(uintptr(at.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		d.release(port, at)
		return nil, err
	}
	if at.end != nil {
		at.end.Stop()
		at.end = nil
	}
	at.asking++
	return os.NewFile(uintptr(fd), "door"), nil
}

func listen(port uint16) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) // connections that have ended hold the port otherwise
	if err = unix.Bind(fd, &unix.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}}); err == nil {
		err = unix.Listen(fd, backlog)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func (d *doors) leave(port uint16) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := d.open[port]
	at.asking--
	d.release(port, at)
}

// release closes a door some time after the last request. d.mu is held.
func (d *doors) release(port uint16, at *door) {
	if at.asking > 0 || at.end != nil {
		return
	}
	var end *time.Timer
	end = time.AfterFunc(lingerTime, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if at.end == end { // else it was asked again just now
			delete(d.open, port)
			unix.Close(at.fd)
		}
	})
	at.end = end
}
