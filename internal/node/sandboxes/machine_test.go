package sandboxes_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-run/atoll/internal/app/config"
	"github.com/atoll-run/atoll/internal/control/directory"
	"github.com/atoll-run/atoll/internal/control/executors"
	control "github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/usage"
	"github.com/atoll-run/atoll/internal/infra/blob"
	"github.com/atoll-run/atoll/internal/infra/store"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
	"github.com/atoll-run/atoll/internal/node/contexts"
	"github.com/atoll-run/atoll/internal/node/engine"
	"github.com/atoll-run/atoll/internal/node/home"
	"github.com/atoll-run/atoll/internal/node/idmap"
	"github.com/atoll-run/atoll/internal/node/image"
	"github.com/atoll-run/atoll/internal/node/sandboxes"
	"github.com/atoll-run/atoll/test/atolltest"
)

// machine is a manager with all it needs, which can be ended and started again on
// the same folder.
type machine struct {
	*sandboxes.Manager
	t       *testing.T
	records *directory.Directory
	dir     string
	db      *store.DB
	change  func(*sandboxes.Config)
	blobs   string               // where the blob store is
	network func(*engine.Config) // nil for none
	callers callers

	recoverBehind bool // open does not wait for the end of the recovery

	engine *engine.Engine
	store  *blob.Store // of blobs
	end    context.CancelFunc
	loop   sync.WaitGroup
}

// callers are who holds keys.
type callers map[string]*tenant.Principal

func (c callers) Entrant(_ context.Context, _ tenant.ID, key, environment string) (tenant.Principal, error) {
	switch p := c[key]; {
	case p == nil:
		return tenant.Principal{}, fault.New(fault.Unauthorized, "invalid API key")
	case p.Environment.ID == environment:
		return *p, nil
	case p.May(tenant.ScopeEnvironments):
		return *entered(p, environment), nil
	}
	return tenant.Principal{}, fault.New(fault.Forbidden, "this key is limited to its environment")
}

// entered is p in another environment, which is like p's own.
func entered(p *tenant.Principal, environment string) *tenant.Principal {
	other := *p
	other.Environment.ID = environment
	return &other
}

func start(t *testing.T, change func(*sandboxes.Config)) *machine {
	t.Helper()
	return startWith(t, change, nil)
}

func startWith(t *testing.T, change func(*sandboxes.Config), network func(*engine.Config)) *machine {
	t.Helper()
	return startOn(t, storetest.SQLite(t), callers{}, change, network)
}

