package app

import (
	"context"

	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/core/thread"
	"github.com/atoll-run/atoll/internal/node/home"
	"github.com/atoll-run/atoll/internal/node/idmap"
)

// threadsModule opens the catalog of threads and the store of their homes. It needs no sandbox.
type threadsModule struct {
	*process
	records *recordsModule
	bus     *busModule
	blobs   *blobsModule

	*thread.Catalog
	homes *home.Store
}

// Start implements module.Part.
func (m *threadsModule) Start(context.Context, *module.Undo) (err error) {
	owners, _ := idmap.Find() // nothing is restored on a machine without owners
	if m.homes, err = home.NewStore(home.Config{Blobs: m.blobs.Store, Key: m.records.box.Threads(), Owners: owners}); err != nil {
		return err
	}
	m.Catalog = thread.New(thread.Config{
		Records: m.records.db.Threads(), Homes: home.States{Store: m.homes}, Keep: m.cfg.Settings.KeepThreads, Log: m.log,
		Deleted: func(tenant, id string) {
			if err := m.bus.ThreadDeleted(tenant, id); err != nil { // homesModule.forget finds it
				m.log.Warn("cannot notify other machines of a deleted thread", "error", err)
			}
		},
	})
	return nil
}
