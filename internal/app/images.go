package app

import (
	"context"

	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/node/image"
)

// imagesModule finds images by what callers call them.
type imagesModule struct {
	*process
	disk   *diskModule
	engine *engineModule

	*image.Aliases
}

// Start implements module.Part.
func (m *imagesModule) Start(context.Context, *module.Undo) error {
	cfg := m.cfg.Settings
	m.Aliases = &image.Aliases{Store: m.cfg.Images, Default: cfg.Image, Names: cfg.ImageAliases, Packages: m.engine.resolver.Resolve}
	if cfg.ImagePull == "missing" {
		reach, err := outbound.Parse(cfg.ImagePullRedirect)
		if err != nil {
			return fault.New(fault.Invalid, "image_pull_redirect_allow: %v", err)
		}
		m.Pull = &image.Pull{Import: m.cfg.Images.Import, Allow: cfg.ImagePullAllow, Reach: reach, Size: int64(cfg.ImagePullSize), Time: cfg.ImagePullTimeout, Probe: m.engine.Probe(), Room: m.disk.Admit}
	}
	return nil
}
