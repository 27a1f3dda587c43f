package sandboxes_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/atoll-run/atoll/internal/app/config"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/node/engine"
	"github.com/atoll-run/atoll/internal/node/image"
	"github.com/atoll-run/atoll/internal/node/sandboxes"
	"github.com/atoll-run/atoll/test/atolltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestASandboxIsMadeOnceAndUsedAgain(t *testing.T) {
	m := start(t, nil)
	p := m.caller("a", func(p *tenant.Principal) {
		p.Environment.Env = map[string]string{"ENVIRONMENT": "e", "KEY": "e", "OWN": "e", "ONCE": "e"}
		p.Key.Env = map[string]string{"KEY": "k", "OWN": "k", "ONCE": "k"}
	})
	ctx := t.Context()
	sb, created, err := m.Ensure(ctx, p, "s", "builder", &sandbox.Spec{Image: "node:22", Env: map[string]string{"OWN": "o", "ONCE": "o"}})
	if err != nil || !created || sb.State != sandbox.Running || sb.Image != atolltest.Image || sb.ImageAlias != "node:22" {
		t.Fatalf("%+v, %v, %v", sb, created, err)
	}
	again, created, err := m.Ensure(ctx, p, "s", "builder", &sandbox.Spec{Image: "node:22"})
	if err != nil || created || again.ID != sb.ID {
		t.Errorf("again: %+v, %v, %v", again, created, err)
	}
	if _, created, err = m.Ensure(ctx, p, "s", "builder", nil); err != nil || created {
		t.Errorf("any will do: %v, %v", created, err)
	}
	_, _, err = m.Ensure(ctx, p, "s", "builder", &sandbox.Spec{Image: "no-such-image"})
	refused(t, "an image that is not there", err, fault.Invalid, "atoll image import")

	if got := m.shell(p, "s", "builder", `echo $ENVIRONMENT $KEY $OWN $ONCE; id -u; pwd; echo file > f; (sleep 1000 & echo $! > /tmp/pid)`); got != "e k o o\n1000\n/home/user" {
		t.Errorf("in the sandbox: %s", got)
	}
	if got := m.shell(p, "", string(sb.ID), `cat f; kill -0 $(cat /tmp/pid) && echo alive`); got != "file\nalive" {
		t.Errorf("later, by its id: %s", got)
	}
	u, err := m.Usage(ctx, p, "s", "builder")
	if err != nil || u.Memory < 1<<20 || u.Disk == 0 {
		t.Errorf("usage: %+v, %v", u, err)
	}
	if err := m.Destroy(ctx, p, "s", "builder"); err != nil {
		t.Fatal(err)
	}
	_, err = m.Use(ctx, p, "s", "builder")
	refused(t, "a destroyed one", err, fault.NotFound, "no sandbox")
	if got, err := m.Get(ctx, p, "", string(sb.ID)); err != nil || got.State != sandbox.Destroyed {
		t.Errorf("on record: %+v, %v", got, err)
	}
	if orphans, err := m.Orphans(ctx); err != nil || len(orphans) > 0 {
		t.Errorf("orphans: %v, %v", orphans, err)
	}
	other, created, err := m.Ensure(ctx, p, "s", "builder", nil)
	if err != nil || !created || other.ID == sb.ID {
		t.Errorf("anew: %+v, %v, %v", other, created, err)
	}
	if got := m.shell(p, "s", "builder", `ls`); strings.Contains(got, "f") {
		t.Errorf("a new sandbox has %q", got)
	}
}

func TestOneOfANameHoweverManyAskForIt(t *testing.T) {
	m := start(t, nil)
	p := m.caller("a")
	var g sync.WaitGroup
	var mu sync.Mutex
	ids, made := map[runtime.ID]bool{}, 0
	for range 20 {
		g.Go(func() {
			sb, created, err := m.Ensure(t.Context(), p, "s", sandbox.Default, &sandbox.Spec{})
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			ids[sb.ID] = true
			if created {
				made++
			}
		})
	}
	g.Wait()
	if len(ids) != 1 || made != 1 {
		t.Errorf("%d sandboxes, %d made", len(ids), made)
	}
}

