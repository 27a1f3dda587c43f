package app

import (
	"context"
	"fmt"

	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/node/provision"
)

// packagesModule opens the provisioner, which installs the packages of environments and creates
// variants of the default image.
type packagesModule struct {
	*process
	identity *identityModule
	disk     *diskModule
	records  *recordsModule
	control  *controlModule
	engine   *engineModule

	provisioner *provision.Provisioner // nil if this server installs no packages and makes no variants
}

// Start implements module.Part.
func (m *packagesModule) Start(context.Context, *module.Undo) error {
	cfg := m.cfg.Settings
	if cfg.PackageImages == 0 && cfg.ImageVariants == variantsOff {
		return nil
	}
	m.provisioner = provision.New(provision.Config{
		Store: m.control.builds, Images: m.cfg.Images, Installer: m.engine.Engine, Executor: m.identity.id, Mirrors: m.engine.mirrors, Trouble: m.engine.mirrorTrouble.Since, Allowed: m.engine.allowed,
		Time: cfg.PackageTime, Size: int64(cfg.PackageSize), Most: cfg.PackageImages, PerTenant: cfg.PackageImagesPerTenant, Room: m.disk.AdmitBytes, Log: m.log,
		Variants: m.variants(), Registry: m.cfg.Registry,
	})
	m.engine.resolver.packages = m.provisioner
	return nil
}

// Values of the setting image_variants; the third is "import".
const (
	variantsBuild = "build"
	variantsOff   = "off"
)

// variants says how variants of the default image are made; nil for never.
func (m *packagesModule) variants() *provision.Variants {
	cfg := m.cfg.Settings
	if cfg.ImageVariants == variantsOff {
		return nil
	}
	v := &provision.Variants{Mirror: cfg.ImageMirror, Time: cfg.ImageVariantTime, Source: func(name string) string {
		if source := cfg.ImageVariantSources[name]; source != "" || m.cfg.Prebuilt == nil {
			return source
		}
		return m.cfg.Prebuilt(name)
	}}
	if cfg.ImageVariants == variantsBuild {
		v.Build = m.cfg.Images
	}
	return v
}

// hasVariant reports why an environment cannot have a variant of the default image; nil if it
// exists or can be created.
func (p *process) hasVariant(name string) error {
	_, err := p.cfg.Images.Get(name)
	if err == nil || p.cfg.Settings.ImageVariants != variantsOff {
		return nil
	}
	return fault.Wrap(fault.Invalid, err, fmt.Sprintf("image %q is not on this server, and its setting image_variants does not let it make one: ask the operator to run '%s' on the server", name, requirement.VariantCommand(name)))
}

// resolver finds images with packages, and variants of the default image. It exists because
// the server opens the engine before the provisioner.
type resolver struct {
	*process

	packages *provision.Provisioner // nil if this server installs no packages and makes no variants
}

// Resolve implements engine.Resolver.
func (r *resolver) Resolve(ctx context.Context, name string) (string, error) {
	switch {
	case r.packages == nil && requirement.IsVariant(name):
		return name, r.hasVariant(name)
	case !requirement.IsRef(name) && !requirement.IsVariant(name):
		return name, nil
	case r.packages == nil:
		return "", requirement.ErrNotInstalled
	}
	return r.packages.Resolve(ctx, name)
}

// Extend implements engine.Resolver.
func (r *resolver) Extend(ctx context.Context, name string, extras, need []string) (string, error) {
	if r.packages == nil {
		return r.Resolve(ctx, name)
	}
	return r.packages.Extend(ctx, name, extras, need)
}

// extras explains to agents what their sandboxes lack; nil if this server cannot tell.
func (m *packagesModule) extras() sandboxtool.Extras {
	if m.provisioner == nil {
		return nil
	}
	return lacking{m}
}

// preparer creates images that skills need; nil if this server creates none.
func (m *packagesModule) preparer() interface {
	Prepare(ctx context.Context, image string, extras []string) (string, error)
} {
	if m.provisioner == nil {
		return nil
	}
	return m.provisioner
}

type lacking struct{ *packagesModule }

// Lacking implements sandboxtool.Extras.
func (l lacking) Lacking(ctx context.Context, t, environment string, extras []string) (string, error) {
	e, err := l.records.db.Tenants().Environment(ctx, t, environment)
	if fault.KindOf(err) == fault.NotFound { // it was deleted while the call ran
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return l.provisioner.Lacking(e.RunImage(), extras), nil
}

// installer installs the packages of environments; nil if this server installs none.
func (m *packagesModule) installer() tenant.Packages {
	if m.provisioner == nil {
		return nil
	}
	return m.provisioner
}
