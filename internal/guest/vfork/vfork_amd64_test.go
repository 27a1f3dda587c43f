package vfork

import (
	"errors"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// start starts a program as this user, and returns what it wrote and how it ended.
func start(t *testing.T, p *Program) (string, unix.WaitStatus) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	out, err := unix.FcntlInt(w.Fd(), unix.F_DUPFD_CLOEXEC, 64)
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	p.Files = []int{out, out, out}
	p.UID, p.GID = uint32(os.Getuid()), uint32(os.Getgid())
	pid, pidfd, ok, err := Start(p)
	unix.Close(out)
	if err != nil || !ok {
		t.Fatalf("%v, %v", ok, err)
	}
	defer unix.Close(pidfd)
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, int((10 * time.Second).Milliseconds()))
	for err == unix.EINTR { // by the signals of a test
		n, err = unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, int((10 * time.Second).Milliseconds()))
	}
	if n != 1 || err != nil {
		t.Errorf("its descriptor does not tell of its end: %d, %v", n, err)
	}
	var status unix.WaitStatus
	for {
		if _, err = unix.Wait4(pid, &status, 0, nil); err != unix.EINTR {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(text), status
}

func needsRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("run this as root: groups are set")
	}
}

// TestStart looks at what a program finds: its arguments, variables, folder, limit and
// session, no signal blocked, those ignored that this process was started with, and no descriptor
// of its parent's.
func TestStart(t *testing.T) {
	needsRoot(t)
	const script = `echo "$0 $1 $NAME $PWD $(ulimit -Sn) $(ulimit -Hn)"
grep -E '^(SigBlk|SigIgn|SigCgt):' /proc/self/status
read -r pid name state ppid group session rest < /proc/$$/stat
[ "$session" = $$ ] && echo leads
ls /proc/$$/fd | tr '\n' ' '`
	p := &Program{
		Path: "/bin/sh", Argv: []string{"sh", "-c", script, "first", "second"}, Env: []string{"NAME=value", "PATH=/usr/bin:/bin"}, Dir: "/usr",
		OpenFiles: unix.Rlimit{Cur: 100, Max: 200},
	}
	own, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	ignored := regexp.MustCompile(`SigIgn:.*\n`).FindString(string(own))
	got, status := start(t, p)
	if status.ExitStatus() != 0 {
		t.Errorf("it ended with %v", status)
	}
	for _, want := range []string{"first second value /usr 100 200\n", "SigBlk:\t0000000000000000\n", ignored, "leads\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
	fds := strings.Fields(got[strings.LastIndexByte(got, '\n')+1:])
	if slices.Contains(fds, strconv.Itoa(p.Files[0])) || !slices.Contains(fds, "2") {
		t.Errorf("its descriptors: %v", fds)
	}
}

// TestStartFails tells what execve(2) says from what else may fail.
func TestStartFails(t *testing.T) {
	needsRoot(t)
	fd, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	null, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 64)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(null)
	limit := unix.Rlimit{Cur: 100, Max: 100}
	for _, c := range []struct {
		name string
		p    Program
		ok   bool
		want error
	}{
		{"no program", Program{Path: "/nothing", Dir: "/", Files: []int{null, null, null}}, true, unix.ENOENT},
		{"a folder", Program{Path: "/usr", Dir: "/", Files: []int{null, null, null}}, true, unix.EACCES},
		{"no folder to be in", Program{Path: "/bin/sh", Dir: "/nothing", Files: []int{null, null, null}}, false, unix.ENOENT},
		{"a descriptor that another takes the place of", Program{Path: "/bin/sh", Dir: "/", Files: []int{null, null, 0}}, false, nil},
		{"a NUL", Program{Path: "/bin/sh", Dir: "/\x00", Files: []int{null, null, null}}, false, nil},
	} {
		c.p.Argv, c.p.OpenFiles = []string{"x"}, limit
		pid, pidfd, ok, err := Start(&c.p)
		if pid != 0 || pidfd != -1 || ok != c.ok || !errors.Is(err, c.want) {
			t.Errorf("%s: %d, %d, %v, %v", c.name, pid, pidfd, ok, err)
		}
	}
	if n, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err != unix.ECHILD {
		t.Errorf("a child is left: %d, %v", n, err)
	}
}

// TestStartOften starts programs while signals arrive and memory is collected.
func TestStartOften(t *testing.T) {
	needsRoot(t)
	over := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		var garbage [][]byte
		for {
			select {
			case <-over:
				return
			default:
				garbage = append(garbage, make([]byte, 1<<16))
				if len(garbage) > 100 {
					garbage = nil
				}
				_ = unix.Kill(os.Getpid(), unix.SIGURG)
			}
		}
	}()
	for range 200 {
		got, status := start(t, &Program{Path: "/bin/echo", Argv: []string{"echo", "said"}, Dir: "/", OpenFiles: unix.Rlimit{Cur: 100, Max: 100}})
		if got != "said\n" || status.ExitStatus() != 0 {
			t.Fatalf("%q, %v", got, status)
		}
	}
	close(over)
	<-done
}
