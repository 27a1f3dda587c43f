package daemon

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/proto"
)

// relay moves bytes between connections of the host and ports of the sandbox, where the kernel
// does not: see joinInKernel. It does so in one thread that waits for all of them: in gVisor
// every system call is dear, and to wake a thread is dearer.
type relay struct {
	poll int

	mu     sync.Mutex        // not held while it waits
	joints map[int32]*joint  // guarded by mu
	last   int32             // guarded by mu; what a joint was called
	stuck  map[*joint]bool   // guarded by mu; whose host has gone, but not their data
	buf    [proto.Piece]byte // guarded by mu
}

// stuckTime is how long data of a host that has gone waits for a program that does
// not read it.
const stuckTime = 10 * time.Second

// Sides of a joint, which events come with.
const (
	host = iota
	port
)

// joint is a connection of the host and one with a port, joined.
type joint struct {
	relay *relay
	id    int32
	ends  [2]end
	ways  [2]way // by where they come from
	since time.Time
	done  chan struct{} // closed with both
}

// end is a socket.
type end struct {
	fd    int
	held  bool // by the epoll
	waits uint32
}

// way is one direction.
type way struct {
	left  []byte // what was read and the other end does not take yet
	ended bool
}

// newRelay starts a relay, which lives as long as the guest daemon.
func newRelay() (*relay, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	r := &relay{poll: fd, joints: make(map[int32]*joint), stuck: make(map[*joint]bool)}
	go r.run()
	return r, nil
}

// join joins two sockets that do not block, and takes them. left is what was read of each
// side before and goes to the other.
func (r *relay) join(hostFD, portFD int, left [2][]byte) *joint {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	j := &joint{relay: r, id: r.last, ends: [2]end{host: {fd: hostFD}, port: {fd: portFD}}, done: make(chan struct{})}
	j.ways[host].left, j.ways[port].left = left[host], left[port]
	r.joints[j.id] = j
	j.settle()
	return j
}

// Close ends it, whatever is under way.
func (j *joint) Close() error {
	j.relay.mu.Lock()
	defer j.relay.mu.Unlock()
	j.close()
	return nil
}

func (r *relay) run() {
	events := make([]unix.EpollEvent, 64)
	for wait := -1; ; {
		n := r.wait(events, wait)
		r.mu.Lock()
		for _, e := range events[:n] {
			if j := r.joints[e.Fd]; j != nil {
				j.heed(int(e.Pad), e.Events)
			}
		}
		wait = -1
		for j := range r.stuck {
			if wait = 1000; time.Since(j.since) > stuckTime {
				j.close()
			}
		}
		r.mu.Unlock()
	}
}

func (r *relay) wait(events []unix.EpollEvent, ms int) int {
	n, err := unix.EpollWait(r.poll, events, ms)
	if err != nil {
		return 0
	}
	return n
}

const gone = unix.EPOLLHUP | unix.EPOLLERR

// heed does what an event asks for.
func (j *joint) heed(side int, events uint32) {
	ok := true
	if in := &j.ways[side]; events&(unix.EPOLLIN|gone) != 0 && !in.ended && len(in.left) == 0 {
		ok = j.move(side)
	}
	if out := &j.ways[1-side]; ok && events&(unix.EPOLLOUT|gone) != 0 && len(out.left) > 0 {
		ok = j.move(1 - side)
	}
	if side == host && events&gone != 0 {
		switch in := &j.ways[host]; {
		case in.ended:
			ok = false
		case len(in.left) > 0:
			j.relay.stuck[j], j.since = true, time.Now()
		}
	}
	if !ok || j.ways[host].ended && j.ways[port].ended && len(j.ways[host].left)+len(j.ways[port].left) == 0 {
		j.close()
		return
	}
	j.settle()
}

// turn is how many reads one connection has before it is another's turn.
const turn = 8

// move takes bytes from one side to the other, and reports whether the joint goes on.
func (j *joint) move(from int) bool {
	w, in, out := &j.ways[from], j.ends[from].fd, j.ends[1-from].fd
	for range turn {
		b := w.left
		if len(b) == 0 {
			if w.ended {
				return true
			}
			n, err := readNow(in, j.relay.buf[:])
			switch {
			case err == unix.EAGAIN || err == unix.EINTR:
				return true // it is told again
			case err != nil:
				return false
			case n == 0:
				w.ended = true
				return unix.Shutdown(out, unix.SHUT_WR) == nil || from == host
			}
			b = j.relay.buf[:n]
		}
		n, err := writeNow(out, b)
		switch {
		case err == unix.EAGAIN || err == unix.EINTR:
			n = 0
		case err != nil && from == host:
			// The program takes no more. What it still has to say goes on.
			w.left, w.ended = nil, true
			return true
		case err != nil:
			return false
		}
		if from == host {
			delete(j.relay.stuck, j)
		}
		if n < len(b) {
			w.left = append([]byte(nil), b[n:]...)
			return true
		}
		if w.left = nil; len(b) < len(j.relay.buf) {
			return true // if there is more, it is told again
		}
	}
	return true
}

// settle has the epoll watch for what there is to be done.
func (j *joint) settle() {
	for side := range j.ends {
		e := &j.ends[side]
		var waits uint32
		if w := &j.ways[side]; !w.ended && len(w.left) == 0 {
			waits = unix.EPOLLIN
		}
		if len(j.ways[1-side].left) > 0 {
			waits |= unix.EPOLLOUT
		}
		// That a side has gone is told again and again. Of the host it is to be
		// known, unless it is.
		hold := waits != 0 || side == host && !j.relay.stuck[j]
		if hold == e.held && waits == e.waits {
			continue
		}
		op := unix.EPOLL_CTL_MOD
		switch {
		case !hold:
			op = unix.EPOLL_CTL_DEL
		case !e.held:
			op = unix.EPOLL_CTL_ADD
		}
		if unix.EpollCtl(j.relay.poll, op, e.fd, &unix.EpollEvent{Events: waits, Fd: j.id, Pad: int32(side)}) != nil {
			j.close()
			return
		}
		e.held, e.waits = hold, waits
	}
}

// close closes both ends, by which the epoll forgets them.
func (j *joint) close() {
	if j.relay.joints[j.id] != j {
		return
	}
	delete(j.relay.joints, j.id)
	delete(j.relay.stuck, j)
	unix.Close(j.ends[host].fd)
	unix.Close(j.ends[port].fd)
	close(j.done)
}
