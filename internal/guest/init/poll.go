package guestinit

import (
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/raw"
)

// linger is how long the loop waits by a plain poll before it parks. A poll
// answers at once but keeps Go's only processor, and the longer it does the more
// likely is the monitor thread to wake and look why.
const linger = 20 * time.Millisecond

// poller waits for descriptors to become ready.
type poller struct {
	fds     []unix.PollFd
	targets []func()

	// To park, the loop's goroutine waits for nest, an epoll that holds what
	// fds holds, in Go's own epoll: then no thread of the process runs.
	nest *os.File
	conn interface {
		Read(func(uintptr) bool) error
	}
	nestFD int
	held   map[int32]int16
	woken  []unix.EpollEvent // what park found

	now int16 // the events of the target that is called
}

func newPoller() (*poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, step("epoll", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, step("epoll", err)
	}
	p := &poller{nest: os.NewFile(uintptr(fd), "epoll"), nestFD: fd, held: make(map[int32]int16), woken: make([]unix.EpollEvent, 0, 8)}
	p.conn, err = p.nest.SyscallConn()
	return p, step("epoll", err)
}

func (p *poller) reset() { p.fds, p.targets = p.fds[:0], p.targets[:0] }

// watch calls f when fd is ready, in the next wait only.
func (p *poller) watch(fd int, events int16, f func()) {
	p.fds = append(p.fds, unix.PollFd{Fd: int32(fd), Events: events})
	p.targets = append(p.targets, f)
}

// wait waits for at most d, or for ever if d is negative, and returns how many
// descriptors are ready.
func (p *poller) wait(d time.Duration) int {
	short := linger
	if d >= 0 && d < short {
		short = d
	}
	n := p.poll(short)
	if n > 0 || d >= 0 && d <= linger {
		return n
	}
	p.park(d)
	if n := p.mark(); n > 0 {
		return n
	}
	return p.poll(0)
}

// mark notes down in fds what park found, and returns for how many of them.
func (p *poller) mark() int {
	n := 0
	for i := range p.fds {
		p.fds[i].Revents = 0
		for _, ev := range p.woken {
			if ev.Fd == p.fds[i].Fd {
				p.fds[i].Revents = int16(ev.Events)
				n++
			}
		}
	}
	return n
}

// poll is ppoll(2), straight to the kernel.
func (p *poller) poll(d time.Duration) int {
	ts := unix.NsecToTimespec(int64(d))
	n, e := raw.Direct(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&p.fds[0])), uintptr(len(p.fds)), uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
	if e != 0 {
		return 0
	}
	return int(n)
}

// dispatch calls the functions of what is ready.
func (p *poller) dispatch(n int) {
	for i := 0; n > 0 && i < len(p.fds); i++ {
		if p.fds[i].Revents != 0 {
			n--
			p.now = p.fds[i].Revents
			p.targets[i]()
		}
	}
}

// park waits without a running thread.
func (p *poller) park(d time.Duration) {
	p.sync()
	var deadline time.Time
	if d >= 0 {
		deadline = time.Now().Add(d)
	}
	p.nest.SetReadDeadline(deadline)
	p.woken = p.woken[:0]
	p.conn.Read(func(uintptr) bool {
		all := p.woken[:cap(p.woken)]
		n, e := raw.Direct(unix.SYS_EPOLL_PWAIT, uintptr(p.nestFD), uintptr(unsafe.Pointer(&all[0])), uintptr(len(all)), 0, 0, 0)
		if e == 0 {
			p.woken = all[:n]
		}
		return len(p.woken) > 0
	})
}

// sync makes the nest hold what fds holds. Level-triggered, it can be asked at
// any time; events of epoll and poll have the same values.
func (p *poller) sync() {
	want := make(map[int32]int16, len(p.fds))
	for _, f := range p.fds {
		want[f.Fd] |= f.Events
	}
	for fd := range p.held {
		if _, ok := want[fd]; !ok {
			// A closed descriptor has left by itself.
			unix.EpollCtl(p.nestFD, unix.EPOLL_CTL_DEL, int(fd), nil)
			delete(p.held, fd)
		}
	}
	for fd, events := range want {
		ev := unix.EpollEvent{Fd: fd, Events: uint32(events)}
		// The number may have been closed and given out again since.
		if unix.EpollCtl(p.nestFD, unix.EPOLL_CTL_ADD, int(fd), &ev) == unix.EEXIST && p.held[fd] != events {
			unix.EpollCtl(p.nestFD, unix.EPOLL_CTL_MOD, int(fd), &ev)
		}
		p.held[fd] = events
	}
}
