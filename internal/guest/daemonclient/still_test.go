package daemonclient_test

import (
	"errors"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/guest/daemonclient"
	"github.com/atoll-run/atoll/internal/guest/daemonclient/clienttest"
)

// TestASandboxThatStops in the middle of all that is under way ends it, and is the same
// to the next conversation once it goes on. One that is made to stop ends nothing.
func TestASandboxThatStops(t *testing.T) {
	s := clienttest.New(t)
	dial := func() *daemonclient.Client {
		t.Helper()
		c, err := daemonclient.Timeouts{Silence: time.Hour, Work: time.Hour, Pulse: 2 * time.Second}.Dial(t.Context(), s.Meeting, s.Cue)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	freeze := func(f func()) {
		t.Helper()
		if err := s.Freeze(t.Context()); err != nil {
			t.Fatal(err)
		}
		f()
		if err := s.Thaw(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	c := dial()
	p := start(t, c, process.Spec{Shell: `echo ready; read line; echo "got $line"`, Env: clienttest.Env, Input: true})
	o := follow(t, c, p.ID, 0)
	until(t, o, "ready\n")
	waits := func() map[string]func() error {
		watch, err := c.Watch(t.Context(), "/tmp", true)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { watch.Close() })
		return map[string]func() error{
			"follow": func() error { _, err := o.Next(); return err },
			"watch":  func() error { _, err := watch.Next(); return err },
			"wait":   func() error { _, err := c.Wait(t.Context(), p.ID); return err },
			"stat":   func() error { _, err := c.Stat(t.Context(), "/tmp"); return err },
		}
	}()
	ends := make(chan error, len(waits))
	freeze(func() {
		for name, wait := range waits {
			go func() {
				err := wait()
				if !errors.Is(err, daemonclient.ErrSilent) || fault.KindOf(err) != fault.Conflict {
					t.Errorf("%s: %v", name, err)
				}
				ends <- err
			}()
		}
		for range waits {
			<-ends
		}
	})

	c = dial()
	o = follow(t, c, p.ID, process.Seq(len("ready\n")))
	c.SetFrozen(true)
	freeze(func() { time.Sleep(6 * time.Second) }) // the load: three signs of life are due, and none comes
	c.SetFrozen(false)
	if n, err := c.Write(t.Context(), p.ID, []byte("on\n")); n != 3 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	until(t, o, "got on\n")
}
