package guestinit

import (
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/confine"
	"github.com/atoll-run/atoll/internal/guest/raw"
	"github.com/atoll-run/atoll/internal/guest/vfork"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

// process is a started program with the reading ends of its outputs.
type process struct {
	pid    int
	pidfd  int // -1 where the kernel has none
	stdout int
	stderr int
	note   int    // says which rule was broken, -1 where nothing traces it
	tracer int    // process id, 0 for none
	mark   uint64 // of all that descends from it, 0 for none: see proctree.Marks

	forked bool // its parent is the fork server
}

// rootPrograms says that programs of this sandbox run as uid 0. It is set before
// the first of them.
var rootPrograms bool

// asUser runs f with the rights of the user that programs run as, and only those:
// what f creates is the user's, and a planted link leads f nowhere the user could
// not go. The raw calls change this thread alone.
func asUser(f func() error) (err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if rootPrograms {
		return confine.AsRoot(f)
	}
	const keep = ^uintptr(0)
	if _, e := raw.Direct(unix.SYS_SETRESGID, keep, wire.GID, keep, 0, 0, 0); e != 0 {
		return step("setresgid", e)
	}
	if _, e := raw.Direct(unix.SYS_SETRESUID, keep, wire.UID, keep, 0, 0, 0); e != 0 {
		raw.Direct(unix.SYS_SETRESGID, keep, 0, keep, 0, 0, 0)
		return step("setresuid", e)
	}
	defer func() {
		_, e1 := raw.Direct(unix.SYS_SETRESUID, keep, 0, keep, 0, 0, 0)
		_, e2 := raw.Direct(unix.SYS_SETRESGID, keep, 0, keep, 0, 0, 0)
		if e1 != 0 || e2 != 0 {
			// Going on as someone else would be worse than the sandbox's end.
			panic("atoll-guest: cannot become uid 0 again")
		}
	}()
	return f()
}

// pair is a pipe, the reading end first.
type pair [2]int

// newPipe makes a pipe that belongs to the user, who may therefore open it
// again as /dev/stdout or /proc/self/fd/1.
func newPipe() (p pair, err error) {
	err = asUser(func() error { return unix.Pipe2(p[:], unix.O_CLOEXEC) })
	return p, step("pipe", err)
}

// hookPipes makes the pipes between process 1 and an interpreter's hook.
func hookPipes() (control, note pair, err error) {
	if control, err = newPipe(); err != nil {
		return control, note, err
	}
	if note, err = newPipe(); err != nil {
		control.close()
	}
	return control, note, err
}

func (p pair) close() {
	unix.Close(p[0])
	unix.Close(p[1])
}

// outputSize is what an output's pipe holds, in bytes. Node drops what it could
// not write when it exits at once, so a pipe of the usual 64 KiB makes what is
// seen of such a program a matter of luck.
const outputSize = 1 << 20

// outputs makes the pipes of stdout and stderr; the reading ends do not block.
func outputs() (o, e pair, err error) {
	if o, err = newPipe(); err != nil {
		return o, e, err
	}
	if e, err = newPipe(); err != nil {
		o.close()
		return o, e, err
	}
	for _, p := range []pair{o, e} {
		unix.FcntlInt(uintptr(p[0]), unix.F_SETPIPE_SZ, outputSize) // less will do
		if err = unix.SetNonblock(p[0], true); err != nil {
			o.close()
			e.close()
			return o, e, step("nonblock", err)
		}
	}
	return o, e, nil
}

// spawn starts a command in a session of its own. extra are the child's
// descriptors by number: others than the outputs. Without a 0 it reads /dev/null.
func (s *supervisor) spawn(c *wire.Command, env []string, extra map[int]int) (process, error) {
	return s.spawnAs(wire.UID, c, env, extra)
}

// spawnRoot is spawn for what is no program: it has process 1's user and capabilities,
// and is outside of namespaces of programs.
func (s *supervisor) spawnRoot(c *wire.Command, env []string, extra map[int]int) (process, error) {
	return s.spawnAs(0, c, env, extra)
}

func (s *supervisor) spawnAs(uid uint32, c *wire.Command, env []string, extra map[int]int) (_ process, err error) {
	if err := s.limit(c.Limits); err != nil {
		return process{}, err
	}
	o, e, err := outputs()
	if err != nil {
		return process{}, err
	}
	defer unix.Close(o[1])
	defer unix.Close(e[1])
	files := []uintptr{^uintptr(0), uintptr(o[1]), uintptr(e[1])}
	if _, given := extra[0]; !given {
		null, err := newStdin(nil)
		if err != nil {
			unix.Close(o[0])
			unix.Close(e[0])
			return process{}, err
		}
		defer unix.Close(null)
		files[0] = uintptr(null)
	}
	for to, fd := range extra {
		for len(files) <= to {
			files = append(files, ^uintptr(0))
		}
		files[to] = uintptr(fd)
	}
	p := process{pidfd: -1, note: -1, stdout: o[0], stderr: e[0]}
	marks := s.commandMarks()
	outside := s.own == nil || uid == 0 // of namespaces of programs
	if outside && !confine.Needed(&s.rules) && s.limits.OpenFiles != 0 {
		n, mark := s.limits.OpenFiles, uint64(0)
		if marks != nil {
			mark = marks.Next()
		}
		v := &vfork.Program{Path: c.Path, Argv: c.Argv, Env: env, Dir: c.Dir, UID: uid, GID: uid, OpenFiles: unix.Rlimit{Cur: n, Max: n}, FileLocks: mark}
		for _, fd := range files {
			v.Files = append(v.Files, int(fd)) // -1 stays what it is
		}
		pid, pidfd, ok, err := vfork.Start(v)
		if ok && err == nil {
			p.pid, p.pidfd, p.mark = pid, pidfd, mark
			return p, nil
		}
	}
	attr := &syscall.ProcAttr{
		Dir:   c.Dir,
		Env:   env,
		Files: files,
		Sys: &syscall.SysProcAttr{
			Setsid:     true,
			Credential: &syscall.Credential{Uid: uid, Gid: uid, Groups: []uint32{uid}},
			PidFD:      &p.pidfd,
		},
	}
	fork := func() (err error) {
		switch {
		case confine.Needed(&s.rules):
			err = s.launch(c, attr, &p)
		case !outside:
			p.pid, err = s.own.fork(c.Path, c.Argv, attr)
		default:
			p.pid, err = forkExec(c.Path, c.Argv, attr)
		}
		return err
	}
	if marks == nil {
		err = fork()
	} else { // mark the process as it forks: after it changes its user, process 1 cannot mark it
		p.mark, err = marks.During(fork)
	}
	if err != nil {
		unix.Close(o[0])
		unix.Close(e[0])
		return process{}, step("start "+c.Path, err)
	}
	if p.tracer > 0 && marks != nil {
		marks.Unmark(p.tracer) // the tracer must survive a kill to report the command's outcome
	}
	return p, nil
}

// limit sets what the next process inherits. Process 1 shares the limits, which
// do not bind it: it needs no second task and few descriptors.
func (s *supervisor) limit(l wire.Limits) error {
	if l.Processes != 0 && l.Processes != s.limits.Processes {
		r := unix.Rlimit{Cur: l.Processes, Max: l.Processes}
		if err := unix.Prlimit(0, unix.RLIMIT_NPROC, &r, nil); err != nil {
			return step("limit processes", err)
		}
		s.limits.Processes = l.Processes
	}
	if l.OpenFiles != 0 && l.OpenFiles != s.limits.OpenFiles {
		r := unix.Rlimit{Cur: l.OpenFiles, Max: l.OpenFiles}
		if err := unix.Prlimit(0, unix.RLIMIT_NOFILE, &r, nil); err != nil {
			return step("limit open files", err)
		}
		s.limits.OpenFiles = l.OpenFiles
	}
	return nil
}
