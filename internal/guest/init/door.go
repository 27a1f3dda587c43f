package guestinit

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/raw"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

// door is where the program of a run asks the host by HTTP: a loopback address, which
// needs no network. It takes requests whole, hands each to the host as one message and
// writes what the host answers.
type door struct {
	run      uint64
	fd       int // listens
	visitors []*visitor
	asked    uint64 // number of the last request that the host was asked
}

// backlog is how many connections may wait until one of wire.MaxAsks ends.
const backlog = 64

// openDoor listens for a run. Where it cannot, because an earlier program of the sandbox
// has the port, the run goes on without: its requests are for that program then.
func (s *supervisor) openDoor(run, port uint64) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) // connections that have ended hold the port otherwise
	if unix.Bind(fd, &unix.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}}) != nil || unix.Listen(fd, backlog) != nil {
		raw.Close(fd)
		return
	}
	s.door = &door{run: run, fd: fd}
}

// closeDoor ends the door of a run, with all connections.
func (s *supervisor) closeDoor(run uint64) {
	d := s.door
	if d == nil || d.run != run {
		return
	}
	s.door = nil
	raw.Close(d.fd)
	for _, v := range d.visitors {
		v.close()
	}
}

// watchDoor adds what the door waits for.
func (s *supervisor) watchDoor() {
	d := s.door
	if d == nil {
		return
	}
	if len(d.visitors) < wire.MaxAsks {
		s.watch(d.fd, unix.POLLIN, d.accept)
	}
	for _, v := range d.visitors {
		switch v.state {
		case receiving, lingering:
			s.watch(v.fd, unix.POLLIN, v.read)
		case answering:
			s.watch(v.fd, unix.POLLOUT, v.write)
		case received, waiting:
		}
	}
}

func (d *door) accept() {
	fd, _, e := unix.RawSyscall6(unix.SYS_ACCEPT4, uintptr(d.fd), 0, 0, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0, 0)
	if e == 0 {
		d.visitors = append(d.visitors, &visitor{fd: int(fd), until: time.Now().Add(sendTime)})
	}
}

// settleDoor asks the host what there is to ask, as far as the spool has room, and drops
// who has gone.
func (s *supervisor) settleDoor() {
	d := s.door
	if d == nil {
		return
	}
	kept := d.visitors[:0]
	for _, v := range d.visitors {
		if v.state == received {
			s.ask(d, v)
		}
		if v.fd >= 0 {
			kept = append(kept, v)
		}
	}
	clear(d.visitors[len(kept):])
	d.visitors = kept
}

func (s *supervisor) ask(d *door, v *visitor) {
	m := wire.AskMessage{Host: s.host, Number: d.asked + 1, Request: v.in}
	p := m.Append(nil)
	if s.out.room() < len(p) {
		return // the next acknowledgement makes some
	}
	d.asked++
	s.out.put(wire.Ask, d.run, p)
	v.in, v.number, v.state, v.until = nil, d.asked, waiting, time.Now().Add(answerTime)
}

// answer takes what the host answers to a request.
func (s *supervisor) answer(run uint64, m *wire.AnswerMessage) {
	if s.door == nil || s.door.run != run {
		return
	}
	for _, v := range s.door.visitors {
		if v.state == waiting && v.number == m.Number {
			v.answer(append([]byte(nil), m.Response...))
		}
	}
}

// hostChanged refuses the requests that the host before was asked: the next one knows
// nothing of them, and what became of them is not known.
func (d *door) hostChanged() {
	for _, v := range d.visitors {
		if v.state == waiting {
			v.refuse("502 Bad Gateway", "bad_gateway", "the server was interrupted while it answered; whether the call was made is not known")
		}
	}
}

// expire ends the connections that have taken too long.
func (d *door) expire(now time.Time) {
	for _, v := range d.visitors {
		if now.Before(v.until) {
			continue
		}
		switch v.state {
		case receiving:
			v.refuse("408 Request Timeout", "request_timeout", "the request did not come within "+sendTime.String())
		case waiting:
			v.refuse("504 Gateway Timeout", "gateway_timeout", "the server did not answer within "+answerTime.String())
		case received, answering, lingering:
			v.close()
		}
	}
}

// send writes what a connection takes without a signal for one that is closed.
func send(fd int, p []byte) (int, error) {
	n, e := raw.Direct(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT, 0, 0)
	return int(n), raw.Number(e)
}
