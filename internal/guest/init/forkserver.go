package guestinit

import (
	"encoding/binary"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/language"
	"github.com/atoll-run/atoll/internal/guest/raw"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

// forkServer is an interpreter that waits, as uid 0 and outside of all namespaces of
// programs, and forks itself for each of them. It runs no program.
type forkServer struct {
	pid    int
	made   wire.WarmMessage // what it was made for
	hook   *language.Warm
	orders int // a pipe: see fork
	report int // a pipe: its answers
	output [2]int
	owes   bool // the end of the last interpreter was not read yet
}

const (
	forkMode = 64 // the flag of the message after which warm.py takes orders
	endLen   = 4 * 8
)

const errForkServer = failure("the fork server ended")

// startForkServer starts one, and returns when it takes orders. Nothing else is done
// in the sandbox meanwhile.
func (s *supervisor) startForkServer(m *wire.WarmMessage) (*forkServer, error) {
	l := language.Get(language.Name(m.Language))
	control, note, err := hookPipes()
	if err != nil {
		return nil, err
	}
	w := &warmed{cmd: m.Command, hook: &l.Warm, fork: true}
	env, err := w.prepare(m, control[0])
	var p process
	if err == nil {
		p, err = s.spawnRoot(&m.Command, env, map[int]int{l.Warm.FD: control[0], l.Warm.FD + 1: note[1]})
	}
	raw.Close(control[0])
	raw.Close(note[1])
	if err != nil {
		w.cleanUp()
		raw.Close(control[1])
		raw.Close(note[0])
		return nil, err
	}
	if p.pidfd >= 0 {
		raw.Close(p.pidfd)
	}
	f := &forkServer{pid: p.pid, made: *m, hook: &l.Warm, orders: control[1], report: note[0], output: [2]int{p.stdout, p.stderr}}
	b := make([]byte, 4<<10)
	n, _ := unix.Read(f.report, b)
	w.cleanUp()
	if n > 0 && b[0] == 'R' {
		if _, err = raw.Write(f.orders, []byte{1, 0, 0, 0, forkMode}); err == nil {
			return f, nil
		}
	}
	switch {
	case err != nil:
	case n > 0:
		err = failure("warm " + m.Language + ": " + string(b[1:n]))
	default:
		n, _ = raw.Read(f.output[1], b)
		err = failure("warm " + m.Language + ": the interpreter ended before it was ready: " + string(b[:n]))
	}
	f.stop()
	return nil, err
}

// serves reports whether its interpreters are what is asked for.
func (f *forkServer) serves(m *wire.WarmMessage) bool {
	a, b := &f.made, m
	return a.Language == b.Language && a.Path == b.Path && a.Dir == b.Dir && a.Limits == b.Limits && a.Site == b.Site &&
		slices.Equal(a.Argv, b.Argv) && slices.Equal(a.Env, b.Env) && slices.Equal(a.Preload, b.Preload)
}

// fork returns an interpreter of its own namespaces, which will say that it waits.
func (f *forkServer) fork(own *namespaces) (_ *warmed, err error) {
	control, note, err := hookPipes()
	if err != nil {
		return nil, err
	}
	o, e, err := outputs()
	if err != nil {
		control.close()
		note.close()
		return nil, err
	}
	w := &warmed{cmd: f.made.Command, hook: f.hook, control: control, note: note[0], comm: -1}
	w.process = process{pidfd: -1, note: -1, stdout: o[0], stderr: e[0], forked: true}
	var order []byte
	for _, n := range []int{own.init.PID, control[0], note[1], o[1], e[1]} {
		order = binary.LittleEndian.AppendUint32(order, uint32(n))
	}
	pid := make([]byte, 8)
	if _, err = raw.Write(f.orders, order); err == nil {
		err = f.read(pid)
	}
	for _, fd := range []int{note[1], o[1], e[1]} { // the server has opened them for itself
		raw.Close(fd)
	}
	if err == nil {
		f.owes = true
		w.pid = int(binary.LittleEndian.Uint64(pid))
		w.pidfd, err = unix.PidfdOpen(w.pid, 0)
		err = step("pidfd_open", err)
	}
	if err != nil {
		for _, fd := range []int{control[0], control[1], note[0], o[0], e[0]} {
			raw.Close(fd)
		}
		return nil, err
	}
	return w, nil
}

func (f *forkServer) read(b []byte) error {
	for len(b) > 0 {
		n, err := unix.Read(f.report, b)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return step("the fork server", err)
		}
		if n == 0 {
			return errForkServer
		}
		b = b[n:]
	}
	return nil
}

// ended returns how the last interpreter ended, which it has.
func (f *forkServer) ended() (status unix.WaitStatus, usage unix.Rusage) {
	b := make([]byte, endLen)
	if !f.owes || f.read(b) != nil {
		return unix.WaitStatus(unix.SIGKILL), usage
	}
	f.owes = false
	field := func(i int) int64 { return int64(binary.LittleEndian.Uint64(b[8*i:])) }
	usage.Maxrss = field(1)
	usage.Utime, usage.Stime = unix.NsecToTimeval(field(2)*1000), unix.NsecToTimeval(field(3)*1000)
	return unix.WaitStatus(field(0)), usage
}

// stop ends the server.
func (f *forkServer) stop() {
	unix.Kill(f.pid, unix.SIGKILL)
	var status unix.WaitStatus
	_, _ = unix.Wait4(f.pid, &status, 0, nil)
	for _, fd := range []int{f.orders, f.report, f.output[0], f.output[1]} {
		raw.Close(fd)
	}
}
