package raw

import (
	"os"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestCallsAreTheKernels makes calls by their numbers: the first of the places that
// calls are made from, one in the middle, the last one, and one after it.
func TestCallsAreTheKernels(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if _, err := w.WriteString("text"); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 8)
	if n, err := Read(int(r.Fd()), b); n != 4 || err != nil || string(b[:n]) != "text" {
		t.Errorf("read(2) is %d of %q: %v", n, b, err)
	}
	if pid, e := Direct(unix.SYS_GETPID, 0, 0, 0, 0, 0, 0); e != 0 || int(pid) != os.Getpid() {
		t.Errorf("getpid(2) is %d: %v, not %d", pid, e, os.Getpid())
	}
	for _, number := range []uintptr{447, 448, 5000} {
		want1, _, want := unix.RawSyscall6(number, ^uintptr(0), 0, 0, 0, 0, 0)
		if got1, got := Direct(number, ^uintptr(0), 0, 0, 0, 0, 0); got1 != want1 || got != want {
			t.Errorf("%d is %d, %v, not %d, %v", number, got1, got, want1, want)
		}
	}
	// All six arguments.
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := w.WriteString("moved"); err != nil {
		t.Fatal(err)
	}
	at := int64(3)
	n, e := Direct(unix.SYS_SPLICE, r.Fd(), 0, file.Fd(), uintptr(unsafe.Pointer(&at)), 5, unix.SPLICE_F_NONBLOCK)
	if text, err := os.ReadFile(file.Name()); e != 0 || n != 5 || err != nil || string(text) != "\x00\x00\x00moved" {
		t.Errorf("splice(2) is %d: %v, and the file %q: %v", n, e, text, err)
	}
	if _, err := Read(-1, b); err != unix.EBADF {
		t.Errorf("read(2) of no descriptor is %v, not %v", err, unix.EBADF)
	}
}

// TestExec executes a program, and tells which call of several failed.
func TestExec(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	all, before := ^uint64(0), uint64(0)
	for _, c := range []struct {
		path  string
		close uintptr
		at    int
		want  error
	}{
		{"/bin/sh", w.Fd() + 1000, 1, unix.EBADF},
		{"/bin/sh", 2, -1, nil},
		{"/nothing", 2, 3, unix.ENOENT},
	} {
		s := &Steps{}
		mask := new(uint64)
		s.Add(unix.SYS_DUP3, w.Fd(), 1, 0)
		s.Add(unix.SYS_CLOSE, c.close)
		s.Add(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, Address(s, mask), 0, 8)
		s.Add(unix.SYS_EXECVE, s.Text(c.path), s.Texts([]string{"sh", "-c", "echo said"}), s.Texts(nil))
		runtime.LockOSThread()
		unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&all)), uintptr(unsafe.Pointer(&before)), 8, 0, 0)
		p, err := Exec(s)
		unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&before)), 0, 8, 0, 0)
		runtime.UnlockOSThread()
		if err != nil {
			t.Fatal(err)
		}
		if at, why := p.Failed(); at != c.at || why != c.want {
			t.Errorf("%s: step %d failed with %v", c.path, at, why)
		}
		var status unix.WaitStatus
		if _, err := unix.Wait4(p.PID, &status, 0, nil); err != nil {
			t.Fatal(err)
		}
		unix.Close(p.FD)
		b := make([]byte, 16)
		if c.at < 0 {
			if n, err := r.Read(b); string(b[:n]) != "said\n" || err != nil || status.ExitStatus() != 0 {
				t.Errorf("%s: it wrote %q: %v, %v", c.path, b[:n], err, status)
			}
		}
	}
	s := &Steps{}
	s.Add(unix.SYS_CHDIR, s.Text("a\x00b"))
	if _, err := Exec(s); err != unix.EINVAL {
		t.Errorf("a path that cannot be is %v", err)
	}
}

// TestBegin has a process wait until it is killed, and another end at a call that fails.
func TestBegin(t *testing.T) {
	for _, c := range []struct {
		fd uintptr
		at int
	}{{1 << 20, 0}, {0, -1}} {
		s := &Steps{}
		mask := ^uint64(0)
		s.Add(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, Address(s, &mask), 0, 8)
		if c.at >= 0 {
			s = &Steps{}
			s.Add(unix.SYS_CLOSE, c.fd)
		}
		s.Add(unix.SYS_PPOLL)
		p, err := Begin(0, s)
		if err != nil {
			t.Fatal(err)
		}
		if c.at < 0 {
			if err := unix.PidfdSendSignal(p.FD, unix.SIGKILL, nil, 0); err != nil {
				t.Error(err)
			}
		}
		var status unix.WaitStatus
		if _, err := unix.Wait4(p.PID, &status, 0, nil); err != nil {
			t.Fatal(err)
		}
		unix.Close(p.FD)
		at, why := p.Failed()
		if at != c.at || c.at >= 0 && why != unix.EBADF || status.Signaled() != (c.at < 0) {
			t.Errorf("step %d failed with %v; %v", at, why, status)
		}
	}
}
