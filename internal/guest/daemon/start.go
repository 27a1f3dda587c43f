package daemon

import (
	"errors"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/confine"
	"github.com/atoll-run/atoll/internal/guest/proto"
	"github.com/atoll-run/atoll/internal/guest/vfork"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

// start starts a process and, if that is wanted, goes on with its output.
func (c *peer) start(q *proto.Start) bool {
	p, u, err := c.launch(q)
	if err != nil {
		return c.reply(proto.Reply{}, err)
	}
	about := p.about()
	if !q.Follow {
		if u != nil {
			go u.run()
		}
		return c.reply(proto.Reply{Process: &about}, nil)
	}
	f := p.join(0)
	defer f.leave()
	if u != nil {
		go u.run()
	}
	if c.Encode(proto.Answer, proto.Reply{Process: &about}) != nil || !c.tell(f) {
		return false
	}
	// The host may be gone before it has read the end: then it is kept.
	if t, err := c.Next(); err != nil || t != proto.Taken {
		return false
	}
	return c.procs.forget(p.id) == nil
}

// launch starts a process, whose pump the caller has to run, or finds the one that
// was started under its id.
func (a *daemon) launch(q *proto.Start) (_ *process, _ *pump, err error) {
	p := &process{table: &a.procs, id: q.ID, dir: q.Dir, lossless: q.Lossless || q.Patient, patient: q.Patient, isTTY: q.Terminal != nil, started: time.Now(), followers: map[*follower]bool{}}
	p.changed.L = &p.mu
	if len(p.dir) == 0 {
		p.dir = []byte(wire.Home)
	} else if p.dir[0] != '/' { // as paths of files
		p.dir = []byte(wire.Home + "/" + string(p.dir))
	}
	if !validID(q.ID) {
		return nil, nil, refuse(proto.Invalid, "a process needs an id of 1 to 64 letters, digits, - and _")
	}
	p.starting.Lock()
	defer p.starting.Unlock()
	is, err := a.procs.begin(p)
	if err != nil {
		return nil, nil, err
	}
	if is != p {
		if !is.begun() {
			return nil, nil, refuse(proto.Failed, "process %q could not be started", q.ID)
		}
		return is, nil, nil
	}
	defer func() {
		if err != nil {
			a.procs.failed(p)
		}
	}()
	cmd, err := command(q, string(p.dir))
	if err != nil {
		return nil, nil, err
	}
	if err = locate(cmd, q.Shell != nil); err != nil {
		return nil, nil, err
	}
	u, files, err := p.plumb(q)
	if err != nil {
		return nil, nil, err
	}
	p.mark, err = a.fork(u, cmd, files, q.Terminal != nil, q.OpenFiles)
	files.close()
	if err != nil {
		u.discard()
		return nil, nil, err
	}
	for _, arg := range cmd.Argv {
		p.argv = append(p.argv, []byte(arg))
	}
	p.pump = u
	if q.Timeout > 0 {
		p.mu.Lock()
		p.timer = time.AfterFunc(time.Duration(q.Timeout), p.expire)
		p.mu.Unlock()
	}
	return p, u, nil
}

func validID(id string) bool {
	return id != "" && len(id) <= 64 && strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == ""
}

// fork makes the process, and returns its mark.
func (a *daemon) fork(u *pump, cmd *wire.Command, files files, terminal bool, openFiles int) (mark uint64, err error) {
	if !confine.Needed(&a.rules) && !terminal && openFiles > 0 {
		n := uint64(openFiles)
		mark = a.marks.Next()
		pid, pidfd, ok, err := vfork.Start(&vfork.Program{
			Path: cmd.Path, Argv: cmd.Argv, Env: cmd.Env, Dir: cmd.Dir, Files: files, UID: wire.UID, GID: wire.GID, OpenFiles: unix.Rlimit{Cur: n, Max: n}, FileLocks: mark,
		})
		if ok {
			u.pid, u.fds[endOf] = pid, pidfd
			return mark, unstarted(cmd.Path, err)
		}
	}
	attr := &syscall.ProcAttr{
		Dir: cmd.Dir, Env: cmd.Env, Files: files.of(),
		Sys: &syscall.SysProcAttr{
			Setsid: true, Setctty: terminal,
			Credential: &syscall.Credential{Uid: wire.UID, Gid: wire.GID, Groups: []uint32{wire.GID}},
			PidFD:      &u.fds[endOf],
		},
	}
	mark, err = a.marks.During(func() (err error) {
		if confine.Needed(&a.rules) {
			var s confine.Started
			s, err = confine.Start(&a.rules, cmd, attr)
			u.pid, u.fds[note], u.warden = s.PID, s.Note, s.Tracer
			return err
		}
		if u.pid, err = syscall.ForkExec(cmd.Path, cmd.Argv, attr); err == syscall.EPERM {
			// A user namespace may forbid setgroups; there is no group to drop then.
			attr.Sys.Credential.NoSetGroups = true
			u.pid, err = syscall.ForkExec(cmd.Path, cmd.Argv, attr)
		}
		return err
	})
	if u.warden > 0 && err == nil {
		a.marks.Unmark(u.warden) // it reports what its command did, also after a kill
		u.fds[tracer], err = unix.PidfdOpen(u.warden, 0)
	}
	if err == nil && u.fds[endOf] < 0 {
		u.fds[endOf], err = unix.PidfdOpen(u.pid, 0)
	}
	if err == nil && openFiles > 0 {
		// The soft limit it has had from its beginning; this keeps it from raising it.
		n := uint64(openFiles)
		if err := unix.Prlimit(u.pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: n, Max: n}, nil); err != nil && err != unix.ESRCH {
			return mark, step("limit the open files of", cmd.Path, err)
		}
	}
	return mark, unstarted(cmd.Path, err)
}

