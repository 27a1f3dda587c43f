package app

import (
	"context"

	"github.com/atoll-run/atoll/internal/agent/mcptool"
	"github.com/atoll-run/atoll/internal/control/directory"
	control "github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/redact"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/usage"
	"github.com/atoll-run/atoll/internal/core/web"
	"github.com/atoll-run/atoll/internal/node/cleanup"
	"github.com/atoll-run/atoll/internal/node/contexts"
	"github.com/atoll-run/atoll/internal/node/engine"
	"github.com/atoll-run/atoll/internal/node/home"
	"github.com/atoll-run/atoll/internal/node/idmap"
	"github.com/atoll-run/atoll/internal/node/image"
	"github.com/atoll-run/atoll/internal/node/sandboxes"
)

// openSandboxes opens the named sandboxes of this machine.
func (s *Server) openSandboxes(context.Context) error {
	cfg := s.cfg.Settings
	rules, err := redact.Except(nil)
	if err != nil {
		return err
	}
	owners, err := idmap.Find()
	if err != nil {
		s.log.Debug("nothing is brought back from the blob store here", "reason", err) // no sandbox can be made, either
	}
	kept, err := home.NewStore(home.Config{Blobs: s.blobs, Folder: "snapshots", Key: s.box.Snapshots(), Owners: owners})
	if err != nil {
		return err
	}
	if s.aliases, err = s.images(); err != nil {
		return err
	}
	retries, err := cleanup.New(s.log, s.cfg.Registry)
	if err != nil {
		return err
	}
	s.later(func(context.Context) error { retries.Close(); return nil })
	s.sandboxes = sandboxes.New(sandboxes.Config{
		Cleanup: retries,
		Store:   s.db.Sandboxes(), Ledger: control.Ledger{Accounts: s.db.Sandboxes(), Prices: s.prices()}, Snapshots: s.db.Snapshots(), Engine: s.engine.Sandboxes(), SnapshotFiles: engine.SnapshotStore{Engine: s.engine, Store: kept}, Callers: s.authority, Executor: s.id, AdmitDisk: s.disk.Admit, AdmitBytes: s.disk.AdmitBytes,
		Images: s.aliases, Contexts: contexts.New(),
		Rules: rules, AuthTTL: tenant.AuthTTL, Log: s.log,
		SleepAfter: cfg.SandboxSleepAfter, KeepFrozen: cfg.SandboxFrozen, CheckpointDisk: int64(cfg.CheckpointDisk), KeepOnDisk: cfg.SandboxStored, DiskLimit: int64(cfg.SandboxDisk), MaxSandboxes: cfg.MaxOnMachine, KeepUnused: cfg.KeepSandboxes, KeepSnapshots: cfg.KeepSnapshots, Detach: cfg.OnExit == "detach",
	})
	s.later(s.sandboxes.Close)
	s.directory = directory.New(directory.Config{
		Local: s.sandboxes, Executor: s.id, Peers: s.peers(), Store: s.db.Sandboxes(), Snapshots: s.db.Snapshots(), Prices: s.prices(),
		Refusals: s.refusals, Recordable: s.trail.Check,
		Text: func(p *tenant.Principal, command string) (string, error) { return s.gateway.Text(p, command) },
	})
	return s.cfg.Registry.Register(s.sandboxes)
}

// peers finds other machines: there are some only where several servers share the
// records.
func (s *Server) peers() directory.Peers {
	if s.cfg.Settings.Database == "" {
		return nil
	}
	return unreachable{}
}

// unreachable is peers of which only the records tell.
type unreachable struct{}

// Node implements directory.Peers.
func (unreachable) Node(_ context.Context, executor string) (sandbox.Node, error) {
	return nil, fault.New(fault.Unavailable, "the sandbox is on another machine (executor %s); send the request to that machine's server", executor)
}

// images finds images by what callers call them.
func (s *Server) images() (*image.Aliases, error) {
	cfg := s.cfg.Settings
	a := &image.Aliases{Store: s.cfg.Images, Default: cfg.Image, Names: cfg.ImageAliases, Packages: resolver{s}.Resolve}
	if cfg.ImagePull == "missing" {
		reach, err := outbound.Parse(cfg.ImagePullRedirect)
		if err != nil {
			return nil, fault.New(fault.Invalid, "image_pull_redirect_allow: %v", err)
		}
		a.Pull = &image.Pull{Import: s.cfg.Images.Import, Allow: cfg.ImagePullAllow, Reach: reach, Size: int64(cfg.ImagePullSize), Time: cfg.ImagePullTimeout, Probe: s.engine.Probe(), Room: s.disk.Admit}
	}
	return a, nil
}

// prices are what use costs.
func (s *Server) prices() usage.Prices {
	cfg := s.cfg.Settings
	return usage.Prices{
		CPUMinute: cfg.PriceCPU, GiBMinute: cfg.PriceGiB, GiBOut: cfg.PriceOut, Call: cfg.PriceCall,
		Calls: map[string]float64{web.SearchName: cfg.PriceSearch, web.PeopleName: cfg.PriceSearch, web.FetchName: cfg.PriceFetch, mcptool.Handler: 0},
	}
}
