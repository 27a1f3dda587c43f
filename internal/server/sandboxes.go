package server

import (
	"context"

	"github.com/atoll-run/atoll/internal/image"
	"github.com/atoll-run/atoll/internal/named"
	"github.com/atoll-run/atoll/internal/redact"
	"github.com/atoll-run/atoll/internal/tenant"
	"github.com/atoll-run/atoll/internal/usage"
)

// openSandboxes opens the named sandboxes of this machine.
func (s *Server) openSandboxes(context.Context) error {
	cfg := s.cfg.Settings
	rules, err := redact.Except(nil)
	if err != nil {
		return err
	}
	s.sandboxes = named.New(named.Config{
		Store: s.db.Sandboxes(), Engine: s.engine.Named(), Callers: s.authority, Executor: s.id, Disk: s.disk.Admit, Room: s.disk.Room,
		Images: s.images(),
		Prices: s.prices(), Rules: rules, Believed: tenant.Believed, Log: s.log,
		SleepAfter: cfg.SandboxSleepAfter, Frozen: cfg.SandboxFrozen, Memories: int64(cfg.SandboxMemories), DiskLimit: int64(cfg.SandboxDisk), Most: cfg.MaxSandboxes, Keep: cfg.KeepSandboxes, Detach: cfg.OnExit == "detach",
	})
	s.later(s.sandboxes.Close)
	return s.cfg.Registry.Register(s.sandboxes)
}

// images finds images by what callers call them.
func (s *Server) images() *image.Aliases {
	return &image.Aliases{Store: s.cfg.Images, Default: s.cfg.Settings.Image, Names: s.cfg.Settings.ImageAliases}
}

// prices are what use costs.
func (s *Server) prices() usage.Prices {
	cfg := s.cfg.Settings
	return usage.Prices{CPUMinute: cfg.PriceCPU, GiBMinute: cfg.PriceGiB, GiBOut: cfg.PriceOut, Call: cfg.PriceCall}
}
