// Package provision installs the packages of environments: once for each image and set of
// packages, in a sandbox, into an image of its own.
//
// A Provisioner makes what environments want and has not been made: Run looks at what they
// want, builds one after the other, and collects images that nothing wants any more. So a
// build that a crash has cut short is begun anew, and nothing else has to be remembered. What
// a build leaves above the image is read as data, never run on the host.
package provision

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

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

// Config of a Provisioner. All of it is required but for Room.
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
	Most      int                          // images with packages at the same time
	PerTenant int                          // of them, those that one tenant's environments have; 0 for any number
	Room      func(bytes int64) error      // refuses a build while the disk is full
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
}

// New returns a Provisioner.
func New(cfg Config) *Provisioner {
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	return &Provisioner{
		cfg: cfg, wake: make(chan struct{}, 1), waits: share.NewPool(DimensionWaits, "calls that wait for packages", maxWaits), wanted: map[string]requirement.Wanted{}, builds: map[string]requirement.Build{},
		changed: make(chan struct{}), later: map[string]time.Time{},
	}
}

// settings are the settings that name the mirrors.
var settings = map[requirement.Kind]string{requirement.Apt: "apt_archive", requirement.Pip: "pip_index", requirement.NPM: "npm_registry"}

// Check implements tenant.Packages.
func (p *Provisioner) Check(name string, s *requirement.Set) error {
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

// Install implements tenant.Packages.
func (p *Provisioner) Install(ctx context.Context, ref string) error {
	if err := p.cfg.Store.Retry(ctx, ref); err != nil {
		return err
	}
	p.mu.Lock()
	if p.builds[ref].State == requirement.Failed {
		delete(p.builds, ref)
	}
	delete(p.later, ref)
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
	return nil
}

// Build implements tenant.Packages: that of this executor, or else of another one. One that
// no server has begun yet is building.
func (p *Provisioner) Build(ctx context.Context, ref string) (requirement.Build, error) {
	all, err := p.cfg.Store.Builds(ctx, ref)
	b := requirement.Build{Ref: ref, State: requirement.Building}
	for i := range all {
		if all[i].Executor == p.cfg.Executor {
			return all[i], err
		}
		if b.State != requirement.Ready {
			b = all[i]
		}
	}
	return b, err
}

// Resolve implements engine.Resolver. It waits for packages that are being installed, for a
// while.
func (p *Provisioner) Resolve(ctx context.Context, ref string) (string, error) {
	if !requirement.IsRef(ref) {
		return ref, nil
	}
	if name, err := p.ready(ref); name != "" || err != nil {
		return name, err
	}
	p.mu.Lock()
	owners := strings.Join(p.wanted[ref].Tenants, " ")
	p.mu.Unlock()
	leave, err := p.waits.Take(owners, 1)
	if err != nil {
		return "", installing
	}
	defer leave()
	select {
	case p.wake <- struct{}{}:
	default:
	}
	limit := time.NewTimer(waitTime)
	defer limit.Stop()
	for {
		p.mu.Lock()
		changed := p.changed
		p.mu.Unlock()
		if name, err := p.ready(ref); name != "" || err != nil {
			return name, err
		}
		select {
		case <-changed:
		case <-limit.C:
			return "", installing
		case <-ctx.Done():
			return "", fault.Wrap(fault.Unavailable, context.Cause(ctx), installing.Msg)
		}
	}
}

var installing = fault.New(fault.Unavailable, "the packages of this environment are being installed; nothing was run, retry after a moment. GET of the environment shows how far it is (package_build)")

// Dimensions of limits, which refusals name.
const (
	DimensionImages = "package_images"
	DimensionWaits  = "package_waits"
)

// Admit implements tenant.Packages.
func (p *Provisioner) Admit(ctx context.Context, tenant, ref, replaced string) error {
	if p.cfg.PerTenant == 0 || ref == replaced {
		return nil
	}
	all, err := p.cfg.Store.Wanted(ctx)
	if err != nil {
		return err
	}
	n := 0
	for i := range all {
		switch of := all[i].Ref(); {
		case !slices.Contains(all[i].Tenants, tenant):
		case of == ref:
			return nil
		case of != replaced:
			n++
		}
	}
	if n >= p.cfg.PerTenant {
		return fault.Limit(DimensionImages, time.Time{}, "packages: the environments of this tenant have %d different sets of packages, which is its limit (package_images_per_tenant). Use a set that another environment has, or take the packages away from one", n)
	}
	return nil
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
	if err != nil {
		return "", fault.New(fault.Invalid, "this server has no image %q; import it with 'atoll image import', or name another in the environment", w.Image)
	}
	name := nameOf(ref, base)
	_, err = p.cfg.Images.Get(name)
	switch {
	case err == nil:
		return name, nil
	case fault.KindOf(err) != fault.NotFound:
		return "", err
	case b.State == requirement.Failed && b.Image == name:
		why := ""
		if n := len(b.Log); n > 0 {
			why = ": " + b.Log[n-1]
		}
		return "", fault.New(fault.Conflict, "the packages of this environment could not be installed%s. GET of the environment shows the installer's last lines (package_build); set packages again to have another try", why)
	}
	return "", nil
}

// nameOf is the name of the image that has the packages of a reference: by what it is made
// of, so that it is made anew above another image.
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
