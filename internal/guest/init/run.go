package guestinit

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/raw"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

// run is a program whose last frame has not been made yet.
type run struct {
	process
	id      uint64
	streams [2]stream
	limit   uint64 // bytes per stream to pass on

	deadline time.Time // zero for none
	timedOut bool
	killed   bool   // by the host
	blocked  string // the rule that ended it
	warm     bool
	lastWord bool // its hook may say a last word

	// Until a warmed interpreter has taken all that control holds, nothing has
	// run: should it die before, another is started.
	control int // reading end, -1 for none
	request wire.RunMessage

	comm int // the interpreter's name, for its last word; -1 where it is not open

	held  bool      // its first output waits or has waited for its end
	hold  time.Time // until when it does; zero when it does not
	first *stream   // which output it is, until it is read

	asked  bool // whether it has said its last word
	ended  bool // the main process was reaped, or said its last word
	status unix.WaitStatus
	usage  unix.Rusage
}

// startRun starts a program or wakes the interpreter that waits for it.
func (s *supervisor) startRun(id uint64, p []byte) {
	var m wire.RunMessage
	if !m.Decode(p) {
		s.refuse(id, errMalformed)
		return
	}
	if len(s.runs)+len(s.out.ended(nil)) >= wire.MaxRuns {
		s.refuse(id, errBusy)
		return
	}
	if s.hadDaemon {
		s.refuse(id, errHasDaemon)
		return
	}
	for _, r := range s.runs {
		if r.id == id {
			return // asked for twice: it runs
		}
	}
	s.part()
	if err := s.putReadOnly(m.Files); err != nil {
		s.refuse(id, err)
		return
	}
	if err := s.seal(); err != nil {
		s.refuse(id, err)
		return
	}
	unchanged, err := s.place(m.Files)
	if err != nil {
		s.refuse(id, err)
		return
	}
	m.Files = nil
	r := &run{id: id, limit: m.Output, control: -1, comm: -1, request: m}
	if m.Port > 0 && s.door == nil {
		s.openDoor(id, m.Port) // it is there when the program begins
	}
	if err := s.program(r, unchanged); err != nil {
		s.closeDoor(id)
		s.refuse(id, err)
		return
	}
	if m.Timeout > 0 {
		r.deadline = time.Now().Add(time.Duration(min(m.Timeout, 1<<62)))
	}
	s.runs = append(s.runs, r)
	s.brake = brake{}
}

const errBusy = failure("too many runs in this sandbox")

// program starts the process of a run, or wakes the one that waits for it, which may have
// found the home as it is now.
func (s *supervisor) program(r *run, unchanged bool) error {
	m := &r.request
	if w := s.warm; w != nil && m.Language == w.cmd.Language {
		s.warm = nil
		is := hookState{restored: s.restored, moved: s.moved, stdin: len(m.Stdin) > 0}
		if m.Warm && s.fits(w, m, unchanged) && w.release(&m.Command, is) == nil {
			r.warm, r.lastWord, r.control, r.comm = true, w.hook.LastWord, w.control[0], w.comm
			s.began(r, w.process)
			return nil
		}
		s.discard(w)
	}
	stdin, err := newStdin(m.Stdin)
	if err != nil {
		return err
	}
	defer raw.Close(stdin)
	p, err := s.spawn(&m.Command, m.Env, map[int]int{0: stdin})
	if err == nil {
		s.began(r, p)
	}
	return err
}

// fits reports whether the interpreter that waits can become a run's program, and has
// what that reads ready for it.
func (s *supervisor) fits(w *warmed, m *wire.RunMessage, unchanged bool) bool {
	return s.within(func() error {
		if !w.fits(&m.Command) || !unchanged && w.missed() {
			return errUnfit
		}
		return s.offerStdin(m.Stdin)
	}) == nil
}

const errUnfit = failure("the interpreter that waits is another")

// began notes the process of a run. An interpreter that still waits is not looked
// after by a timer: its pidfd tells of its end.
func (s *supervisor) began(r *run, p process) {
	s.dirty = s.own == nil // what it leaves behind is its init's
	r.process = p
	r.streams[0] = stream{pipe: pipe{fd: p.stdout}, typ: wire.Stdout, left: -1}
	r.streams[1] = stream{pipe: pipe{fd: p.stderr}, typ: wire.Stderr, left: -1}
}

