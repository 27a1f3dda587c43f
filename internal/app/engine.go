package app

import (
	"context"

	"github.com/atoll-run/atoll/internal/app/config"
	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/node/engine"
	"github.com/atoll-run/atoll/internal/node/packages"
)

// engineModule opens the runtime, the pool and the network of sandboxes.
type engineModule struct {
	*process
	control *controlModule
	storage *storageModule
	homes   *homesModule

	*engine.Engine
	resolver      *resolver
	ca            value                  // certificates that sandboxes trust from the start
	mirrors       map[packages.Kind]bool // kinds of package for which this server runs a mirror, limited by allowed
	mirrorTrouble *packages.Trouble
	allowed       packages.List
}

// Start implements module.Part.
func (m *engineModule) Start(ctx context.Context, undo *module.Undo) (err error) {
	cfg := m.cfg.Settings
	var folders engine.Folders
	if m.storage.volumes.Dir != "" {
		folders = m.storage.volumes
	}
	if m.ca, err = m.currentCA(ctx, "", true); err != nil {
		return err
	}
	network, err := m.network(undo)
	if err != nil {
		return err
	}
	platform := m.cfg.Platform
	platform.CA, platform.Files = m.ca.content, network.Files
	pool := cfg.Pool(config.ThisMachine())
	m.resolver = &resolver{process: m.process}
	m.Engine, err = engine.Open(ctx, engine.Config{
		Platform: platform, Images: m.cfg.Images, Resolver: m.resolver, Volumes: folders,
		Buckets: engine.Buckets{Buckets: m.storage.buckets, Owners: m.storage.volumes.Owners, Cache: int64(cfg.MountCache)}, Image: cfg.Image, Limits: cfg.Limits(), Env: cfg.EnvVars,
		PoolSize: pool.Others, PoolDefault: pool.Default, PoolMemory: pool.Memory, Standby: cfg.StandbyKernels, Journals: true, Network: network, Registry: m.cfg.Registry, Unfit: m.homes.unfit,
	})
	if err != nil {
		return err
	}
	undo.Add(func(context.Context) error { return m.Close() })
	return nil
}

// currentCA returns the certificates that new sandboxes trust: the stored ones, or else the configured
// ones. See controlModule.storedCA.
func (m *engineModule) currentCA(ctx context.Context, known string, wait bool) (value, error) {
	configured := value{m.cfg.Settings.SandboxCA, m.cfg.Platform.CA}
	kept, err := m.control.storedCA(ctx, known, wait)
	if kept == nil || err != nil {
		return configured, err
	}
	return *kept, nil
}
