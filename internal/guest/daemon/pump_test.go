package daemon

import (
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// newTestPump returns a pump that runs, of a process that is silent, and writers to its
// standard output and descriptor 4.
func newTestPump(t *testing.T) (u *pump, out, answers *os.File) {
	t.Helper()
	p := &process{table: &table{all: map[string]*process{}}, id: "p", followers: map[*follower]bool{}}
	p.changed.L = &p.mu
	u, err := newPump(p)
	if err != nil {
		t.Fatal(err)
	}
	p.pump = u
	writer := func(stream int) *os.File {
		r, w, err := pipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.SetNonblock(r, true); err != nil {
			t.Fatal(err)
		}
		u.fds[stream] = r
		return os.NewFile(uintptr(w), "writer")
	}
	out, answers = writer(stdout), writer(control)
	if u.pid, err = syscall.ForkExec("/bin/sleep", []string{"sleep", "1000"}, &syscall.ProcAttr{Sys: &syscall.SysProcAttr{PidFD: &u.fds[endOf]}}); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		u.run()
	}()
	t.Cleanup(func() {
		out.Close()
		answers.Close()
		if err := unix.Kill(u.pid, unix.SIGKILL); err != nil {
			t.Error(err)
		}
		within(t, "the pump of a process that has ended", func() { <-over })
	})
	return u, out, answers
}

// What a process answers while converse waits for it is taken before converse goes on,
// so that all of it goes to the host at once; what it wrote before it comes first.
func TestExpectTakesTheAnswer(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // as in the daemon
	u, out, answers := newTestPump(t)
	const rounds = 20
	var at int64
	taken := 0
	for range rounds {
		for range 10 {
			runtime.Gosched() // until the pump, which alone has something to do, waits
		}
		for _, f := range []*os.File{out, answers} {
			if _, err := f.WriteString("1234"); err != nil {
				t.Fatal(err)
			}
		}
		came := u.expect(time.Second)
		u.mu.Lock()
		all := u.ring.last == at+8
		u.mu.Unlock()
		if !came && !all { // the pump may have run while a write was under way
			t.Fatal("nothing came")
		}
		if all {
			taken++
		}
		for last := int64(0); last < at+8; { // else it does so later
			runtime.Gosched()
			u.mu.Lock()
			last = u.ring.last
			u.mu.Unlock()
		}
		u.mu.Lock()
		first, _ := u.ring.from(at)
		second, _ := u.ring.from(at + 4)
		u.mu.Unlock()
		if first.stream != stdout || second.stream != control {
			t.Fatalf("stream %d came before stream %d", first.stream, second.stream)
		}
		at += 8
	}
	if taken < rounds/2 { // the scheduler may have had something else to do
		t.Errorf("%d of %d answers were taken at once", taken, rounds)
	}
}

func TestExpectGivesUp(t *testing.T) {
	u, _, _ := newTestPump(t)
	if u.expect(5 * time.Millisecond) {
		t.Error("something came from a process that is silent")
	}
}
