// Package provision installs the packages of environments: once for each image and set of
// packages, in a sandbox, into a separate image. It also makes variants of the default image,
// such as the one with a browser, when something needs them.
//
// Run compares the images that environments need with the images that exist. It builds missing images
// one after the other, and deletes unused ones. A build that a crash interrupted therefore starts
// again without stored progress. The host reads the files of a build as data and never runs them.
package provision

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/core/share"
	"github.com/atoll-run/atoll/internal/node/engine"
	"github.com/atoll-run/atoll/internal/node/image"
	"github.com/atoll-run/atoll/internal/node/packages"
)

// Installer runs the programs of an installation in a sandbox.
type Installer interface {
	Install(ctx context.Context, in engine.Installation, upper *os.File) error
	Installs() error
	Probe() image.Probe
}

// Config of a Provisioner. All of it is required but for Room, Variants and Registry.
type Config struct {
	Store     requirement.Store
	Images    *image.Store
	Installer Installer
	Executor  string                       // name of this installation
	Mirrors   map[requirement.Kind]bool    // that the operator has configured
	Trouble   func(since time.Time) string // why a mirror did not answer, "" for no reason; nil where that is not known
	Allowed   packages.List                // packages that may be installed from them
	Time      time.Duration                // that a build may take
	Size      int64                        // bytes that packages may add to an image
	Most      int                          // images with packages at the same time; 0: packages are not installed
	PerTenant int                          // of them, those that one tenant's environments have; 0 for any number
	Room      func(bytes int64) error      // refuses a build while the disk is full
	Variants  *Variants                    // of the default image; nil: none are made
	Registry  prometheus.Registerer
	Log       *slog.Logger
	Clock     func() time.Time // nil is time.Now
}

const (
	poll      = 5 * time.Second  // how often is looked for what other servers were asked for
	waitTime  = 20 * time.Second // how long a call waits for packages
	maxWaits  = 16               // calls that wait, those of a tenant at most half; more are refused at once
	retryTime = time.Minute      // after which what this server could not do is tried again
)

// Provisioner installs packages. Run does the work.
type Provisioner struct {
	cfg   Config
	wake  chan struct{}
	order share.Order // of the tenants whose packages are installed
	waits *share.Pool // of calls that wait for packages

	mu      sync.Mutex
	wanted  map[string]requirement.Wanted // guarded by mu; by reference, as last read
	builds  map[string]requirement.Build  // guarded by mu; of this executor, by reference
	changed chan struct{}                 // guarded by mu; closed when builds has changed
	later   map[string]time.Time          // guarded by mu; not to be built before

	variants map[string][]string // guarded by mu; that environments have, with the ids of their tenants
	asked    map[string]bool     // guarded by mu; variants that something else needs
	failures map[string]int      // guarded by mu; attempts at a variant since it was made last
	loaded   bool                // guarded by mu

	ended *prometheus.CounterVec
}

// New returns a Provisioner.
func New(cfg Config) *Provisioner {
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	p := &Provisioner{
		cfg: cfg, wake: make(chan struct{}, 1), waits: share.NewPool(DimensionWaits, "calls that wait for packages", maxWaits), wanted: map[string]requirement.Wanted{}, builds: map[string]requirement.Build{},
		changed: make(chan struct{}), later: map[string]time.Time{}, variants: map[string][]string{}, asked: map[string]bool{}, failures: map[string]int{}, ended: newBuilds(),
	}
	if cfg.Registry != nil {
		cfg.Registry.MustRegister(p.ended)
	}
	return p
}

// settings are the settings that name the mirrors.
var settings = map[requirement.Kind]string{requirement.Apt: "apt_archive", requirement.Pip: "pip_index", requirement.NPM: "npm_registry"}

// Check reports why packages cannot be installed over an image. The error begins with the kind of a
// package.
func (p *Provisioner) Check(name string, s *requirement.Set) error {
	if p.cfg.Most == 0 {
		return fmt.Errorf("%s: this server does not install packages (package_images); omit them", firstKind(s))
	}
	for _, kind := range requirement.Kinds {
		if len(s.Of(kind)) > 0 && !p.cfg.Mirrors[kind] {
			return fmt.Errorf("%s: this server has no registry to install them from; its operator sets %s", kind, settings[kind])
		}
	}
	if err := p.cfg.Allowed.Check(s); err != nil {
		return err
	}
	first := firstKind(s)
	if err := p.cfg.Installer.Installs(); err != nil {
		return fmt.Errorf("%s: %w", first, err)
	}
	img, err := p.cfg.Images.Get(name)
	if fault.KindOf(err) == fault.NotFound && p.cfg.Variants != nil && requirement.IsVariant(name) {
		img, err = p.cfg.Images.Get(image.Default) // has the same installers
	}
	if err != nil {
		return fmt.Errorf("%s: %w", first, err)
	}
	if img.Rootfs.Image == "" {
		return fmt.Errorf("%s: the image %q is this machine's own files, above which nothing can be installed", first, name)
	}
	_, err = programs(img, s)
	return err
}

func firstKind(s *requirement.Set) requirement.Kind {
	for _, kind := range requirement.Kinds {
		if len(s.Of(kind)) > 0 {
			return kind
		}
	}
	return ""
}

// Install implements tenant.Packages. A variant keeps its pause after a failure.
func (p *Provisioner) Install(ctx context.Context, ref string) error {
	if requirement.IsVariant(ref) {
		p.stir()
		return nil
	}
	if err := p.cfg.Store.Retry(ctx, ref); err != nil {
		return err
	}
	p.mu.Lock()
	if p.builds[ref].State == requirement.Failed {
		delete(p.builds, ref)
	}
	delete(p.later, ref)
	p.mu.Unlock()
	p.stir()
	return nil
}

