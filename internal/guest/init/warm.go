package guestinit

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/language"
	"github.com/atoll-run/atoll/internal/guest/raw"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

// warmed is an interpreter that has started and waits, inside its own start-up,
// for its program.
type warmed struct {
	process
	cmd     wire.Command
	hook    *language.Warm
	request uint64 // answered once the hook reports; 0 from then on
	ready   bool
	control pair     // the hook reads from it what changes for the run
	note    int      // the hook says on it that it waits
	fork    bool     // it is to be a fork server
	undo    []string // files and folders made for the start, in this order
	site    siteTimes
	comm    int // the interpreter's name in /proc, for its last word; -1 where it is not open
}

// startWarm starts an interpreter. The one that waited before it, if any, ends.
func (s *supervisor) startWarm(id uint64, p []byte) {
	var m wire.WarmMessage
	if !m.Decode(p) {
		s.reply(id, errMalformed)
		return
	}
	if s.hadDaemon {
		s.reply(id, errHasDaemon)
		return
	}
	if w := s.warm; w != nil {
		s.warm = nil
		if w.request != 0 {
			s.reply(w.request, failure("another interpreter was asked for"))
		}
		s.discard(w)
	}
	s.part()
	w, err := s.warmUp(&m)
	if err != nil {
		s.reply(id, err)
		return
	}
	w.request = id
	s.warm = w
	s.dirty = s.dirty || w.pidfd < 0 // else nothing tells of its end
}

func (s *supervisor) warmUp(m *wire.WarmMessage) (_ *warmed, err error) {
	l := language.Get(language.Name(m.Language))
	if l.Warm.Hook == "" {
		return nil, failure("no such language: " + m.Language)
	}
	control, note, err := hookPipes()
	if err != nil {
		return nil, err
	}
	w := &warmed{cmd: m.Command, hook: &l.Warm, control: control, note: note[0], comm: -1}
	var env []string
	err = s.within(func() error {
		env, err = w.prepare(m, control[0])
		return err
	})
	if err == nil {
		w.process, err = s.spawn(&m.Command, env, map[int]int{l.Warm.FD: control[0], l.Warm.FD + 1: note[1]})
	}
	raw.Close(note[1])
	if err != nil {
		control.close()
		unix.Close(w.note)
		s.cleanUp(w)
		return nil, err
	}
	return w, nil
}

// watchWarm waits for the hook's word, and then for nothing but a sudden end.
func (s *supervisor) watchWarm() {
	w := s.warm
	switch {
	case w == nil:
	case !w.ready:
		s.watch(w.note, unix.POLLIN, func() { s.heard(w) })
	case w.pidfd >= 0:
		s.watch(w.pidfd, unix.POLLIN, s.reap)
	}
}

// heard takes the hook's report: 'R' when it waits, or 'E' and why it cannot.
func (s *supervisor) heard(w *warmed) {
	if s.warm != w || w.ready {
		return
	}
	b := make([]byte, 4<<10)
	n, _ := raw.Read(w.note, b)
	if n > 0 && b[0] == 'R' {
		w.ready = true
		s.cleanUp(w)
		if err := s.seal(); err != nil {
			s.warm = nil
			s.reply(w.request, err)
			s.discard(w)
			return
		}
		// What the imports had to say belongs to no program.
		for _, fd := range []int{w.stdout, w.stderr} {
			raw.Read(fd, b)
		}
		s.ahead(w)
		s.reply(w.request, nil)
		w.request = 0
		return
	}
	s.warm = nil
	if n > 0 {
		s.reply(w.request, failure("warm "+w.cmd.Language+": "+string(b[1:n])))
	} else {
		n, _ := raw.Read(w.stderr, b)
		s.reply(w.request, failure("warm "+w.cmd.Language+": the interpreter ended before it was ready: "+string(b[:n])))
	}
	s.discard(w)
}

// ahead does what a program would wait for otherwise.
func (s *supervisor) ahead(w *warmed) {
	s.startDraft(w)
	if w.hook.LastWord && w.comm < 0 {
		w.comm = openComm(w.pid)
	}
}

// warmDied is told that the waiting interpreter was reaped.
func (s *supervisor) warmDied() {
	w := s.warm
	if !w.ready {
		return // heard sees the pipe's end, and what was said before it
	}
	s.warm = nil
	s.discard(w)
}

// fits reports whether the interpreter can become what a run asks for.
func (w *warmed) fits(c *wire.Command) bool {
	if !w.ready || c.Path != w.cmd.Path || c.Dir != w.cmd.Dir || c.Limits != w.cmd.Limits || len(c.Argv) < len(w.cmd.Argv) || !slices.Equal(c.Argv[:len(w.cmd.Argv)], w.cmd.Argv) {
		return false
	}
	return true
}

// missed reports whether the home has by now what the interpreter has looked for in vain.
func (w *warmed) missed() bool {
	for path := range strings.FieldsSeq(w.hook.Looked) {
		if inHome(path) {
			return true
		}
	}
	return false
}

// inHome reports whether there is a path of language.Warm.Looked.
func inHome(path string) bool {
	begin, several := strings.CutSuffix(wire.Home+"/"+path, "*")
	if !several {
		return exists(begin)
	}
	slash := strings.LastIndexByte(begin, '/')
	return exists(begin[:slash]) && hasPrefixed(begin[:slash], begin[slash+1:])
}

// settle has a restored interpreter map its memory in while no run waits for it.
// It reports whether the hook is at it, and will tell when done.
func (w *warmed) settle(request uint64) bool {
	if !w.ready || !w.hook.Settle {
		return false
	}
	if n, err := raw.Write(w.control[1], []byte{1, 0, 0, 0, touch}); n != 5 || err != nil {
		return false
	}
	w.ready, w.request = false, request
	return true
}

// release lets the interpreter go on, as the program it waited for. The reading
// end of control stays open, to tell by it whether the interpreter came so far.
func (w *warmed) release(c *wire.Command, is hookState) error {
	is.args = c.Argv[len(w.cmd.Argv):]
	msg, err := w.message(w.cmd.Env, c.Env, is)
	if err != nil {
		return err
	}
	if len(msg) > maxRelease {
		return unix.E2BIG
	}
	for len(msg) > 0 {
		n, err := raw.Write(w.control[1], msg)
		if err != nil {
			return err
		}
		msg = msg[n:]
	}
	raw.Close(w.control[1])
	raw.Close(w.note)
	return nil
}

// maxRelease keeps release's write within the pipe, so that it never waits.
const maxRelease = 60 << 10

// discard ends an interpreter that will not be used.
func (s *supervisor) discard(w *warmed) {
	if w.pid > 0 {
		unix.Kill(w.pid, unix.SIGKILL)
	}
	for _, fd := range []int{w.control[0], w.control[1], w.note, w.stdout, w.stderr, w.pidfd, w.process.note, w.comm} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	s.cleanUp(w)
	s.dirty = true
}

// cleanUp is w.cleanUp where the interpreter is.
func (s *supervisor) cleanUp(w *warmed) {
	if len(w.undo) > 0 || w.site.path != "" {
		_ = s.within(func() error { w.cleanUp(); return nil }) // else they are gone
	}
}

// cleanUp removes what the start needed, so that the program finds no trace.
func (w *warmed) cleanUp() {
	for _, path := range w.undo {
		if unix.Unlink(path) == unix.EISDIR {
			unix.Rmdir(path)
		}
	}
	w.undo = nil
	w.site.restore()
}
