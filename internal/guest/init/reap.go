package guestinit

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/raw"
)

// reapRun takes the status of a run's main process, if it has ended.
func (s *supervisor) reapRun(r *run) {
	if r.ended {
		return
	}
	if r.forked {
		r.status, r.usage = s.forks.ended()
		s.ended(r)
		return
	}
	if pid, _ := raw.Reap(r.pid, &r.status, &r.usage); pid == r.pid {
		s.ended(r)
	}
}

func (s *supervisor) ended(r *run) {
	r.ended = true
	if r.pidfd >= 0 {
		s.closeLater(r.pidfd)
		r.pidfd = -1
	}
}

// reap takes every zombie: main processes, and what a program left to process 1.
func (s *supervisor) reap() {
	for {
		var status unix.WaitStatus
		var usage unix.Rusage
		pid, err := raw.Reap(-1, &status, &usage)
		if err == unix.ECHILD {
			s.dirty = false
		}
		if err != nil || pid <= 0 {
			return
		}
		s.parting = slices.DeleteFunc(s.parting, func(p int) bool { return p == pid })
		for _, r := range s.runs {
			if r.pid == pid && !r.ended {
				r.status, r.usage = status, usage
				s.ended(r)
			}
		}
		if s.warm != nil && s.warm.pid == pid {
			s.warm.pid = -1
			s.warmDied()
		}
	}
}
