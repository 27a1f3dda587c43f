package app

import (
	"context"

	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/node/home"
	"github.com/atoll-run/atoll/internal/node/idmap"
)

// snapshotsModule opens the store of snapshots, and of sandboxes that sleep in the blob store.
type snapshotsModule struct {
	*process
	records *recordsModule
	blobs   *blobsModule
	bus     *busModule
	control *controlModule

	kept *home.Store
}

// Start implements module.Part.
func (m *snapshotsModule) Start(_ context.Context, undo *module.Undo) error {
	owners, err := idmap.Find()
	if err != nil { // then no sandbox starts on this machine either
		m.log.Debug("cannot restore snapshots on this machine", "reason", err)
	}
	cfg := home.Config{Blobs: m.blobs.Store, Folder: "snapshots", Owners: owners}
	if m.records != nil {
		cfg.Key = m.records.box.Snapshots()
	} else {
		cfg.Keys = m.control.gateways.SnapshotKey
	}
	if m.kept, err = home.NewStore(cfg); err != nil || m.records != nil {
		return err
	}
	stop, err := m.bus.DeletedTenants(m.kept.Forget)
	if err != nil {
		return err
	}
	undo.Add(func(context.Context) error { stop(); return nil })
	return nil
}

// retention deletes expired sandboxes and snapshots.
func (m *snapshotsModule) retention() sandboxes.Retention {
	return sandboxes.Retention{Sandboxes: m.records.db.Sandboxes(), Snapshots: m.records.db.Snapshots(), Collect: m.kept.Collect, Log: m.log}
}