func TestNobodySeesAnothersSandboxes(t *testing.T) {
	m := start(t, nil)
	ctx := t.Context()
	p := m.caller("a")
	sb := m.ensure(p, "s", "one", nil)
	m.ensure(p, "s2", "two", nil)
	elsewhere := m.caller("b", func(q *tenant.Principal) { q.Tenant.ID = p.Tenant.ID }) // another environment
	for who, q := range map[string]*tenant.Principal{"another tenant": m.caller("c"), "another environment": elsewhere} {
		for _, name := range []string{"one", string(sb.ID)} {
			_, err := m.Use(ctx, q, "s", name)
			refused(t, who+" uses it", err, fault.NotFound, "there is no sandbox")
			_, err = m.Get(ctx, q, "s", name)
			refused(t, who+" gets it", err, fault.NotFound, "")
			_, err = m.Update(ctx, q, "s", name, sandbox.Change{})
			refused(t, who+" changes it", err, fault.NotFound, "")
			_, err = m.Usage(ctx, q, "s", name)
			refused(t, who+" measures it", err, fault.NotFound, "")
			refused(t, who+" destroys it", m.Destroy(ctx, q, "s", name), fault.NotFound, "")
		}
		if list, err := m.List(ctx, q, ""); err != nil || len(list) > 0 {
			t.Errorf("%s sees %v, %v", who, list, err)
		}
	}
	_, err := m.Use(ctx, p, "s2", "one")
	refused(t, "another session", err, fault.NotFound, "")
	names := func(session string) (names []string) {
		list, err := m.List(ctx, p, session)
		if err != nil {
			t.Error(err)
		}
		for _, sb := range list {
			names = append(names, sb.Session+"/"+sb.Name)
		}
		return names
	}
	if got := names("s"); !slices.Equal(got, []string{"s/one"}) {
		t.Errorf("a session's: %v", got)
	}
	if got := names(""); !slices.Equal(got, []string{"s/one", "s2/two"}) {
		t.Errorf("all: %v", got)
	}
	_, err = m.List(ctx, &tenant.Principal{}, "")
	refused(t, "a key without environment", err, fault.Forbidden, "no environment")
	for _, bad := range []string{"", "-a", "a b", "ä", strings.Repeat("a", 65), "a/b", "../x", "a\n", string(runtime.NewID())} {
		_, _, err := m.Ensure(ctx, p, "s", bad, nil)
		refused(t, "the name "+bad, err, fault.Invalid, "sandbox's name")
	}
	for _, bad := range []string{"", "a\x00", strings.Repeat("a", 129), "\xff"} {
		_, _, err := m.Ensure(ctx, p, bad, "x", nil)
		refused(t, "the session "+bad, err, fault.Invalid, "session")
	}
}

func TestASandboxThatEndsByItselfIsLost(t *testing.T) {
	m := start(t, nil)
	p := m.caller("a")
	sb := m.ensure(p, "s", "x", nil)
	m.shell(p, "s", "x", "true")
	if err := m.engine.Named().Remove(t.Context(), sb.ID); err != nil { // behind the manager's back
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
	m := start(t, nil)
	ctx := t.Context()
	p, gone := m.caller("a"), m.caller("gone")
	kept, dead := m.ensure(p, "s", "kept", nil), m.ensure(p, "s", "dead", nil)
	m.ensure(gone, "s", "x", nil)
	m.shell(p, "s", "kept", `echo kept > f; (while :; do date +%s%N > beat; sleep 0.1; done) >/dev/null 2>&1 &`)
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
	return errors.Join(e.Named().Remove(context.Background(), id), e.Close())
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
	var fails atomic.Bool
	m := start(t, func(c *sandboxes.Config) { c.Engine = flaky{c.Engine, &fails} })
	p := m.caller("a")
	m.ensure(p, "s", "x", nil)
	m.shell(p, "s", "x", "echo kept > f")
	fails.Store(true)
	m.restart()
	_, err := m.Use(t.Context(), p, "s", "x")
	refused(t, "meanwhile", err, fault.Unavailable, "retry later")
	fails.Store(false)
	if got := m.shell(p, "s", "x", "cat f"); got != "kept" {
		t.Errorf("afterwards: %q", got)
	}
}