// stir has Run look for work now.
func (p *Provisioner) stir() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Build implements tenant.Packages: that of this executor, or else of another one. One that
// no server has begun yet is building.
func (p *Provisioner) Build(ctx context.Context, ref string) (requirement.Build, error) {
	all, err := p.cfg.Store.Builds(ctx, ref)
	if err != nil {
		return requirement.Build{}, err
	}
	return p.below(ctx, requirement.Closest(ref, p.cfg.Executor, all))
}

// below returns the build of the variant that packages wait for, if they do.
func (p *Provisioner) below(ctx context.Context, b requirement.Build) (requirement.Build, error) {
	p.mu.Lock()
	base := p.wanted[b.Ref].Image
	p.mu.Unlock()
	if b.State != requirement.Building || !requirement.IsVariant(base) {
		return b, nil
	}
	if found, err := p.stored(base); found || err != nil {
		return b, err
	}
	return p.Build(ctx, base)
}

// Resolve implements engine.Resolver. It waits for packages that are being installed, and for a
// variant that is being made, for a while.
func (p *Provisioner) Resolve(ctx context.Context, ref string) (string, error) {
	switch {
	case requirement.IsVariant(ref):
		return p.variant(ctx, ref)
	case !requirement.IsRef(ref):
		return ref, nil
	case p.cfg.Most == 0:
		return "", requirement.ErrNotInstalled
	}
	p.mu.Lock()
	owners := strings.Join(p.wanted[ref].Tenants, " ")
	p.mu.Unlock()
	return p.await(ctx, owners, installing, func() (string, error) { return p.ready(ref) })
}

// await returns what ready does once that is not "", and the fault unready if it takes long or if
// too many calls wait. owners are the tenants that the wait counts for.
func (p *Provisioner) await(ctx context.Context, owners string, unready *fault.Error, ready func() (string, error)) (string, error) {
	if name, err := ready(); name != "" || err != nil {
		return name, err
	}
	leave, err := p.waits.Take(owners, 1)
	if err != nil {
		return "", unready
	}
	defer leave()
	p.stir()
	limit := time.NewTimer(waitTime)
	defer limit.Stop()
	for {
		p.mu.Lock()
		changed := p.changed
		p.mu.Unlock()
		if name, err := ready(); name != "" || err != nil {
			return name, err
		}
		select {
		case <-changed:
		case <-limit.C:
			return "", unready
		case <-ctx.Done():
			return "", fault.Wrap(fault.Unavailable, context.Cause(ctx), unready.Msg)
		}
	}
}

var installing = fault.New(fault.Unavailable, "the packages of this environment are being installed; nothing was run. Retry in a few seconds. GET of the environment shows how far it is (package_build)")

// DimensionWaits names the limit of calls that wait for packages, for refusals.
const DimensionWaits = "package_waits"

// Admit implements tenant.Packages.
func (p *Provisioner) Admit(ctx context.Context, tenant, ref, replaced string) error {
	r := requirement.Records{Store: p.cfg.Store, PerTenant: p.cfg.PerTenant}
	return r.Admit(ctx, tenant, ref, replaced)
}

// ready is the name of the image of a reference; "" while it is not there.
func (p *Provisioner) ready(ref string) (string, error) {
	p.mu.Lock()
	w, wanted := p.wanted[ref]
	b := p.builds[ref]
	p.mu.Unlock()
	if !wanted {
		return "", nil // of an environment that was made just now, or elsewhere
	}
	base, err := p.cfg.Images.Get(w.Image)
	if err != nil && p.cfg.Variants != nil && requirement.IsVariant(w.Image) {
		_, err := p.madeVariant(w.Image)
		return "", err
	}
	if err != nil {
		return "", image.Missing(w.Image)
	}
	name := nameOf(ref, base)
	_, err = p.cfg.Images.Get(name)
	switch {
	case err == nil:
		return name, nil
	case fault.KindOf(err) != fault.NotFound:
		return "", err
	case b.State == requirement.Failed && b.Image == name:
		return "", fault.New(fault.Conflict, "the packages of this environment could not be installed%s. GET of the environment shows the installer's last lines (package_build); set packages again to retry", reason(b))
	}
	return "", nil
}

// nameOf is the name of the image that has the packages of a reference: by what it is made
// of, so that it is made again above another image.
func nameOf(ref string, base *image.Image) string {
	sum := sha256.Sum256([]byte(ref + "\n" + base.Digest))
	return image.ExtendedPrefix + hex.EncodeToString(sum[:16])
}

// describe says what an image with packages was made from.
func describe(w *requirement.Wanted) string {
	var all []string
	for _, kind := range requirement.Kinds {
		for _, text := range w.Set.Of(kind) {
			all = append(all, string(kind)+":"+text)
		}
	}
	text := w.Image + " with " + strings.Join(all, " ")
	if len(text) > 1000 {
		text = text[:1000] + "…"
	}
	return text
}

// note records how far a build is, and tells who waits.
func (p *Provisioner) note(ctx context.Context, b requirement.Build) error {
	b.Executor, b.UpdatedAt = p.cfg.Executor, p.cfg.Clock().UTC().Truncate(time.Microsecond)
	err := p.cfg.Store.Put(ctx, b)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.builds[b.Ref] = b
	close(p.changed)
	p.changed = make(chan struct{})
	return err
}
