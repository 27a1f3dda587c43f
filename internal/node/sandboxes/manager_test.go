package sandboxes_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/atoll-run/atoll/internal/app/config"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/node/engine"
	"github.com/atoll-run/atoll/internal/node/image"
	"github.com/atoll-run/atoll/internal/node/sandboxes"
	"github.com/atoll-run/atoll/test/atolltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestASandboxThatEndsByItselfIsLost(t *testing.T) {
	t.Parallel()
	m := start(t, nil)
	p := m.caller("a")
	sb := m.ensure(p, "s", "x", nil)
	m.shell(p, "s", "x", "true")
	if err := m.engine.Sandboxes().Remove(t.Context(), sb.ID); err != nil { // behind the manager's back
		t.Fatal(err)
	}
	_, err := m.Use(t.Context(), p, "s", "x")
	refused(t, "its use", err, fault.Conflict, "is lost")
	if got, err := m.Get(t.Context(), p, "s", "x"); err != nil || got.State != sandbox.Lost || got.Detail == "" {
		t.Errorf("recorded as %+v, %v", got, err)
	}
	if _, created, err := m.Ensure(t.Context(), p, "s", "x", nil); err != nil || created {
		t.Errorf("any will do: %v, %v", created, err)
	}
	again, created, err := m.Ensure(t.Context(), p, "s", "x", &sandbox.Spec{})
	if err != nil || !created || again.ID == sb.ID {
		t.Errorf("created anew: %+v, %v, %v", again, created, err)
	}
	m.shell(p, "s", "x", "true")
}

func TestSandboxesOutliveTheProcess(t *testing.T) {
	t.Parallel()
	m := start(t, nil)
	ctx := t.Context()
	p, gone := m.caller("a"), m.caller("gone")
	kept, dead := m.ensure(p, "s", "kept", nil), m.ensure(p, "s", "dead", nil)
	m.ensure(gone, "s", "x", nil)
	m.shell(p, "s", "kept", `echo kept > f; (while :; do date +%s%N > beat; sleep 0.1; done) >/dev/null 2>&1 & until [ -s beat ]; do sleep 0.05; done`)
	delete(m.callers, gone.Key.ID)
	m.close()
	if err := sandboxOf(m, dead.ID); err != nil {
		t.Fatal(err)
	}
	m.open()
	if got := m.shell(p, "s", "kept", `cat f; before=$(cat beat); for i in $(seq 100); do [ "$(cat beat)" != "$before" ] && echo alive && exit; sleep 0.1; done; exit 1`); got != "kept\nalive" {
		t.Errorf("after the take-over: %s", got)
	}
	if sb, err := m.Get(ctx, p, "s", "kept"); err != nil || sb.ID != kept.ID || sb.State != sandbox.Running {
		t.Errorf("taken over: %+v, %v", sb, err)
	}
	if sb, err := m.Get(ctx, p, "s", "dead"); err != nil || sb.State != sandbox.Lost {
		t.Errorf("one that died meanwhile: %+v, %v", sb, err)
	}
	m.shell(gone, "s", "x", "true") // its maker's key is gone, others of the environment are not
	m.restart()
	m.shell(p, "s", "kept", `cat f`)
}

// sandboxOf kills a sandbox while no process has the folder.
func sandboxOf(m *machine, id runtime.ID) error {
	binary, err := atolltest.Binary()
	if err != nil {
		return err
	}
	bin := filepath.Dir(binary)
	e, err := engine.Open(context.Background(), engine.Config{
		Platform: engine.Platform{
			Runsc: filepath.Join(bin, "atoll-runsc"), Guest: filepath.Join(bin, "atoll-guest"),
			State: config.DefaultStateDir(m.dir), Disk: filepath.Join(m.dir, "state"), Name: engine.Server, Log: slog.New(slog.DiscardHandler),
		},
		Images: nothing{}, Image: atolltest.Image, Limits: runtime.DefaultLimits(), Journals: true, Registry: prometheus.NewRegistry(),
	})
	if err != nil {
		return err
	}
	return errors.Join(e.Sandboxes().Remove(context.Background(), id), e.Close())
}

// nothing is a store of images that has the one of tests, without interpreters.
type nothing struct{}

func (nothing) Use(string) (*image.Image, func() error, error) {
	return &image.Image{Name: atolltest.Image}, func() error { return nil }, nil
}

// flaky is an engine that cannot open anything for a while.
type flaky struct {
	sandboxes.Engine
	fails *atomic.Bool
}

func (f flaky) Open(ctx context.Context, r sandboxes.Recipe) (sandboxes.Live, error) {
	if f.fails.Load() {
		return nil, errors.New("too many open files")
	}
	return f.Engine.Open(ctx, r)
}

