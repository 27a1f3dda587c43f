package named_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/atoll-run/atoll/internal/blob"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/engine"
	"github.com/atoll-run/atoll/internal/fault"
	"github.com/atoll-run/atoll/internal/guest/attend"
	"github.com/atoll-run/atoll/internal/image"
	"github.com/atoll-run/atoll/internal/named"
	"github.com/atoll-run/atoll/internal/owner"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/store"
	"github.com/atoll-run/atoll/internal/store/storetest"
	"github.com/atoll-run/atoll/internal/tenant"
	"github.com/atoll-run/atoll/internal/thread"
	"github.com/atoll-run/atoll/internal/usage"
	"github.com/atoll-run/atoll/test/atolltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// machine is a manager with all it needs, which can be ended and started again on
// the same folder.
type machine struct {
	*named.Manager
	t       *testing.T
	dir     string
	db      *store.DB
	change  func(*named.Config)
	blobs   string               // where the blob store is
	network func(*engine.Config) // nil for none
	callers callers

	engine *engine.Engine
	store  *blob.Store // of blobs
	end    context.CancelFunc
	loop   sync.WaitGroup
}

// callers are who holds keys.
type callers map[string]*tenant.Principal

func (c callers) Holder(_ context.Context, _ tenant.ID, key string) (tenant.Principal, error) {
	if p := c[key]; p != nil {
		return *p, nil
	}
	return tenant.Principal{}, fault.New(fault.Unauthorized, "invalid API key")
}

func start(t *testing.T, change func(*named.Config)) *machine {
	t.Helper()
	return startWith(t, change, nil)
}

