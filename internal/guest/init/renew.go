package guestinit

import (
	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/language"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

const (
	errHasProgram = failure("a program runs in this sandbox")
	errHasRules   = failure("this sandbox has rules, which hold for one program")
)

// renew ends all that is left of a program, and has an interpreter wait for the next in
// namespaces of its own.
func (s *supervisor) renew(id uint64, p []byte) {
	var m wire.RenewMessage
	switch {
	case !m.Decode(p):
		s.reply(id, errMalformed)
		return
	case s.hadDaemon:
		s.reply(id, errHasDaemon)
		return
	case s.confined:
		s.reply(id, errHasRules)
		return
	case len(s.runs) > 0:
		s.reply(id, errHasProgram)
		return
	}
	w, err := s.begin(&m)
	if err != nil || w == nil {
		s.reply(id, err)
		return
	}
	w.request = id // heard answers
	s.warm = w
}

// begin ends what was, and returns the interpreter that is to wait; nil for a language
// whose interpreter starts with its program.
func (s *supervisor) begin(m *wire.RenewMessage) (*warmed, error) {
	if err := s.endProgram(); err != nil {
		return nil, err
	}
	l := language.Get(language.Name(m.Language))
	if l.Warm.Fork {
		if err := s.haveForkServer(&m.WarmMessage); err != nil {
			return nil, err
		}
	}
	own, err := beginNamespaces(m)
	if err != nil {
		return nil, err
	}
	s.own, s.restored = own, true // interpreters have what is random in common
	var w *warmed
	switch {
	case l.Warm.Hook == "":
	case l.Warm.Fork && s.forks != nil:
		w, err = s.forks.fork(own)
	default:
		w, err = s.warmUp(&m.WarmMessage)
	}
	return w, err
}

// endProgram ends the program that was, if there was one, with everything of it.
func (s *supervisor) endProgram() error {
	if s.mounts < 0 {
		fd, err := unix.Open("/proc/self/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return step("open the mount namespace", err)
		}
		s.mounts = fd
	}
	if w := s.warm; w != nil {
		s.warm = nil
		if w.request != 0 {
			s.reply(w.request, failure("another interpreter was asked for"))
		}
		s.discard(w)
	}
	for _, p := range s.orphan {
		p.close()
	}
	s.orphan, s.offered = nil, false
	if s.own == nil {
		s.part()
		return nil
	}
	keep := 0
	if s.forks != nil {
		keep = s.forks.pid
	}
	if err := s.own.end(keep, s.reap); err != nil {
		return err
	}
	s.own, s.parting, s.dirty = nil, nil, false
	if s.forks != nil && s.forks.owes {
		s.forks.ended()
	}
	return nil
}

// haveForkServer has s.forks make interpreters such as m asks for, or be nil where
// that cannot be: each program's interpreter then is started anew.
func (s *supervisor) haveForkServer(m *wire.WarmMessage) error {
	if s.forks != nil && s.forks.serves(m) {
		return nil
	}
	if s.forks != nil {
		s.forks.stop()
		s.forks = nil
	}
	if s.unforked {
		return nil
	}
	f, err := s.startForkServer(m)
	if err != nil {
		s.unforked = true
		if len(m.Preload) > 0 {
			return err
		}
		return nil
	}
	s.forks = f
	return nil
}
