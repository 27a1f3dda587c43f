package supervisor

import (
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/confine"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

const self = hooks + "/guest"

// launch starts a command under the rules about processes: through a launcher,
// and where something is to be counted or looked at under a tracer of its own.
// attr is as the command needs it, with an open-ended list of files.
func (s *supervisor) launch(c *wire.Command, env []string, attr *syscall.ProcAttr, p *process) (err error) {
	m := wire.LaunchMessage{Command: *c, NoExec: s.rules.NoExec, Count: s.rules.MaxProcesses > 0}
	m.Env = env
	spec, err := told(m.Append(nil))
	if err != nil {
		return err
	}
	defer unix.Close(spec)
	files := attr.Files
	attr.Files = append(files, uintptr(spec))
	gates := pair{-1, -1}
	if s.traces() {
		if err := unix.Pipe2(gates[:], unix.O_CLOEXEC); err != nil {
			return step("pipe", err)
		}
		defer gates.close()
		attr.Files = append(attr.Files, uintptr(gates[0]))
	}
	gate := -1
	if s.traces() {
		gate = len(files) + 1
	}
	attr.Sys.Credential, attr.Dir, attr.Env = nil, "", nil
	p.pid, err = syscall.ForkExec(self, []string{confine.Launcher, strconv.Itoa(len(files)), strconv.Itoa(gate)}, attr)
	if err != nil || !s.traces() {
		return err
	}
	if p.note, err = s.trace(p.pid, gates[1]); err != nil {
		unix.Kill(p.pid, unix.SIGKILL) // the gate closes as well
	}
	return err
}

func (s *supervisor) traces() bool {
	return !s.rules.NoExec && (s.rules.MaxProcesses > 0 || len(s.rules.Commands) > 0)
}

// trace starts the tracer of a launcher that waits for it, and returns where it
// says which rule was broken.
func (s *supervisor) trace(pid, gate int) (note int, err error) {
	var notes pair
	if err := unix.Pipe2(notes[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return -1, step("pipe", err)
	}
	defer unix.Close(notes[1])
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		unix.Close(notes[0])
		return -1, step("/dev/null", err)
	}
	defer unix.Close(null)
	args := append([]string{confine.Tracer, strconv.Itoa(pid), "3", "4", strconv.FormatUint(s.rules.MaxProcesses, 10)}, s.rules.Commands...)
	_, err = syscall.ForkExec(self, args, &syscall.ProcAttr{
		Files: []uintptr{uintptr(null), uintptr(null), uintptr(null), uintptr(gate), uintptr(notes[1])},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		unix.Close(notes[0])
		return -1, step("start the tracer", err)
	}
	return notes[0], nil
}

// told returns the reading end of a pipe that holds a message.
func told(b []byte) (int, error) {
	var p pair
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return -1, step("pipe", err)
	}
	defer unix.Close(p[1])
	if len(b) > 64<<10 {
		if _, err := unix.FcntlInt(uintptr(p[1]), unix.F_SETPIPE_SZ, len(b)); err != nil {
			unix.Close(p[0])
			return -1, step("pipe", err)
		}
	}
	for len(b) > 0 {
		n, err := write(p[1], b)
		if err != nil {
			unix.Close(p[0])
			return -1, step("pipe", err)
		}
		b = b[n:]
	}
	return p[0], nil
}

// broke takes the rule that a run has broken, and ends the run.
func (s *supervisor) broke(r *run) {
	if r.note < 0 {
		return
	}
	b := make([]byte, 4<<10)
	n, err := read(r.note, b)
	if err == unix.EAGAIN {
		return
	}
	closeFD(r.note)
	r.note = -1
	if n > 0 {
		r.blocked = "blocked_commands: " + string(b[:n])
		if !r.ended {
			s.end(r)
		}
	}
}