func startWith(t *testing.T, change func(*named.Config), network func(*engine.Config)) *machine {
	t.Helper()
	dir, err := os.MkdirTemp("", "atoll-named-") // t.TempDir is closed to the sandbox's user
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(dir, "state", engine.Server)
	if err := thread.Secure(own); err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, dir: dir, db: storetest.SQLite(t), blobs: "file://" + filepath.Join(dir, "blobs"), change: change, network: network, callers: callers{}}
	t.Cleanup(func() {
		for _, err := range []error{thread.Unmount(own), os.RemoveAll(dir)} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	m.open()
	t.Cleanup(func() {
		m.destroy()
		if left, err := os.ReadDir(filepath.Join(own, engine.NamedFolder)); err == nil && len(left) > 0 {
			t.Errorf("files are left: %v", left)
		}
		if left, err := os.ReadDir(config.DefaultStateDir(dir)); err == nil && len(left) > 0 {
			t.Errorf("state is left: %v", left)
		}
	})
	return m
}

// open starts all but the store.
func (m *machine) open() {
	m.t.Helper()
	binary, err := atolltest.Binary()
	if err != nil {
		m.t.Fatal(err)
	}
	folder, err := atolltest.ImageDir()
	if err != nil {
		m.t.Fatal(err)
	}
	images, err := image.Open(filepath.Dir(folder))
	if err != nil {
		m.t.Fatal(err)
	}
	bin := filepath.Dir(binary)
	with := engine.Config{
		Platform: engine.Platform{
			Runsc: filepath.Join(bin, "atoll-runsc"), Guest: filepath.Join(bin, "atoll-guest"),
			State: config.DefaultStateDir(m.dir), Disk: filepath.Join(m.dir, "state"), Name: engine.Server, Log: slog.New(slog.DiscardHandler),
		},
		Images: images, Image: atolltest.Image, Limits: sandbox.DefaultLimits(), Journals: true, Registry: prometheus.NewRegistry(),
	}
	if m.network != nil {
		m.network(&with)
	}
	if m.engine, err = engine.Open(context.Background(), with); err != nil {
		m.t.Fatal(err)
	}
	if m.store, err = blob.Open(context.Background(), m.blobs); err != nil {
		m.t.Fatal(err)
	}
	owners, err := owner.Find()
	if err != nil {
		m.t.Fatal(err)
	}
	kept, err := thread.NewStore(thread.Config{Blobs: m.store, Folder: "snapshots", Key: make([]byte, thread.KeySize), Owners: owners})
	if err != nil {
		m.t.Fatal(err)
	}
	cfg := named.Config{
		Store: m.db.Sandboxes(), Snapshots: m.db.Snapshots(), Vault: engine.Vault{Engine: m.engine, Store: kept}, Stored: -1, Engine: m.engine.Named(), Callers: m.callers, Executor: "exe_1", Disk: func() error { return nil }, Room: func(int64) error { return nil },
		Images: &image.Aliases{Store: images, Default: atolltest.Image}, Prices: usage.DefaultPrices(), Rules: []string{"jwt"},
		SleepAfter: time.Hour, Believed: time.Hour, Detach: true, Log: slog.New(slog.NewTextHandler(m.t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	if m.change != nil {
		m.change(&cfg)
	}
	m.Manager = named.New(cfg)
	if err := m.Recover(context.Background()); err != nil {
		m.t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	m.end = end
	m.loop.Go(func() { m.Run(ctx) })
}

// close ends this process's part, and nothing else if the manager detaches.
func (m *machine) close() {
	m.t.Helper()
	if m.end == nil {
		return
	}
	m.end()
	m.end = nil
	m.loop.Wait()
	for _, err := range []error{m.Close(context.Background()), m.engine.Close(), m.store.Close()} {
		if err != nil {
			m.t.Error(err)
		}
	}
}

// restart is a process after another.
func (m *machine) restart() {
	m.t.Helper()
	m.close()
	m.open()
}

// destroy ends everything.
func (m *machine) destroy() {
	m.t.Helper()
	m.close()
	before := m.change
	m.change = func(c *named.Config) {
		if before != nil {
			before(c)
		}
		c.Detach = false
	}
	m.open()
	m.close()
}

// caller is somebody with a key and an environment of its own.
func (m *machine) caller(name string, change ...func(*tenant.Principal)) *tenant.Principal {
	m.t.Helper()
	p := &tenant.Principal{
		Tenant:      tenant.Tenant{ID: "ten_" + name, Name: name, AuditDays: 30},
		Environment: tenant.Environment{ID: "env_" + name, Name: "default", Image: atolltest.Image, Limits: sandbox.DefaultLimits()},
		Key:         tenant.Key{ID: "key_" + name},
	}
	for _, c := range change {
		c(p)
	}
	m.callers[p.Key.ID] = p
	return p
}

func (m *machine) ensure(p *tenant.Principal, session, name string, spec *named.Spec) *named.Sandbox {
	m.t.Helper()
	sb, _, err := m.Ensure(m.t.Context(), p, session, name, spec)
	if err != nil {
		m.t.Fatal(err)
	}
	return sb
}

// shell runs a command in p's sandbox, and returns what it wrote.
func (m *machine) shell(p *tenant.Principal, session, name, command string) string {
	m.t.Helper()
	h, err := m.Use(m.t.Context(), p, session, name)
	if err != nil {
		m.t.Fatal(err)
	}
	defer h.Close()
	out, exit, err := run(m.t.Context(), h, command)
	if err != nil || exit.Code != 0 {
		m.t.Fatalf("%s: %+v, %v: %s", command, exit, err, out)
	}
	return out
}

func run(ctx context.Context, h *named.Handle, command string) (string, attend.Exit, error) {
	o, err := h.Guest().Run(ctx, attend.ProcessSpec{Shell: command, Env: h.Environ(nil), Limits: h.Limits(), Timeout: time.Minute})
	if err != nil {
		return "", attend.Exit{}, err
	}
	defer o.Close()
	var out strings.Builder
	for {
		c, err := o.Next()
		if errors.Is(err, io.EOF) {
			return strings.TrimSpace(out.String()), o.Exit(), nil
		}
		if err != nil {
			return out.String(), attend.Exit{}, err
		}
		out.Write(c.Data)
	}
}

func refused(t *testing.T, what string, err error, kind fault.Kind, says string) {
	t.Helper()
	if fault.KindOf(err) != kind || err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("%s: %v, not of kind %d with %q", what, err, kind, says)
	}
}

func TestASandboxIsMadeOnceAndUsedAgain(t *testing.T) {
	m := start(t, nil)
	p := m.caller("a", func(p *tenant.Principal) {
		p.Environment.Env = map[string]string{"ENVIRONMENT": "e", "KEY": "e", "OWN": "e", "ONCE": "e"}
		p.Key.Env = map[string]string{"KEY": "k", "OWN": "k", "ONCE": "k"}
	})
	ctx := t.Context()
	sb, created, err := m.Ensure(ctx, p, "s", "builder", &named.Spec{Image: "node:22", Env: map[string]string{"OWN": "o", "ONCE": "o"}})
	if err != nil || !created || sb.State != named.Running || sb.Image != atolltest.Image || sb.Asked != "node:22" {
		t.Fatalf("%+v, %v, %v", sb, created, err)
	}
	again, created, err := m.Ensure(ctx, p, "s", "builder", &named.Spec{Image: "node:22"})
	if err != nil || created || again.ID != sb.ID {
		t.Errorf("again: %+v, %v, %v", again, created, err)
	}
	if _, created, err = m.Ensure(ctx, p, "s", "builder", nil); err != nil || created {
		t.Errorf("any will do: %v, %v", created, err)
	}
	_, _, err = m.Ensure(ctx, p, "s", "builder", &named.Spec{Image: "no-such-image"})
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
	if got, err := m.Get(ctx, p, "", string(sb.ID)); err != nil || got.State != named.Destroyed {
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
	ids, made := map[sandbox.ID]bool{}, 0
	for range 20 {
		g.Go(func() {
			sb, created, err := m.Ensure(t.Context(), p, "s", named.Default, &named.Spec{})
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
			_, err = m.Update(ctx, q, "s", name, named.Change{})
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
	for _, bad := range []string{"", "-a", "a b", "ä", strings.Repeat("a", 65), "a/b", "../x", "a\n", string(sandbox.NewID())} {
		_, _, err := m.Ensure(ctx, p, "s", bad, nil)
		refused(t, "the name "+bad, err, fault.Invalid, "sandbox's name")
	}
	for _, bad := range []string{"", "a\x00", strings.Repeat("a", 129), "\xff"} {
		_, _, err := m.Ensure(ctx, p, bad, "x", nil)
		refused(t, "the session "+bad, err, fault.Invalid, "session")
	}
}

func TestPlansBoundSandboxes(t *testing.T) {
	m := start(t, func(c *named.Config) { c.Most = 3 })
	ctx := t.Context()
	few := m.caller("few", func(p *tenant.Principal) {
		p.Plan = tenant.Plan{Name: "few", MaxSandboxes: 1, MaxSandboxLife: time.Hour}
	})
	m.ensure(few, "s", "a", nil)
	_, _, err := m.Ensure(ctx, few, "s", "b", nil)
	refused(t, "a second", err, fault.Exhausted, "sandbox limit reached")
	if _, err := m.Get(ctx, few, "s", "b"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a refused one: %v", err)
	}
	if sb, err := m.Get(ctx, few, "s", "a"); err != nil || sb.ExpiresAt == nil || time.Until(*sb.ExpiresAt) > time.Hour {
		t.Errorf("its time: %+v, %v", sb, err)
	}
	two := 2 * time.Hour
	_, err = m.Update(ctx, few, "s", "a", named.Change{Timeout: &two})
	refused(t, "a longer life", err, fault.Exhausted, "lives 1h0m0s at most")
	small := m.caller("small", func(p *tenant.Principal) { p.Plan = tenant.Plan{Name: "small", MaxSandboxMemory: 600 << 20} })
	m.ensure(small, "s", "a", nil)
	_, _, err = m.Ensure(ctx, small, "s", "b", nil)
	refused(t, "more memory", err, fault.Exhausted, "sandbox memory limit")
	m.ensure(m.caller("any"), "s", "a", nil)
	_, _, err = m.Ensure(ctx, m.caller("more"), "s", "a", nil)
	refused(t, "more than the machine has", err, fault.Unavailable, "its limit")
	if err := m.Destroy(ctx, few, "s", "a"); err != nil {
		t.Error(err)
	}
	m.ensure(few, "s", "b", nil)
}

func TestTimeEnds(t *testing.T) {
	m := start(t, nil)
	p := m.caller("a")
	sb := m.ensure(p, "s", "short", &named.Spec{Timeout: time.Second})
	atolltest.Until(t, 20*time.Second, "its time is over", func() bool {
		_, err := m.Use(t.Context(), p, "s", "short")
		return fault.KindOf(err) == fault.NotFound
	})
	if got, err := m.Get(t.Context(), p, "", string(sb.ID)); err != nil || got.State != named.Destroyed || got.Detail != "its time was over" {
		t.Errorf("on record: %+v, %v", got, err)
	}
	m.ensure(p, "s", "longer", &named.Spec{Timeout: 2 * time.Second})
	hour := time.Hour
	if sb, err := m.Update(t.Context(), p, "s", "longer", named.Change{Timeout: &hour}); err != nil || time.Until(*sb.ExpiresAt) < 59*time.Minute {
		t.Errorf("extended: %+v, %v", sb, err)
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
	if got, err := m.Get(t.Context(), p, "s", "x"); err != nil || got.State != named.Lost || got.Detail == "" {
		t.Errorf("recorded as %+v, %v", got, err)
	}
	if _, created, err := m.Ensure(t.Context(), p, "s", "x", nil); err != nil || created {
		t.Errorf("any will do: %v, %v", created, err)
	}
	again, created, err := m.Ensure(t.Context(), p, "s", "x", &named.Spec{})
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
	if sb, err := m.Get(ctx, p, "s", "kept"); err != nil || sb.ID != kept.ID || sb.State != named.Running {
		t.Errorf("taken over: %+v, %v", sb, err)
	}
	if sb, err := m.Get(ctx, p, "s", "dead"); err != nil || sb.State != named.Lost {
		t.Errorf("one that died meanwhile: %+v, %v", sb, err)
	}
	m.shell(gone, "s", "x", "true") // its maker's key is gone, others of the environment are not
	m.restart()
	m.shell(p, "s", "kept", `cat f`)
}

// sandboxOf kills a sandbox while no process has the folder.
func sandboxOf(m *machine, id sandbox.ID) error {
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
		Images: nothing{}, Image: atolltest.Image, Limits: sandbox.DefaultLimits(), Journals: true, Registry: prometheus.NewRegistry(),
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
	named.Engine
	fails *atomic.Bool
}

func (f flaky) Open(ctx context.Context, r named.Recipe) (named.Live, error) {
	if f.fails.Load() {
		return nil, errors.New("too many open files")
	}
	return f.Engine.Open(ctx, r)
}

func TestASandboxThatCannotBeTakenOverIsNotGivenUp(t *testing.T) {
	var fails atomic.Bool
	m := start(t, func(c *named.Config) { c.Engine = flaky{c.Engine, &fails} })
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

func TestTimeIsCharged(t *testing.T) {
	m := start(t, nil)
	p := m.caller("a")
	began := time.Now()
	m.ensure(p, "s", "x", nil)
	m.shell(p, "s", "x", "true")
	m.restart()
	m.shell(p, "s", "x", "sleep 0.2")
	if err := m.Destroy(t.Context(), p, "s", "x"); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began).Seconds()
	days, err := m.db.Usage().Summary(t.Context(), p.Tenant.ID, began.Add(-time.Hour), began.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	var seconds float64
	for _, d := range days {
		seconds += d.Seconds
		if d.Source != named.SourceSandbox || d.Calls != 0 {
			t.Errorf("in the ledger: %+v", d)
		}
	}
	if seconds < 0.2 || seconds > took {
		t.Errorf("charged for %g of %g seconds", seconds, took)
	}
}

func TestFilesAreBounded(t *testing.T) {
	m := start(t, func(c *named.Config) { c.DiskLimit = 64 << 20 })
	p := m.caller("a")
	m.ensure(p, "s", "x", nil)
	h, err := m.Use(t.Context(), p, "s", "x")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	_, exit, err := run(t.Context(), h, `i=0; while :; do head -c 8388608 /dev/zero > big$i; i=$((i+1)); sleep 0.05; done`)
	if err != nil || exit.Code == 0 {
		t.Fatalf("the writer: %+v, %v", exit, err)
	}
	refused(t, "why", h.Killed(exit), fault.Exhausted, "64 MiB")
	u, err := m.Usage(t.Context(), p, "s", "x")
	if err != nil || u.Disk < 64<<20 {
		t.Errorf("usage: %+v, %v", u, err)
	}
	if got := m.shell(p, "s", "x", `rm big*; sleep 2; echo small > f; cat f`); got != "small" {
		t.Errorf("after deleting: %s", got)
	}
}

func TestMemoryThatRunsOutEndsTheProgramAlone(t *testing.T) {
	m := start(t, nil)
	p := m.caller("a")
	m.ensure(p, "s", "x", nil)
	m.shell(p, "s", "x", `echo kept > f`)
	h, err := m.Use(t.Context(), p, "s", "x")
	if err != nil {
		t.Fatal(err)
	}
	_, exit, err := run(t.Context(), h, `exec python3 -c 'x = []
while True: x.append(bytearray(8 << 20))'`)
	h.Close()
	if err != nil || exit.Code == 0 {
		t.Errorf("the program: %+v, %v", exit, err)
	}
	if got := m.shell(p, "s", "x", "cat f"); got != "kept" {
		t.Errorf("then: %q", got)
	}
}

// TestASandboxCostsTheServerLittle: it may have hundreds of them.
func TestASandboxCostsTheServerLittle(t *testing.T) {
	const most, n = 1 << 20, 6
	m := start(t, nil)
	p := m.caller("a")
	used := func() int64 {
		for range 3 { // what finalizers let go of goes with the next
			runtime.GC()
		}
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return int64(s.HeapInuse + s.StackInuse)
	}
	make1 := func(i int) {
		m.ensure(p, "s", "x"+strconv.Itoa(i), nil)
		m.shell(p, "s", "x"+strconv.Itoa(i), "head -c 1000000 /dev/zero")
	}
	make1(0)
	before := used()
	for i := range n {
		make1(i + 1)
	}
	if each := (used() - before) / n; each > most {
		t.Errorf("a sandbox costs %d bytes of memory", each)
	} else {
		t.Logf("a sandbox costs %d bytes of memory", each)
	}
}
