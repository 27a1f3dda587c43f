package app

import (
	"context"

	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/node/provision"
)

// packagesModule opens the provisioner, which installs the packages of environments and creates
// variants of the default image.
type packagesModule struct {
	*process
	identity *identityModule
	disk     *diskModule
	control  *controlModule
	engine   *engineModule

	provisioner *provision.Provisioner // nil if this server installs no packages and makes no variants
}

// Start implements module.Part.
func (m *packagesModule) Start(context.Context, *module.Undo) error {
	cfg := m.cfg.Settings
	if !m.provisions() {
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
		return name, provision.CheckVariant(r.cfg.Images, r.cfg.Settings.ImageVariants != variantsOff, name)
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