// startOn starts a machine with the records and keys of others.
func startOn(t *testing.T, db *store.DB, who callers, change func(*sandboxes.Config), network func(*engine.Config)) *machine {
	t.Helper()
	dir, err := os.MkdirTemp("", "atoll-named-") // t.TempDir is closed to the sandbox's user
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(dir, "state", engine.Server)
	if err := home.Secure(own); err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, dir: dir, db: db, blobs: "file://" + filepath.Join(dir, "blobs"), change: change, network: network, callers: who}
	t.Cleanup(func() {
		for _, err := range []error{home.Unmount(own), os.RemoveAll(dir)} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	m.open()
	t.Cleanup(func() {
		m.destroy()
		if left, err := os.ReadDir(filepath.Join(own, engine.SandboxFolder)); err == nil && len(left) > 0 {
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
		Images: images, Image: atolltest.Image, Limits: runtime.DefaultLimits(), Journals: true, Registry: prometheus.NewRegistry(),
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
	owners, err := idmap.Find()
	if err != nil {
		m.t.Fatal(err)
	}
	kept, err := home.NewStore(home.Config{Blobs: m.store, Folder: "snapshots", Key: make([]byte, home.KeySize), Owners: owners})
	if err != nil {
		m.t.Fatal(err)
	}
	cfg := sandboxes.Config{
		Contexts: contexts.New(),
		Records:  executors.Records{Store: m.db.Sandboxes()}, Ledger: control.Ledger{Accounts: m.db.Sandboxes(), Prices: usage.DefaultPrices()}, Snapshots: executors.SnapshotRecords{SnapshotStore: m.db.Snapshots()}, SnapshotFiles: engine.SnapshotStore{Engine: m.engine, Store: kept}, KeepOnDisk: -1, Engine: m.engine.Sandboxes(), Grants: directory.Grants{Callers: m.callers}, Executor: "exe_1", AdmitDisk: func() error { return nil }, AdmitBytes: func(int64) error { return nil },
		Images: &image.Aliases{Store: images, Default: atolltest.Image}, Rules: []string{"jwt"},
		SleepAfter: time.Hour, AuthTTL: time.Hour, Detach: true, Log: slog.New(slog.NewTextHandler(m.t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	if m.change != nil {
		m.change(&cfg)
	}
	m.Manager = sandboxes.New(cfg)
	m.records = directory.New(directory.Config{Local: m.Manager, Executor: cfg.Executor, Store: m.db.Sandboxes(), Snapshots: m.db.Snapshots(), Refusals: m.db.Audit()})
	finish, err := m.BeginRecovery(context.Background())
	if err != nil {
		m.t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	m.end = end
	if m.recoverBehind {
		m.loop.Go(func() {
			if err := finish(ctx); err != nil && ctx.Err() == nil {
				m.t.Error(err)
			}
		})
	} else if err := finish(context.Background()); err != nil {
		m.t.Fatal(err)
	}
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
	m.change = func(c *sandboxes.Config) {
		if before != nil {
			before(c)
		}
		c.Detach = false
	}
	m.open()
	m.close()
}

// caller is a caller with a key and an environment of its own.
func (m *machine) caller(name string, change ...func(*tenant.Principal)) *tenant.Principal {
	m.t.Helper()
	p := &tenant.Principal{
		Tenant:      tenant.Tenant{ID: "ten_" + name, Name: name, AuditDays: 30},
		Environment: tenant.Environment{ID: "env_" + name, Name: "default", Image: atolltest.Image, Limits: runtime.DefaultLimits()},
		Key:         tenant.Key{ID: "key_" + name},
	}
	for _, c := range change {
		c(p)
	}
	m.callers[p.Key.ID] = p
	return p
}

// The methods below are the Manager's, for the grants of principals.

func (m *machine) Ensure(ctx context.Context, p *tenant.Principal, session, name string, spec *sandbox.Spec) (*sandbox.Sandbox, bool, error) {
	return m.Manager.Ensure(ctx, sandbox.GrantOf(p), session, name, spec)
}

func (m *machine) Use(ctx context.Context, p *tenant.Principal, session, nameOrID string) (sandbox.Handle, error) {
	return m.Manager.Use(ctx, sandbox.GrantOf(p), session, nameOrID)
}

func (m *machine) Get(ctx context.Context, p *tenant.Principal, session, nameOrID string) (*sandbox.Sandbox, error) {
	return m.Manager.Get(ctx, sandbox.GrantOf(p), session, nameOrID)
}

func (m *machine) List(ctx context.Context, p *tenant.Principal, session string) ([]*sandbox.Sandbox, error) {
	return m.Manager.List(ctx, sandbox.GrantOf(p), session)
}

func (m *machine) Usage(ctx context.Context, p *tenant.Principal, session, nameOrID string) (sandbox.Usage, error) {
	return m.Manager.Usage(ctx, sandbox.GrantOf(p), session, nameOrID)
}

func (m *machine) Update(ctx context.Context, p *tenant.Principal, session, nameOrID string, c sandbox.Change) (*sandbox.Sandbox, error) {
	return m.Manager.Update(ctx, sandbox.GrantOf(p), session, nameOrID, c)
}

func (m *machine) Sleep(ctx context.Context, p *tenant.Principal, session, nameOrID string) (*sandbox.Sandbox, error) {
	return m.Manager.Sleep(ctx, sandbox.GrantOf(p), session, nameOrID)
}

func (m *machine) Restart(ctx context.Context, p *tenant.Principal, session, nameOrID string) (*sandbox.Sandbox, error) {
	return m.Manager.Restart(ctx, sandbox.GrantOf(p), session, nameOrID)
}

func (m *machine) Fork(ctx context.Context, p *tenant.Principal, session, nameOrID string, count int) ([]*sandbox.Sandbox, error) {
	return m.Manager.Fork(ctx, sandbox.GrantOf(p), session, nameOrID, count)
}

func (m *machine) Destroy(ctx context.Context, p *tenant.Principal, session, nameOrID string) error {
	_, err := m.Manager.Destroy(ctx, sandbox.GrantOf(p), session, nameOrID)
	return err
}

func (m *machine) Snapshot(ctx context.Context, p *tenant.Principal, session, nameOrID string, keep time.Duration) (*sandbox.Snapshot, error) {
	return m.Manager.Snapshot(ctx, sandbox.GrantOf(p), session, nameOrID, keep)
}

func (m *machine) ensure(p *tenant.Principal, session, name string, spec *sandbox.Spec) *sandbox.Sandbox {
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

func run(ctx context.Context, h sandbox.Handle, command string) (string, process.Exit, error) {
	o, err := h.Guest().Run(ctx, process.Spec{Shell: command, Timeout: time.Minute})
	if err != nil {
		return "", process.Exit{}, err
	}
	defer o.Close()
	var out strings.Builder
	for {
		c, err := o.Next()
		if errors.Is(err, io.EOF) {
			return strings.TrimSpace(out.String()), o.Exit(), nil
		}
		if err != nil {
			return out.String(), process.Exit{}, err
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
