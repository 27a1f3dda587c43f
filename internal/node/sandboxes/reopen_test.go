package sandboxes_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/sandbox/sandboxtest"
	"github.com/atoll-run/atoll/internal/node/sandboxes"
	"github.com/atoll-run/atoll/test/atolltest"
)

// frail is an engine that fails as often as it is told, and forgetful such a store.
type frail struct {
	sandboxes.Engine
	opens, wakes atomic.Int32
}

type forgetful struct {
	sandbox.Records
	saves atomic.Int32
}

var errFrail = errors.New("for a test")

func failing(n *atomic.Int32) error {
	if n.Add(-1) >= 0 {
		return errFrail
	}
	return nil
}

func (f *frail) Open(ctx context.Context, r sandboxes.Recipe) (sandboxes.Live, error) {
	if err := failing(&f.opens); err != nil {
		return nil, err
	}
	return f.Engine.Open(ctx, r)
}

func (f *frail) Restore(ctx context.Context, r sandboxes.Recipe) (sandboxes.Live, error) {
	if err := failing(&f.wakes); err != nil {
		return nil, err
	}
	return f.Engine.Restore(ctx, r)
}

func (f *forgetful) Save(ctx context.Context, sb *sandbox.Sandbox) error {
	if err := failing(&f.saves); err != nil {
		return err
	}
	return f.Records.Save(ctx, sb)
}

func startFrail(t *testing.T) (*machine, *frail, *forgetful) {
	f, s := &frail{}, &forgetful{}
	m := start(t, func(c *sandboxes.Config) {
		f.Engine, s.Records = c.Engine, c.Records
		c.Engine, c.Records = f, s
	})
	return m, f, s
}

// TestASandboxOutlivesAWakeThatCannotBeRecorded fails to wake a sandbox, and to
// record that it sleeps on.
func TestASandboxOutlivesAWakeThatCannotBeRecorded(t *testing.T) {
	t.Parallel()
	m, f, s := startFrail(t)
	p := m.caller("a")
	m.ensure(p, "s", "one", nil)
	m.shell(p, "s", "one", sandboxtest.Program)
	was, _ := m.told(p, "s", "one")
	m.sleep(p, "s", "one")
	f.wakes.Store(1)
	s.saves.Store(1)
	_, err := m.Use(t.Context(), p, "s", "one")
	refused(t, "a use", err, fault.Unavailable, "could not be woken")
	if now, _ := m.told(p, "s", "one"); now != was {
		t.Errorf("it tells %q, and told %q", now, was)
	}
}

// TestWhatCouldNotBeTakenOverIsWithItsNextUse lets a manager take sandboxes over
// that it cannot open at first.
func TestWhatCouldNotBeTakenOverIsWithItsNextUse(t *testing.T) {
	t.Parallel()
	sleep := func(m *machine) error {
		_, err := m.Sleep(t.Context(), m.callers["key_a"], "s", "one")
		return err
	}
	fork := func(m *machine) error {
		_, err := m.Fork(t.Context(), m.callers["key_a"], "s", "one", 1)
		return err
	}
	for name, c := range map[string]struct {
		frozen bool
		do     func(*machine) error
	}{"used": {true, func(*machine) error { return nil }}, "put to sleep": {false, sleep}, "copied": {true, fork}} {
		t.Run(name, func(t *testing.T) {
			m, f, _ := startFrail(t)
			p := m.caller("a")
			spec := &sandbox.Spec{}
			if c.frozen {
				spec.SleepAfter = 300 * time.Millisecond
			}
			m.ensure(p, "s", "one", spec)
			m.shell(p, "s", "one", sandboxtest.Program)
			was, _ := m.told(p, "s", "one")
			if c.frozen {
				atolltest.Until(t, time.Minute, "it is frozen", func() bool { return m.get(p, "s", "one").State == sandbox.Sleeping })
			}
			f.opens.Store(1)
			m.restart()
			if err := c.do(m); err != nil {
				t.Fatal(err)
			}
			if now, _ := m.told(p, "s", "one"); now != was {
				t.Errorf("it tells %q, and told %q", now, was)
			}
		})
	}
}
