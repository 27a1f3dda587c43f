package app

import (
	"context"

	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/core/redact"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/node/cleanup"
	"github.com/atoll-run/atoll/internal/node/contexts"
	"github.com/atoll-run/atoll/internal/node/engine"
	"github.com/atoll-run/atoll/internal/node/sandboxes"
)

// sandboxesModule opens the named sandboxes of this machine.
type sandboxesModule struct {
	*process
	identity  *identityModule
	disk      *diskModule
	control   *controlModule
	snapshots *snapshotsModule
	engine    *engineModule
	images    *imagesModule

	*sandboxes.Manager
}

// Start implements module.Part.
func (m *sandboxesModule) Start(_ context.Context, undo *module.Undo) error {
	cfg := m.cfg.Settings
	rules, err := redact.Except(nil)
	if err != nil {
		return err
	}
	retries, err := cleanup.New(m.log, m.cfg.Registry)
	if err != nil {
		return err
	}
	undo.Add(func(context.Context) error { retries.Close(); return nil })
	m.Manager = sandboxes.New(sandboxes.Config{
		Cleanup: retries,
		Records: m.control.sandboxes, Ledger: m.control.ledger, Snapshots: m.control.snapshots, Engine: m.engine.Sandboxes(), SnapshotFiles: engine.SnapshotStore{Engine: m.engine.Engine, Store: m.snapshots.kept}, Grants: m.control.grants, Executor: m.identity.id, AdmitDisk: m.disk.Admit, AdmitBytes: m.disk.AdmitBytes,
		Images: m.images.Aliases, Contexts: contexts.New(),
		Rules: rules, AuthTTL: tenant.AuthTTL, Log: m.log,
		SleepAfter: cfg.SandboxSleepAfter, KeepFrozen: cfg.SandboxFrozen, CheckpointDisk: int64(cfg.CheckpointDisk), KeepOnDisk: cfg.SandboxStored, DiskLimit: int64(cfg.SandboxDisk), MaxSandboxes: cfg.MaxOnMachine, KeepUnused: cfg.KeepSandboxes, KeepSnapshots: cfg.KeepSnapshots, Detach: cfg.OnExit == "detach",
	})
	undo.Add(m.Close)
	return m.cfg.Registry.Register(m.Manager)
}
