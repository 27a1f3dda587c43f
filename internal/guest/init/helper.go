package guestinit

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/confine"
	"github.com/atoll-run/atoll/internal/guest/raw"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

// launch starts a command under the rules about processes. attr is as the command
// needs it.
func (s *supervisor) launch(c *wire.Command, attr *syscall.ProcAttr, p *process) error {
	started, err := confine.Start(&s.rules, c, attr)
	p.pid, p.note, p.tracer = started.PID, started.Note, started.Tracer
	return err
}

// broke takes the rule that a run has broken, and ends the run.
func (s *supervisor) broke(r *run) {
	if r.note < 0 {
		return
	}
	b := make([]byte, 4<<10)
	n, err := raw.Read(r.note, b)
	if err == unix.EAGAIN {
		return
	}
	raw.Close(r.note)
	r.note = -1
	if n > 0 {
		r.blocked = "blocked_commands: " + string(b[:n])
		if !r.ended {
			s.end(r)
		}
	}
}
