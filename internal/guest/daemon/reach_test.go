package daemon

import (
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/guest/proto"
)

// caller is a host that asks for a port on which nothing listens.
type caller struct {
	*peer
	t    *testing.T
	host net.Conn
	port uint16
}

func newCaller(t *testing.T, told time.Time) *caller {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	host, guest := net.Pipe()
	t.Cleanup(func() { host.Close(); guest.Close() })
	c := &caller{&peer{Conn: proto.NewConn(guest, 1<<10), daemon: &daemon{}}, t, host, uint16(ln.Addr().(*net.TCPAddr).Port)}
	c.told.Store(told.UnixNano())
	return c
}

func (c *caller) ask(wait time.Duration) (err error) {
	c.t.Helper()
	within(c.t, "reach", func() {
		var f *os.File
		if f, err = c.reach(&proto.Connect{Port: c.port, Wait: int64(wait)}); err == nil {
			err = f.Close()
		}
	})
	if n := c.awaiting.Load(); n != 0 {
		c.t.Errorf("%d are said to wait", n)
	}
	return err
}

// soonAfter calls f when a request waits.
func (c *caller) soonAfter(f func()) (done chan struct{}) {
	done = make(chan struct{})
	go func() {
		defer close(done)
		for c.awaiting.Load() == 0 {
			runtime.Gosched()
		}
		f()
	}()
	return done
}

// TestWhatIsAboutToListen is waited for, if it may be that anything is.
func TestWhatIsAboutToListen(t *testing.T) {
	t.Run("it does", func(t *testing.T) {
		c := newCaller(t, time.Now())
		var ln net.Listener
		done := c.soonAfter(func() {
			var err error
			if ln, err = net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(c.port)}); err != nil {
				t.Error(err)
			}
		})
		if err := c.ask(time.Hour); err != nil {
			t.Error(err)
		}
		<-done
		ln.Close()
		if c.Waiting() {
			t.Error("something was said meanwhile")
		}
	})
	t.Run("it does not", func(t *testing.T) {
		if err := newCaller(t, time.Now()).ask(200 * time.Millisecond); !refused(err) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("nothing was started lately", func(t *testing.T) {
		if err := newCaller(t, time.Now().Add(-startTime)).ask(time.Hour); !refused(err) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("no request waits", func(t *testing.T) {
		if err := newCaller(t, time.Now()).ask(0); !refused(err) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("the host goes", func(t *testing.T) {
		c := newCaller(t, time.Now())
		done := c.soonAfter(func() { c.host.Close() })
		if err := c.ask(time.Hour); !refused(err) {
			t.Errorf("got %v", err)
		}
		<-done
	})
	t.Run("too many wait", func(t *testing.T) {
		c := newCaller(t, time.Now())
		c.awaiting.Add(maxAwaiting)
		defer c.awaiting.Add(-maxAwaiting)
		var err error
		within(t, "one more", func() { _, err = c.reach(&proto.Connect{Port: c.port, Wait: int64(time.Hour)}) })
		if !refused(err) {
			t.Errorf("got %v", err)
		}
	})
}
