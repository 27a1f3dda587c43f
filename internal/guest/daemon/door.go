package daemon

import (
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/raw"
)

// door is how a goroutine waits for a descriptor without a thread: an epoll, in
// Go's own, that tells of the descriptor once and only when it was asked to. What
// is in Go's own itself is told of at every turn, also of what nobody waits for,
// such as room that a reader made; each time a thread wakes for nothing.
type door struct {
	fd   int  // the descriptor
	held bool // the epoll has it
	file *os.File
	conn syscall.RawConn
}

func newDoor(fd int) (*door, error) {
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(poll, true); err != nil {
		unix.Close(poll)
		return nil, err
	}
	d := &door{fd: fd, file: os.NewFile(uintptr(poll), "epoll")}
	if d.conn, err = d.file.SyscallConn(); err != nil {
		d.file.Close()
		return nil, err
	}
	return d, nil
}

// wait waits until the descriptor is ready for events, or has an error.
func (d *door) wait(events uint32) error {
	if err := d.ask(events); err != nil {
		return err
	}
	return d.rest()
}

// rest waits for what the door was asked for, with which it tells no more.
func (d *door) rest() error {
	return d.conn.Read(func(poll uintptr) bool {
		var ev [1]unix.EpollEvent
		n, err := epollWait(int(poll), ev[:], 0)
		return n > 0 || err != nil && err != unix.EINTR
	})
}

// ask has the door tell once that the descriptor is ready for events; never for 0.
func (d *door) ask(events uint32) error {
	op := unix.EPOLL_CTL_MOD
	if !d.held {
		op, d.held = unix.EPOLL_CTL_ADD, true
	}
	var err error
	e := d.conn.Control(func(poll uintptr) {
		err = epollCtl(int(poll), op, d.fd, &unix.EpollEvent{Events: events | unix.EPOLLONESHOT, Fd: int32(d.fd)})
	})
	if e != nil {
		return e
	}
	return err
}

func (d *door) close() { d.file.Close() }

// lingerTime is how long a thread waits for what may come at once, rather than to
// be given away and woken again, which takes longer than many a command does.
const lingerTime = 5 * time.Millisecond

// nextTime is how long it waits for the host's next request, so that an agent that
// thinks a little finds it there. It sleeps meanwhile; only Go's scheduler asks
// every 10 ms whether it is still at work.
const nextTime = 100 * time.Millisecond

// scheduler is Go's own epoll. A thread that lingers gives way as soon as there is
// something else to do, which it would not notice otherwise: it may have been the
// one to wait for that. Doors keep the epoll quiet.
var scheduler = -1

// findScheduler finds it, as the only epoll there is when something was opened
// for Go to wait for, and nothing else yet.
func findScheduler() {
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	found := -1
	for _, f := range all {
		fd, err := strconv.Atoi(f.Name())
		if is, e := os.Readlink("/proc/self/fd/" + f.Name()); err != nil || e != nil || is != "anon_inode:[eventpoll]" {
			continue
		}
		if found >= 0 {
			return
		}
		found = fd
	}
	scheduler = found
}

// lingering counts the threads that linger. They keep Go from using some of its
// processors, so there are more of those than lingerers.
var lingering atomic.Int32

const (
	maxLingering = 2
	processors   = 4
)

func mayLinger() bool {
	if lingering.Add(1) <= maxLingering && scheduler >= 0 {
		return true
	}
	lingering.Add(-1)
	return false
}

// linger waits, without giving the thread away, until one of fds is ready, there is
// something else to do, or until has come. It reports whether to go on with fds.
func linger(fds []unix.PollFd, until time.Time) bool {
	fds = append(fds, unix.PollFd{Fd: int32(scheduler), Events: unix.POLLIN})
	for {
		left := time.Until(until)
		if left <= 0 {
			return false
		}
		ts := unix.NsecToTimespec(int64(left))
		n, e := raw.Direct(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fds[0])), uintptr(len(fds)), uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
		if e != unix.EINTR { // the scheduler asks in that way
			return e == 0 && n > 0 && fds[len(fds)-1].Revents == 0
		}
	}
}
