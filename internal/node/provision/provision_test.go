package provision

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/store"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
	"github.com/atoll-run/atoll/internal/node/engine"
	"github.com/atoll-run/atoll/internal/node/image"
	"github.com/atoll-run/atoll/internal/node/image/imagetest"
	"github.com/atoll-run/atoll/internal/node/packages"
	"github.com/atoll-run/atoll/test/atolltest"
)

// installer leaves a file above the image, or fails.
type installer struct {
	mu   sync.Mutex
	err  error
	runs []engine.Installation
	hold chan struct{} // if not nil, Install waits for it
	held chan struct{} // Install waits
}

func (i *installer) Install(ctx context.Context, in engine.Installation, upper *os.File) error {
	i.mu.Lock()
	i.runs = append(i.runs, in)
	err, hold := i.err, i.hold
	i.mu.Unlock()
	if hold != nil {
		i.held <- struct{}{}
		select {
		case <-hold:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	fmt.Fprintln(in.Output, "collecting")
	if err != nil {
		return err
	}
	w := tar.NewWriter(upper)
	for _, name := range []string{"./usr/lib/new", "./tmp/left"} {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: 3}); err != nil {
			return err
		}
		_, _ = io.WriteString(w, "new")
	}
	return w.Close()
}

func (*installer) Installs() error    { return nil }
func (*installer) Probe() image.Probe { return nil }

func (i *installer) count() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.runs)
}

type rig struct {
	*Provisioner
	fake   *installer
	db     *store.DB
	images *image.Store
	now    time.Time
}