// programErrors are those of execve(2) that are about the program itself.
var programErrors = []syscall.Errno{unix.ENOENT, unix.EACCES, unix.EPERM, unix.ENOEXEC, unix.EISDIR, unix.ENOTDIR, unix.ELOOP}

// unstarted says why a program could not be started: because there is none, because
// it cannot be executed, or for a lack of something else.
func unstarted(program string, err error) error {
	n, _ := errors.AsType[syscall.Errno](err)
	if err = step("start", program, err); !slices.Contains(programErrors, n) {
		return err
	}
	why := refusal(err)
	why.Program = true
	return why
}

// discard ends what could not be started whole.
func (u *pump) discard() {
	if u.pid > 0 {
		unix.Kill(u.pid, unix.SIGKILL)
		_, _ = unix.Wait4(u.pid, &u.status, 0, &u.usage)
	}
	for i := range u.fds {
		if u.fds[i] >= 0 {
			unix.Close(u.fds[i])
		}
	}
	u.file.Close()
	u.input.close()
	u.requests.close()
}

// bash is the shell that commands get where there is one, sh where there is not.
const bash, sh = "bash", "sh"

// maxArgument is the longest that an argument or variable of a program can be, as
// kernels have it.
const maxArgument = 128<<10 - 1

// command is what a request asks to be executed, before it was looked up.
func command(q *proto.Start, dir string) (*wire.Command, error) {
	c := &wire.Command{Dir: dir}
	for _, list := range []struct {
		from [][]byte
		to   *[]string
	}{{q.Argv, &c.Argv}, {q.Env, &c.Env}} {
		for _, s := range list.from {
			*list.to = append(*list.to, string(s))
		}
	}
	if q.Terminal != nil && !slices.ContainsFunc(c.Env, func(v string) bool { return strings.HasPrefix(v, "TERM=") }) {
		c.Env = append(c.Env, "TERM=xterm-256color") // without it editors and pagers refuse the terminal
	}
	if q.Shell != nil {
		c.Argv = []string{bash, "-c", "--", string(*q.Shell)}
	}
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return nil, refuse(proto.Invalid, "there is no program to start")
	}
	for _, s := range append(append([]string{dir}, c.Argv...), c.Env...) {
		if strings.IndexByte(s, 0) >= 0 {
			return nil, refuse(proto.Invalid, "an argument, a variable or the working directory has a NUL in it, which no program can be given")
		}
		if len(s) > maxArgument {
			return nil, refuse(proto.Invalid, "a command, an argument or a variable has %d bytes, and no program can be given more than %d at once: write them to a file", len(s), maxArgument)
		}
	}
	return c, nil
}

