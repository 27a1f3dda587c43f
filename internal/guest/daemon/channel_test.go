package daemon

import (
	"bytes"
	"io"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// newTestChannel returns a channel whose pipe is full, and the other end.
func newTestChannel(t *testing.T) (c *channel, r *os.File, filled int) {
	t.Helper()
	in, out, err := pipe()
	if err != nil {
		t.Fatal(err)
	}
	r = os.NewFile(uintptr(in), "reader")
	t.Cleanup(func() { r.Close() })
	if err := unix.SetNonblock(out, true); err != nil {
		t.Fatal(err)
	}
	if c, err = newChannel(out, "input"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	much := make([]byte, 1<<20)
	rest, err := c.begin(much)
	if err != nil || len(rest) == 0 {
		t.Fatalf("%d bytes are left, %v", len(rest), err)
	}
	return c, r, len(much) - len(rest)
}

// within fails the test unless f returns soon.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatalf("%s hangs", what)
	}
}

// Who is told to stop while another writes neither waits for that one nor disturbs
// it, and writes nothing later.
func TestStoppingToWriteWaitsForNobody(t *testing.T) {
	c, r, filled := newTestChannel(t)
	first := c.goOn([]byte("first"))
	for c.mu.TryLock() { // until that one has its turn
		c.mu.Unlock()
		runtime.Gosched()
	}
	second := c.goOn([]byte("second"))
	within(t, "stop of one that waits", second)
	got := make([]byte, filled+len("first"))
	within(t, "the other one's writing", func() {
		if _, err := io.ReadFull(r, got); err != nil {
			t.Error(err)
		}
	})
	if !bytes.HasSuffix(got, []byte("first")) {
		t.Errorf("it ends with %q", got[len(got)-10:])
	}
	within(t, "stop of one that is done", first)
	within(t, "the turn", c.mu.Lock) // both are over
	c.mu.Unlock()
	if rest, err := c.begin([]byte("!")); err != nil || len(rest) > 0 {
		t.Fatalf("%q is left, %v", rest, err)
	}
	if n, err := r.Read(got); err != nil || string(got[:n]) != "!" {
		t.Errorf("then there is %q, %v", got[:n], err)
	}
}

// Whose turn comes while it is told to stop does not begin to write for good.
func TestStoppingToWriteIsNotLost(t *testing.T) {
	c, _, _ := newTestChannel(t)
	for range 200 {
		c.mu.Lock()
		stop := c.goOn([]byte("more"))
		go func() { // as a writer does
			c.SetWriteDeadline(never)
			c.mu.Unlock()
		}()
		within(t, "stop", stop)
	}
	within(t, "the turn", c.mu.Lock)
}