func open(t *testing.T) *rig {
	t.Helper()
	images, err := image.Open(filepath.Join(t.TempDir(), "images"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "base.tar")
	if err := tarball.WriteToFile(path, name.MustParseReference("base:latest"), imagetest.OCI(t, nil, imagetest.Layer(t, map[string]string{"bin/sh": "x", "usr/bin/python3": "x"}))); err != nil {
		t.Fatal(err)
	}
	if _, err := images.Import(t.Context(), image.ImportOptions{Name: "base", Source: path}); err != nil {
		t.Fatal(err)
	}
	all, err := packages.ParseList([]string{"*"})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{fake: &installer{held: make(chan struct{}, 10)}, db: storetest.SQLite(t), images: images, now: time.Now()}
	r.Provisioner = New(Config{
		Store: r.db.PackageBuilds(), Images: images, Installer: r.fake, Executor: "exe_a", Mirrors: map[requirement.Kind]bool{requirement.Pip: true}, Allowed: all,
		Time: time.Minute, Size: 64 << 20, Most: 2, Log: slog.New(slog.DiscardHandler), Clock: func() time.Time { return r.now },
	})
	ctx := t.Context()
	for _, err := range []error{
		r.db.Tenants().PutPlan(ctx, tenant.Plan{Name: "p"}),
		r.db.Tenants().CreateTenant(ctx, tenant.Tenant{ID: "ten_00000000000000aa", Name: "t", Plan: "p", Tier: tenant.Standard, AuditDays: 30}),
		r.db.Tenants().CreateTenant(ctx, tenant.Tenant{ID: neighbor, Name: "n", Plan: "p", Tier: tenant.Standard, AuditDays: 30}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return r
}

const neighbor = "ten_00000000000000ff"

// want makes an environment with packages, and returns its reference.
func (r *rig) want(t *testing.T, id string, pip ...string) string {
	t.Helper()
	return r.wantOf(t, "ten_00000000000000aa", id, pip...)
}

func (r *rig) wantOf(t *testing.T, of, id string, pip ...string) string {
	t.Helper()
	e := tenant.Environment{ID: id, Tenant: of, Name: id, Image: "base", Limits: runtime.DefaultLimits(), Packages: requirement.Set{Pip: pip}}
	if err := r.db.Tenants().CreateEnvironment(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	return e.RunImage()
}

func (r *rig) step(t *testing.T) {
	t.Helper()
	if err := r.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) state(t *testing.T, ref string) requirement.Build {
	t.Helper()
	b, err := r.Build(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	// A gateway without images answers the same from the records.
	records := requirement.Records{Store: r.db.PackageBuilds()}
	if same, err := records.Build(t.Context(), ref); err != nil || !reflect.DeepEqual(same, b) {
		t.Errorf("the records show %+v, %v, and the provisioner %+v", same, err, b)
	}
	return b
}

// TestOnce installs what two environments want once, keeps it, and collects it when neither
// has it any more.
func TestOnce(t *testing.T) {
	r := open(t)
	ref := r.want(t, "e1", "six==1.17.0")
	r.want(t, "e2", "six==1.17.0")
	if b := r.state(t, ref); b.State != requirement.Building || !b.UpdatedAt.IsZero() {
		t.Errorf("before it has begun: %+v", b)
	}
	r.step(t)
	r.step(t)
	name, err := r.Resolve(t.Context(), ref)
	if err != nil || r.fake.count() != 1 || !strings.HasPrefix(name, image.ExtendedPrefix) {
		t.Fatalf("%q after %d runs: %v", name, r.fake.count(), err)
	}
	if b := r.state(t, ref); b.State != requirement.Ready || b.Image != name || strings.Join(b.Log, "|") != "collecting" {
		t.Errorf("%+v", b)
	}
	if plain, err := r.Resolve(t.Context(), "base"); plain != "base" || err != nil {
		t.Errorf("an image without packages is %q, %v", plain, err)
	}
	argv := strings.Join(r.fake.runs[0].Programs[0], " ")
	if argv != "/usr/bin/python3 -I -m pip install --no-cache-dir -- six==1.17.0" {
		t.Errorf("it ran %s", argv)
	}
	for _, id := range []string{"e1", "e2"} {
		if _, err := r.images.Get(name); err != nil {
			t.Fatalf("before %s is deleted: %v", id, err)
		}
		if err := r.db.Tenants().DeleteEnvironment(t.Context(), "ten_00000000000000aa", id); err != nil {
			t.Fatal(err)
		}
		r.step(t)
	}
	if _, err := r.images.Get(name); fault.KindOf(err) != fault.NotFound {
		t.Errorf("nothing wants it: %v", err)
	}
	if _, err := r.images.Get("base"); err != nil {
		t.Error(err)
	}
}

// TestFailure has installing fail for good, and for a while.
func TestFailure(t *testing.T) {
	r := open(t)
	ref := r.want(t, "e1", "six")
	r.fake.err = &engine.ProgramError{Reason: "pip exited with 1"}
	r.step(t)
	r.step(t)
	if b := r.state(t, ref); b.State != requirement.Failed || strings.Join(b.Log, "|") != "collecting|pip exited with 1" || r.fake.count() != 1 {
		t.Errorf("%+v after %d runs", b, r.fake.count())
	}
	if _, err := r.Resolve(t.Context(), ref); fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "pip exited with 1") {
		t.Errorf("a call: %v", err)
	}
	r.cfg.Trouble = func(time.Time) string { return "the mirror is not trusted" }
	if err := r.Install(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	r.step(t)
	if b := r.state(t, ref); b.State != requirement.Failed || !strings.HasSuffix(strings.Join(b.Log, "|"), "pip exited with 1|the mirror is not trusted") {
		t.Errorf("with a mirror that is not trusted: %+v", b)
	}
	r.cfg.Trouble = nil
	r.fake.err = errors.New("a disk of this server's, /secret/path")
	if err := r.Install(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	r.step(t)
	r.step(t)
	if b := r.state(t, ref); b.State != requirement.Building || r.fake.count() != 3 || strings.Contains(strings.Join(b.Log, ""), "secret") {
		t.Errorf("%+v after %d runs", b, r.fake.count())
	}
	r.fake.err, r.now = nil, r.now.Add(2*retryTime)
	r.step(t)
	if b := r.state(t, ref); b.State != requirement.Ready {
		t.Errorf("%+v", b)
	}
}

// TestAgain has a process end within a build: the next one begins anew.
func TestAgain(t *testing.T) {
	r := open(t)
	ref := r.want(t, "e1", "six")
	r.fake.hold = make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Step(ctx) }()
	<-r.fake.held
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if b := r.state(t, ref); b.State != requirement.Building {
		t.Errorf("%+v", b)
	}
	left, err := filepath.Glob(filepath.Join(r.images.Dir(), ".tmp-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left %q, %v", left, err)
	}
	close(r.fake.hold)
	next := New(r.Provisioner.cfg)
	if err := next.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := next.Resolve(t.Context(), ref); err != nil || r.fake.count() != 2 {
		t.Errorf("%v after %d runs", err, r.fake.count())
	}
}

// TestWaits has calls wait while it is installed, so many and no more.
func TestWaits(t *testing.T) {
	r := open(t)
	ref := r.want(t, "e1", "six")
	r.fake.hold = make(chan struct{})
	ended := make(chan error, 1)
	go func() { ended <- r.Step(t.Context()) }()
	<-r.fake.held
	const most = maxWaits / 2 // of one tenant
	got := make(chan error, most)
	for range most {
		go func() { _, err := r.Resolve(t.Context(), ref); got <- err }()
	}
	atolltest.Until(t, time.Minute, "all wait", func() bool {
		return r.waits.Held("ten_00000000000000aa") == most
	})
	if _, err := r.Resolve(t.Context(), ref); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("one too many: %v", err)
	}
	if leave, err := r.waits.Take(neighbor, 1); err != nil {
		t.Errorf("a neighbor: %v", err)
	} else {
		leave()
	}
	close(r.fake.hold)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	for range most {
		if err := <-got; err != nil {
			t.Error(err)
		}
	}
}

// TestRoom has an environment want other packages where there are as many images as may be:
// that of the old ones makes room.
func TestRoom(t *testing.T) {
	r := open(t)
	r.want(t, "e1", "p1")
	r.want(t, "e2", "p2")
	r.step(t)
	if err := r.db.Tenants().DeleteEnvironment(t.Context(), "ten_00000000000000aa", "e2"); err != nil {
		t.Fatal(err)
	}
	ref := r.want(t, "e3", "p3")
	r.step(t)
	if b := r.state(t, ref); b.State != requirement.Ready {
		t.Errorf("%+v", b)
	}
}

// TestTenantsTakeTurns: the one set of a neighbor does not wait for all sets of a tenant that has
// many, and comes next even if the neighbor asks while others are being made.
func TestTenantsTakeTurns(t *testing.T) {
	r := open(t)
	r.cfg.Most = 10
	for i := range 4 {
		r.want(t, fmt.Sprint("e", i), fmt.Sprint("a", i))
	}
	r.fake.hold = make(chan struct{})
	ended := make(chan error, 1)
	go func() { ended <- r.Step(t.Context()) }()
	<-r.fake.held
	ref := r.wantOf(t, neighbor, "own", "z")
	close(r.fake.hold)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if argv := r.fake.runs[1].Programs[0]; r.fake.count() != 5 || argv[len(argv)-1] != "z" {
		t.Errorf("%d runs, the second installed %v", r.fake.count(), argv)
	}
	if b := r.state(t, ref); b.State != requirement.Ready {
		t.Errorf("%+v", b)
	}
}

// TestQuota: a tenant has so many images, is told so before and, for what came at the same time,
// after, and takes none from others.
func TestQuota(t *testing.T) {
	r := open(t)
	r.cfg.Most, r.cfg.PerTenant = 10, 2
	const hostile = "ten_00000000000000aa"
	first := r.want(t, "e1", "a")
	r.want(t, "e2", "b")
	r.step(t)
	err := r.Admit(t.Context(), hostile, "packages:other", "base")
	if f, ok := errors.AsType[*fault.Error](err); !ok || f.Kind != fault.Exhausted || f.Dimension != requirement.DimensionImages || !strings.Contains(f.Msg, "2 different sets") {
		t.Errorf("a third set: %v", err)
	}
	for _, err := range []error{
		r.Admit(t.Context(), hostile, first, "base"),
		r.Admit(t.Context(), hostile, "packages:other", first),
		r.Admit(t.Context(), neighbor, "packages:other", "base"),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	over, shared := r.want(t, "e3", "c"), r.want(t, "e4", "d")
	r.wantOf(t, neighbor, "own", "d")
	r.step(t)
	r.step(t)
	if b := r.state(t, over); b.State != requirement.Failed || !strings.Contains(strings.Join(b.Log, ""), "package_images_per_tenant") {
		t.Errorf("%+v", b)
	}
	if b := r.state(t, shared); b.State != requirement.Ready || r.fake.count() != 3 {
		t.Errorf("%+v after %d runs", b, r.fake.count())
	}
}

func TestCheck(t *testing.T) {
	r := open(t)
	for says, c := range map[string]struct {
		image string
		set   requirement.Set
	}{
		"npm: this server has no registry to install them from; its operator sets npm_registry": {"base", requirement.Set{NPM: []string{"x"}}},
		"pip: there is no image": {"none", requirement.Set{Pip: []string{"six"}}},
		"":                       {"base", requirement.Set{Pip: []string{"six"}}},
	} {
		err := r.Check(c.image, &c.set)
		if says == "" && err != nil || says != "" && (err == nil || !strings.HasPrefix(err.Error(), says)) {
			t.Errorf("%+v: %v, want %q", c, err, says)
		}
	}
	// More images than are kept.
	for i, id := range []string{"e1", "e2", "e3"} {
		ref := r.want(t, id, fmt.Sprintf("p%d", i))
		r.step(t)
		if b := r.state(t, ref); (b.State == requirement.Ready) != (i < 2) {
			t.Errorf("%s is %+v", id, b)
		}
	}
}
