package confine

import (
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/wire"
)

// Self is the guest's binary, as sandboxes see it.
const Self = "/.atoll/guest"

// Needed reports whether rules bind what a program starts, or which user it is, so
// that it has to be started with Start.
func Needed(r *wire.ConfineMessage) bool { return r.Root || r.NoExec || Traces(r) }

// Traces reports whether rules need a tracer.
func Traces(r *wire.ConfineMessage) bool {
	return !r.NoExec && (r.MaxProcesses > 0 || len(r.Commands) > 0)
}

// Started is a launcher, with its tracer if the rules need one.
type Started struct {
	PID    int
	Note   int // says which rule was broken; -1 where nothing traces
	Tracer int // its process id, 0 for none
}

// Start starts a command under rules: through a launcher, and where something is
// to be counted or looked at under a tracer of its own. attr is as the command
// needs it. With an error there may be a process, which is about to end.
func Start(r *wire.ConfineMessage, c *wire.Command, attr *syscall.ProcAttr) (p Started, err error) {
	p.Note = -1
	m := wire.LaunchMessage{Command: *c, Root: r.Root, NoExec: r.NoExec, Count: r.MaxProcesses > 0}
	m.Env = attr.Env
	spec, err := Told(m.Append(nil))
	if err != nil {
		return p, err
	}
	defer unix.Close(spec)
	files := attr.Files
	attr.Files = append(files[:len(files):len(files)], uintptr(spec))
	gates, gate := [2]int{-1, -1}, -1
	if Traces(r) {
		if err := unix.Pipe2(gates[:], unix.O_CLOEXEC); err != nil {
			return p, failure("pipe: " + err.Error())
		}
		defer unix.Close(gates[0])
		defer unix.Close(gates[1])
		attr.Files = append(attr.Files, uintptr(gates[0]))
		gate = len(files) + 1
	}
	attr.Sys.Credential, attr.Dir, attr.Env = nil, "", nil
	p.PID, err = syscall.ForkExec(Self, []string{Launcher, strconv.Itoa(len(files)), strconv.Itoa(gate)}, attr)
	if err != nil || !Traces(r) {
		return p, err
	}
	if err := p.trace(r, gates[1]); err != nil {
		unix.Kill(p.PID, unix.SIGKILL) // the gate closes as well
		return p, err
	}
	return p, nil
}

// trace starts the tracer of a launcher that waits for it.
func (p *Started) trace(r *wire.ConfineMessage, gate int) error {
	var notes [2]int
	if err := unix.Pipe2(notes[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return failure("pipe: " + err.Error())
	}
	defer unix.Close(notes[1])
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		unix.Close(notes[0])
		return failure("/dev/null: " + err.Error())
	}
	defer unix.Close(null)
	args := append([]string{Tracer, strconv.Itoa(p.PID), "3", "4", strconv.FormatUint(r.MaxProcesses, 10)}, r.Commands...)
	p.Tracer, err = syscall.ForkExec(Self, args, &syscall.ProcAttr{
		Files: []uintptr{uintptr(null), uintptr(null), uintptr(null), uintptr(gate), uintptr(notes[1])},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		unix.Close(notes[0])
		return failure("start the tracer: " + err.Error())
	}
	p.Note = notes[0]
	return nil
}

// Told returns the reading end of a pipe that holds a message.
func Told(b []byte) (int, error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return -1, failure("pipe: " + err.Error())
	}
	defer unix.Close(p[1])
	if len(b) > 64<<10 {
		if _, err := unix.FcntlInt(uintptr(p[1]), unix.F_SETPIPE_SZ, len(b)); err != nil {
			unix.Close(p[0])
			return -1, failure("pipe: " + err.Error())
		}
	}
	for len(b) > 0 {
		n, err := unix.Write(p[1], b)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			unix.Close(p[0])
			return -1, failure("pipe: " + err.Error())
		}
		b = b[n:]
	}
	return p[0], nil
}
