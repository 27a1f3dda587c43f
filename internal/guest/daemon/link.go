package daemon

import (
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/raw"
)

// link is the connection with the host.
type link struct {
	file *os.File // which only keeps the descriptor open while it is used
	conn syscall.RawConn
	in   *door

	mu   sync.Mutex
	over bool  // guarded by mu
	out  *door // guarded by mu; nil until the host was slower than what is sent
}

// newLink takes a socket that blocks.
func newLink(fd int) (*link, error) {
	l := &link{file: os.NewFile(uintptr(fd), "host")} // unknown to Go's epoll, as it blocks
	err := unix.SetNonblock(fd, true)
	if err == nil {
		l.conn, err = l.file.SyscallConn()
	}
	if err == nil {
		l.in, err = newDoor(fd)
	}
	if err != nil {
		l.file.Close()
		return nil, err
	}
	return l, nil
}

func (l *link) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		if e := l.conn.Read(func(fd uintptr) bool { n, err = raw.Read(int(fd), p); return true }); e != nil {
			return 0, e
		}
		switch {
		case err == nil && n == 0:
			return 0, io.EOF
		case err != unix.EAGAIN:
			return n, err
		}
		if err := l.in.wait(unix.EPOLLIN); err != nil {
			return 0, err
		}
	}
}

func (l *link) Write(p []byte) (total int, err error) {
	for {
		if e := l.conn.Write(func(fd uintptr) bool {
			for total < len(p) && err == nil {
				var n int
				n, err = raw.Write(int(fd), p[total:])
				total += n
			}
			return true
		}); e != nil {
			return total, e
		}
		if err != unix.EAGAIN {
			return total, err
		}
		out, e := l.exit()
		if e == nil {
			e = out.wait(unix.EPOLLOUT)
		}
		if e != nil {
			return total, e
		}
		err = nil
	}
}

// exit is the door for what is to be sent.
func (l *link) exit() (*door, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return nil, os.ErrClosed
	}
	var err error
	if l.out == nil {
		l.out, err = newDoor(l.in.fd)
	}
	return l.out, err
}

// SetReadDeadline is for Reads that have to wait.
func (l *link) SetReadDeadline(t time.Time) error { return l.in.file.SetReadDeadline(t) }

// linger waits as linger does until there is something to read, or one of others is
// ready, in which that is noted.
func (l *link) linger(others []unix.PollFd, until time.Time) (heard, on bool) {
	fds := append(others, unix.PollFd{Fd: int32(l.in.fd), Events: unix.POLLIN})
	e := l.conn.Read(func(uintptr) bool { on = linger(fds, until); return true })
	return e != nil || fds[len(others)].Revents != 0, e == nil && on
}

// take returns the descriptor, for something else to wait for. The link is over.
func (l *link) take() (fd int, err error) {
	defer l.release()
	e := l.conn.Control(func(old uintptr) { fd, err = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0) })
	if e != nil {
		return -1, e
	}
	return fd, err
}

// Close ends the connection, whoever waits for it.
func (l *link) Close() error {
	l.conn.Control(func(fd uintptr) { unix.Shutdown(int(fd), unix.SHUT_RDWR) }) //nolint:errcheck // then it has ended
	l.release()
	return nil
}

func (l *link) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	l.in.close()
	if l.out != nil {
		l.out.close()
	}
	l.file.Close()
}
