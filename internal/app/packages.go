package app

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/node/provision"
)

// openPackages makes what installs the packages of environments, once there is an engine.
func (s *Server) openPackages() {
	cfg := s.cfg.Settings
	if cfg.PackageImages == 0 {
		return
	}
	s.packages = provision.New(provision.Config{
		Store: s.db.PackageBuilds(), Images: s.cfg.Images, Installer: s.engine, Executor: s.id, Mirrors: s.mirrors, Trouble: s.mirrorTrouble.Since, Allowed: s.allowed,
		Time: cfg.PackageTime, Size: int64(cfg.PackageSize), Most: cfg.PackageImages, PerTenant: cfg.PackageImagesPerTenant, Room: s.disk.AdmitBytes, Log: s.log,
	})
}

// resolver finds images with packages. The engine is there before what installs them.
type resolver struct{ *Server }

// Resolve implements engine.Resolver.
func (r resolver) Resolve(ctx context.Context, name string) (string, error) {
	switch {
	case !requirement.IsRef(name):
		return name, nil
	case r.packages == nil:
		return "", fault.New(fault.Conflict, "this environment has packages, and this server installs none (package_images); take them away from it, or have the operator allow them")
	}
	return r.packages.Resolve(ctx, name)
}

// installer is what installs the packages of environments; nil for nothing.
func (s *Server) installer() tenant.Packages {
	if s.packages == nil {
		return nil
	}
	return s.packages
}
