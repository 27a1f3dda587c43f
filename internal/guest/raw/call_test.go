package raw

import (
	"os"
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
