package app

import (
	"context"
	"fmt"

	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/node/provision"
)

// openPackages creates the provisioner, which installs the packages of environments and creates
// variants of the default image. It needs the engine.
func (s *Server) openPackages() {
	cfg := s.cfg.Settings
	if cfg.PackageImages == 0 && cfg.ImageVariants == variantsOff {
		return
	}
	s.packages = provision.New(provision.Config{
		Store: s.db.PackageBuilds(), Images: s.cfg.Images, Installer: s.engine, Executor: s.id, Mirrors: s.mirrors, Trouble: s.mirrorTrouble.Since, Allowed: s.allowed,
		Time: cfg.PackageTime, Size: int64(cfg.PackageSize), Most: cfg.PackageImages, PerTenant: cfg.PackageImagesPerTenant, Room: s.disk.AdmitBytes, Log: s.log,
		Variants: s.variants(), Registry: s.cfg.Registry,
	})
}

// Values of the setting image_variants; the third is "import".
const (
	variantsBuild = "build"
	variantsOff   = "off"
)

// variants says how variants of the default image are made; nil for never.
func (s *Server) variants() *provision.Variants {
	cfg := s.cfg.Settings
	if cfg.ImageVariants == variantsOff {
		return nil
	}
	v := &provision.Variants{Mirror: cfg.ImageMirror, Time: cfg.ImageVariantTime, Source: func(name string) string {
		if source := cfg.ImageVariantSources[name]; source != "" || s.cfg.Prebuilt == nil {
			return source
		}
		return s.cfg.Prebuilt(name)
	}}
	if cfg.ImageVariants == variantsBuild {
		v.Build = s.cfg.Images
	}
	return v
}

// hasVariant reports why an environment cannot have a variant of the default image; nil if it
// exists or can be created.
func (s *Server) hasVariant(name string) error {
	_, err := s.cfg.Images.Get(name)
	if err == nil || s.cfg.Settings.ImageVariants != variantsOff {
		return nil
	}
	return fault.Wrap(fault.Invalid, err, fmt.Sprintf("image %q is not on this server, and its setting image_variants does not let it make one: ask the operator to run '%s' on the server", name, requirement.VariantCommand(name)))
}

// resolver finds images with packages, and variants of the default image. It exists because
// the server opens the engine before the provisioner.
type resolver struct{ *Server }

// Resolve implements engine.Resolver.
func (r resolver) Resolve(ctx context.Context, name string) (string, error) {
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
func (r resolver) Extend(ctx context.Context, name string, extras, need []string) (string, error) {
	if r.packages == nil {
		return r.Resolve(ctx, name)
	}
	return r.packages.Extend(ctx, name, extras, need)
}

// extras explains to agents what their sandboxes lack; nil if this server cannot tell.
func (s *Server) extras() sandboxtool.Extras {
	if s.packages == nil {
		return nil
	}
	return lacking{s}
}

// preparer creates images that skills need; nil if this server creates none.
func (s *Server) preparer() interface {
	Prepare(ctx context.Context, image string, extras []string) (string, error)
} {
	if s.packages == nil {
		return nil
	}
	return s.packages
}

type lacking struct{ *Server }

// Lacking implements sandboxtool.Extras.
func (l lacking) Lacking(ctx context.Context, t, environment string, extras []string) (string, error) {
	e, err := l.db.Tenants().Environment(ctx, t, environment)
	if fault.KindOf(err) == fault.NotFound { // it was deleted while the call ran
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return l.packages.Lacking(e.RunImage(), extras), nil
}

// installer installs the packages of environments; nil if this server installs none.
func (s *Server) installer() tenant.Packages {
	if s.packages == nil {
		return nil
	}
	return s.packages
}