func TestASandboxThatCannotBeTakenOverIsNotGivenUp(t *testing.T) {
	t.Parallel()
	var fails atomic.Bool
	m := start(t, func(c *sandboxes.Config) { c.Engine = flaky{c.Engine, &fails} })
	p := m.caller("a")
	m.ensure(p, "s", "x", nil)
	m.shell(p, "s", "x", "echo kept > f")
	fails.Store(true)
	m.restart()
	_, err := m.Use(t.Context(), p, "s", "x")
	refused(t, "meanwhile", err, fault.Unavailable, "Retry later")
	fails.Store(false)
	if got := m.shell(p, "s", "x", "cat f"); got != "kept" {
		t.Errorf("afterwards: %q", got)
	}
}

// held is an engine in which opening one sandbox takes until a gate opens.
type held struct {
	sandboxes.Engine
	id   *atomic.Value // a runtime.ID
	gate chan struct{}
}

func (h held) Open(ctx context.Context, r sandboxes.Recipe) (sandboxes.Live, error) {
	if h.id.Load() == r.ID {
		select {
		case <-h.gate:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return h.Engine.Open(ctx, r)
}

// A sandbox that is still to be taken over keeps its own calls waiting, and no others.
func TestCallsWaitForTheTakeOver(t *testing.T) {
	t.Parallel()
	id, gate := &atomic.Value{}, make(chan struct{})
	m := start(t, func(c *sandboxes.Config) { c.Engine = held{c.Engine, id, gate} })
	p := m.caller("a")
	slow := m.ensure(p, "s", "slow", nil)
	m.ensure(p, "s", "fast", nil)
	m.shell(p, "s", "slow", "echo kept > f")
	id.Store(slow.ID)
	m.recoverBehind = true
	m.restart()
	m.shell(p, "s", "fast", "true")
	m.ensure(p, "s", "new", nil)
	m.shell(p, "s", "new", "true")
	if n := m.Recovering(); n != 1 {
		t.Errorf("%d sandboxes are to be taken over", n)
	}
	if sb, err := m.Get(t.Context(), p, "s", "slow"); err != nil || sb.State != sandbox.Running {
		t.Errorf("meanwhile it is %+v, %v", sb, err)
	}
	brief, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := m.Use(brief, p, "s", "slow")
	refused(t, "a call that does not wait", err, fault.Unavailable, "retry in a few seconds")
	called := make(chan error, 1)
	go func() {
		h, err := m.Use(t.Context(), p, "s", "slow")
		if err == nil {
			h.Close()
		}
		called <- err
	}()
	select {
	case err := <-called:
		t.Errorf("a call did not wait: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(gate)
	if err := <-called; err != nil {
		t.Error(err)
	}
	if got := m.shell(p, "s", "slow", "cat f"); got != "kept" || m.Recovering() != 0 {
		t.Errorf("afterwards: %q, %d to be taken over", got, m.Recovering())
	}
}

// A caller without a key waits for the take-over, which checks whether a valid key remains.
func TestPreviewsWaitForTheTakeOver(t *testing.T) {
	t.Parallel()
	id, gate := &atomic.Value{}, make(chan struct{})
	m := start(t, func(c *sandboxes.Config) { c.Engine = held{c.Engine, id, gate} })
	p := m.caller("a")
	sb := m.ensure(p, "s", "x", nil)
	m.close()
	delete(m.callers, p.Key.ID) // revoked
	id.Store(sb.ID)
	m.recoverBehind = true
	m.open()
	reached := make(chan error, 1)
	go func() {
		h, err := m.Reach(t.Context(), sb.ID)
		if err == nil {
			h.Close()
		}
		reached <- err
	}()
	select {
	case err := <-reached:
		t.Errorf("it did not wait: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(gate)
	refused(t, "without a valid key", <-reached, fault.Unauthorized, "revoked")
}

// A server that stops in the middle of the take-over leaves the rest to the next one.
func TestTheTakeOverIsCutShort(t *testing.T) {
	t.Parallel()
	id, gate := &atomic.Value{}, make(chan struct{})
	m := start(t, func(c *sandboxes.Config) { c.Engine = held{c.Engine, id, gate} })
	p := m.caller("a")
	id.Store(m.ensure(p, "s", "x", nil).ID)
	m.shell(p, "s", "x", "echo kept > f")
	m.recoverBehind = true
	m.restart() // it waits for the gate
	id.Store(runtime.ID(""))
	m.recoverBehind = false
	m.restart()
	if got := m.shell(p, "s", "x", "cat f"); got != "kept" {
		t.Errorf("the next one finds %q", got)
	}
}
