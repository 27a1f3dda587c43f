package guestinit

import (
	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/proctree"
)

const errNoRun = failure("no such run")

// kill sends a signal to a run's process group; SIGKILL ends all that belongs to
// the run.
func (s *supervisor) kill(id, signal uint64) error {
	for _, r := range s.runs {
		if r.id != id || r.ended {
			continue
		}
		r.killed = true
		if signal == uint64(unix.SIGKILL) {
			s.end(r)
			return nil
		}
		if signal == 0 || signal > 64 {
			return unix.EINVAL
		}
		return step("kill", unix.Kill(-r.pid, unix.Signal(signal)))
	}
	return errNoRun
}

// commandMarks returns the marks for new processes. It is nil for a program in separate
// namespaces, because killing the namespaces ends all its processes.
func (s *supervisor) commandMarks() *proctree.Marks {
	if s.own != nil {
		return nil
	}
	if s.marks == nil {
		s.marks = proctree.OpenMarks()
	}
	return s.marks
}

// end ends a run with everything it has started. Alone in the sandbox it takes
// every process there is along; beside other runs it ends what descends from it, also in
// other sessions. In namespaces of its own it goes with them.
func (s *supervisor) end(r *run) {
	if s.own != nil {
		s.own.kill()
		return
	}
	if len(s.runs) == 1 {
		_ = proctree.KillAll() // what still goes on, nothing ends but the sandbox's end
		return
	}
	proctree.Kill(r.pid, r.mark)
}
