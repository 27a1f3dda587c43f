package app

import (
	"context"

	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/control/directory"
	"github.com/atoll-run/atoll/internal/control/executors"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/node/home"
)

// executorsModule answers executors in other processes.
type executorsModule struct {
	*process
	records *recordsModule
	bus     *busModule
	files   *filesModule
	threads *threadsModule
}

// Start implements module.Part.
func (m *executorsModule) Start(ctx context.Context, undo *module.Undo) error {
	if m.cfg.Settings.Alone() {
		return nil
	}
	db := m.records.db
	service := executors.NewService(executors.Config{
		Sandboxes: db.Sandboxes(), Snapshots: db.Snapshots(),
		Grants: directory.Grants{Callers: m.records.authority}, Builds: db.PackageBuilds(), Skills: db, Uploads: m.files.Service, Threads: m.threads, Settings: db,
		SnapshotKey: m.records.snapshotKey, Signer: m.records.box,
	})
	stop, err := m.bus.AnswerExecutors(service.Handlers())
	if err != nil {
		return err
	}
	undo.Add(func(context.Context) error { stop(); return nil })
	events := m.records.executorEvents()
	loop, loops := startLoops(ctx, undo)
	loops.Go(func() {
		if err := m.bus.NodeEvents(loop, events.Fold); err != nil && loop.Err() == nil {
			m.log.Error("stopped recording the events of executors", "error", err)
		}
	})
	return nil
}

// executorEvents applies events of executors to the records.
func (m *recordsModule) executorEvents() *executors.Events {
	return &executors.Events{Store: m.db.NodeEvents(), Prices: m.prices(), Log: m.log}
}

// threadKey and snapshotKey return the keys of a tenant's threads and snapshots, which executors get.
func (m *recordsModule) threadKey(id string) []byte { return tenantKey(m.box.Threads(), id) }

func (m *recordsModule) snapshotKey(id tenant.ID) []byte { return tenantKey(m.box.Snapshots(), id) }

func tenantKey(key []byte, id string) []byte {
	of, err := home.TenantKey(key, id)
	if err != nil {
		panic(err) // only a key of another length fails
	}
	return of
}
