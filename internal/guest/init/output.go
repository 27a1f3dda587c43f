package guestinit

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/raw"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

// pipe is the reading end of a program's output, -1 once at its end.
type pipe struct{ fd int }

// read is one read(2), 0 if there is nothing now. It closes the pipe at its end.
func (p *pipe) read(b []byte) int {
	n, err := raw.Read(p.fd, b)
	if err == unix.EAGAIN {
		return 0
	}
	if err != nil || n == 0 {
		p.close()
	}
	return n
}

func (p *pipe) close() {
	if p.fd >= 0 {
		raw.Close(p.fd)
		p.fd = -1
	}
}

// stream is one of a run's two outputs.
type stream struct {
	pipe
	typ   wire.Type
	total uint64 // bytes the program has written so far
	left  int    // after the main process's end, bytes still to take; -1 before
}

// flow is pump for an output that has something to take or has ended; that it has only
// ended needs no read.
func (s *supervisor) flow(r *run, st *stream) {
	switch s.now & (unix.POLLIN | unix.POLLHUP) {
	case unix.POLLIN:
		if r.lastWord && !r.held {
			r.held, r.hold, r.first = true, time.Now().Add(holdTime), st
			return
		}
	case unix.POLLHUP:
		if !r.hold.IsZero() { // only that it has ended was looked for
			break
		}
		s.closeLater(st.fd)
		st.fd = -1
		return
	}
	s.passFirst(r)
	for {
		if n, _ := s.pump(r, st); n == 0 || r.hold.IsZero() {
			return
		}
	}
}

// passFirst passes on what a program wrote first, if it waits, before what it wrote to its other
// output meanwhile.
func (s *supervisor) passFirst(r *run) {
	if r.first != nil {
		if _, full := s.pump(r, r.first); !full {
			r.first = nil
		}
	}
}

// holdTime is how long the first output of a program waits for its end, with which it goes
// to the host at once where it ends right after it.
const holdTime = 2 * time.Millisecond

// pump passes on one read's worth of output, or drops it beyond the limit. It
// returns how much there was, and whether a full spool was in the way.
func (s *supervisor) pump(r *run, st *stream) (n int, full bool) {
	if st.fd < 0 {
		return 0, false
	}
	if st.total >= r.limit {
		if s.scratch == nil {
			s.scratch = make([]byte, wire.MaxPayload)
		}
		n = st.read(s.scratch)
		s.took += n
		st.total += uint64(n)
		return n, false
	}
	room := s.out.room()
	if room == 0 {
		return 0, true
	}
	want := min(uint64(room), r.limit-st.total)
	b := s.out.space(wire.OffsetSize + int(want))
	if n = st.read(b[wire.OffsetSize:]); n > 0 {
		s.out.output(st.typ, r.id, st.total, n)
		s.took += n
		st.total += uint64(n)
	}
	return n, false
}

// drain takes what stands in an ended run's pipes, but not what a background
// process goes on to write, and reports whether that is done.
func (s *supervisor) drain(r *run) bool {
	s.passFirst(r)
	for i := range r.streams {
		st := &r.streams[i]
		for st.fd >= 0 && st.left != 0 {
			n, full := s.pump(r, st)
			switch {
			case full:
				return false
			case n == 0:
				st.left = 0
			case st.left < 0:
				// The usual pipe is at its end by now and was closed; this one
				// holds more or is held open.
				st.left, _ = raw.Readable(st.fd)
			default:
				st.left = max(st.left-n, 0)
			}
		}
	}
	return true
}

// maxOrphans bounds the pipes that are kept open for background processes.
const maxOrphans = 128

// keepOpen goes on emptying a pipe that a background process still holds, so
// that writing to it neither blocks nor ends that process.
func (s *supervisor) keepOpen(p *pipe) {
	if len(s.orphan) == maxOrphans {
		s.orphan[0].close()
		s.orphan = s.orphan[1:]
	}
	s.orphan = append(s.orphan, &pipe{fd: p.fd})
	p.fd = -1
}

func (s *supervisor) watchOrphans() {
	kept := s.orphan[:0]
	for _, p := range s.orphan {
		if p.fd < 0 {
			continue
		}
		kept = append(kept, p)
		s.watch(p.fd, unix.POLLIN, func() {
			if s.scratch == nil {
				s.scratch = make([]byte, wire.MaxPayload)
			}
			p.read(s.scratch)
		})
	}
	s.orphan = kept
}