// again starts the program of a run whose warmed interpreter died before it
// came to it, and reports whether it did.
func (s *supervisor) again(r *run) bool {
	if r.control < 0 {
		return false
	}
	died := r.status.Signaled() && !r.timedOut && !r.killed
	if died {
		unread, _ := raw.Readable(r.control)
		died = unread > 0
	}
	s.closeLater(r.control)
	r.control = -1
	if r.comm >= 0 {
		s.closeLater(r.comm)
		r.comm = -1
	}
	if !died {
		return false
	}
	r.streams[0].close()
	r.streams[1].close()
	if r.note >= 0 {
		raw.Close(r.note)
	}
	r.warm, r.lastWord, r.ended = false, false, false
	return s.program(r, false) == nil
}

// refuse answers a run of which nothing was started.
func (s *supervisor) refuse(id uint64, err error) {
	m := wire.ReplyMessage{Error: clip(err.Error(), 4<<10)}
	s.out.put(wire.Refused, id, m.Append(nil))
}

// watchRuns adds what the runs wait for.
func (s *supervisor) watchRuns() {
	room := s.out.room() > 0
	for _, r := range s.runs {
		if r.ended {
			continue
		}
		for i := range r.streams {
			if st := &r.streams[i]; st.fd >= 0 && (room || st.total >= r.limit) {
				events := int16(unix.POLLIN)
				if !r.hold.IsZero() {
					events = 0 // its end is told of anyway
				}
				s.watch(st.fd, events, func() { s.flow(r, st) })
			}
		}
		if r.note >= 0 {
			s.watch(r.note, unix.POLLIN, func() { s.broke(r) })
		}
		if r.pidfd >= 0 {
			s.watch(r.pidfd, unix.POLLIN, func() { s.reapRun(r) })
		}
	}
}

// expire ends the runs that are past their deadline.
func (s *supervisor) expire(now time.Time) {
	for _, r := range s.runs {
		if !r.hold.IsZero() && !now.Before(r.hold) {
			r.hold = time.Time{}
			s.passFirst(r)
		}
		if !r.ended && !r.timedOut && !r.deadline.IsZero() && !now.Before(r.deadline) {
			r.timedOut = true
			s.end(r)
		}
	}
	if s.door != nil {
		s.door.expire(now)
	}
}

// settle finishes the runs that have ended and whose pipes are drained.
func (s *supervisor) settle() {
	for i := 0; i < len(s.runs); i++ {
		r := s.runs[i]
		s.listen(r)
		if !r.ended || s.again(r) || !s.drain(r) {
			continue // when the spool is full, the next acknowledgement makes room
		}
		s.finish(r)
		s.runs = append(s.runs[:i], s.runs[i+1:]...)
		i--
	}
}

// finish makes a run's last frame.
func (s *supervisor) finish(r *run) {
	s.broke(r)
	s.closeDoor(r.id)
	if s.own == nil { // else it goes with them
		s.withdrawStdin()
	}
	if r.note >= 0 {
		raw.Close(r.note)
	}
	m := wire.ExitMessage{
		Code:     uint64(r.status.ExitStatus()),
		TimedOut: r.timedOut,
		Warm:     r.warm,
		Stdout:   r.streams[0].total,
		Stderr:   r.streams[1].total,
		PeakRSS:  uint64(max(r.usage.Maxrss, 0)) << 10,
		CPU:      uint64(max(r.usage.Utime.Nano()+r.usage.Stime.Nano(), 0)),
	}
	if r.status.Signaled() {
		m.Signal = uint64(r.status.Signal())
		m.Code = 128 + m.Signal
	}
	m.Blocked = r.blocked
	if m.Code != 0 {
		m.TasksFull = tasksFull(s.limits.Processes)
		s.within(func() error { m.DiskFull = diskFull(); return nil })
	}
	s.out.put(wire.Exit, r.id, m.Append(nil))
	for i := range r.streams {
		if st := &r.streams[i]; st.fd >= 0 {
			s.keepOpen(&st.pipe)
		}
	}
}