// locate finds the program, and sees whether it can be started where it should.
func locate(c *wire.Command, shell bool) error {
	if shell {
		c.Path, c.Argv[0] = "/bin/sh", sh
		for _, path := range []string{"/bin/bash", "/usr/bin/bash"} {
			if unix.Faccessat2(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS) == nil {
				c.Path, c.Argv[0] = path, bash
				break
			}
		}
	}
	return asUser(func() error {
		if err := entered(c.Dir); err != nil {
			return err
		}
		if c.Path == "" {
			c.Path = find(c.Argv[0], c.Env)
		}
		return nil
	})
}

// entered says why a program cannot have a working directory, with the rights in
// effect.
func entered(dir string) error {
	var st unix.Stat_t
	err := unix.Stat(dir, &st)
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		err = unix.ENOTDIR
	}
	if err == nil {
		err = unix.Faccessat2(unix.AT_FDCWD, dir, unix.X_OK, unix.AT_EACCESS)
	}
	return step("working directory", dir, err)
}

// find looks a program up as a shell would. What is not found is left to fail.
func find(name string, env []string) string {
	if strings.Contains(name, "/") {
		return name
	}
	for _, v := range env {
		list, ok := strings.CutPrefix(v, "PATH=")
		if !ok {
			continue
		}
		for dir := range strings.SplitSeq(list, ":") {
			file := path.Join("/", dir, name)
			var st unix.Stat_t
			if unix.Stat(file, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && unix.Faccessat(unix.AT_FDCWD, file, unix.X_OK, unix.AT_EACCESS) == nil {
				return file
			}
		}
	}
	return name
}

// files are a child's descriptors, by number.
type files []int

func (f files) of() (list []uintptr) {
	for _, fd := range f {
		list = append(list, uintptr(fd))
	}
	return list
}

// close closes each once.
func (f files) close() {
	closed := map[int]bool{}
	for _, fd := range f {
		if fd >= 0 && !closed[fd] {
			closed[fd] = true
			unix.Close(fd)
		}
	}
}

// plumb makes the pipes of a process, or its terminal. They belong to the user,
// who may open them again as /dev/stdout.
func (p *process) plumb(q *proto.Start) (u *pump, child files, err error) {
	if u, err = newPump(p); err != nil {
		return nil, nil, err
	}
	err = asUser(func() error {
		if q.Terminal != nil {
			child, err = u.openTerminal(*q.Terminal)
		} else {
			child, err = u.openPipes(q.Input)
		}
		if err == nil && q.Control {
			err = u.openControl(&child)
		}
		return err
	})
	if err != nil {
		child.close()
		u.discard()
		return nil, nil, err
	}
	return u, child, nil
}

// outputSize is what an output's pipe holds, in bytes, as in process 1's runs.
const outputSize = 1 << 20

// openPipes makes the standard three. What the process's end of a pipe is, goes
// into child.
func (u *pump) openPipes(input bool) (child files, err error) {
	if !input {
		null, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, step("open", "/dev/null", err)
		}
		child = files{null}
	} else {
		r, w, err := pipe()
		if err != nil {
			return nil, err
		}
		child = files{r}
		if u.input, err = newChannel(w, "input"); err != nil {
			return child, err
		}
	}
	for i := range 2 {
		r, w, err := pipe()
		if err != nil {
			return child, err
		}
		child = append(child, w)
		u.fds[stdout+i] = r
		unix.FcntlInt(uintptr(r), unix.F_SETPIPE_SZ, outputSize) //nolint:errcheck // less will do
		if err := unix.SetNonblock(r, true); err != nil {
			return child, err
		}
	}
	return child, nil
}

func (u *pump) openControl(child *files) error {
	for len(*child) < 3 {
		*child = append(*child, -1)
	}
	r, w, err := pipe()
	if err != nil {
		return err
	}
	*child = append(*child, r)
	if u.requests, err = newChannel(w, "requests"); err != nil {
		return err
	}
	if r, w, err = pipe(); err != nil {
		return err
	}
	*child = append(*child, w)
	u.fds[control] = r
	return unix.SetNonblock(r, true)
}

func pipe() (r, w int, err error) {
	var p [2]int
	err = unix.Pipe2(p[:], unix.O_CLOEXEC)
	return p[0], p[1], err
}
