package app

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/control/erasure"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// settleTime is how long a request may take to record its resources after authentication. The
// erasure waits this long after the key caches of other servers have expired.
const settleTime = 5 * time.Second

// erasureModule deletes tenants. It also drops cached keys of tenants that other servers delete.
type erasureModule struct {
	*process
	records *recordsModule
	bus     *busModule
	blobs   *blobsModule
	storage *storageModule
	threads *threadsModule
	gateway *gatewayModule
	runs    *runsModule

	*erasure.Eraser
}

// Start implements module.Part.
func (m *erasureModule) Start(_ context.Context, undo *module.Undo) error {
	contents := map[string]func(context.Context, tenant.ID) error{"volumes": m.storage.delete}
	for _, folder := range []string{"outputs", "files", "threads", "snapshots"} {
		contents[folder] = func(ctx context.Context, id tenant.ID) error { return m.blobs.DeletePrefix(ctx, folder+"/"+id) }
	}
	m.Eraser = erasure.New(erasure.Config{
		Store: m.records.db.Erasures(), Executions: m.gateway.Gateway, Runs: m.runs.Loop, Threads: m.threads.Catalog, Tell: m.bus.TenantDeleted,
		Contents: contents, Settle: tenant.AuthTTL + settleTime, Log: m.log,
	})
	stop, err := m.bus.DeletedTenants(func(tenant.ID) { m.records.authority.Forget() })
	if err != nil {
		return err
	}
	undo.Add(func(context.Context) error { stop(); return nil })
	return nil
}

// deleted starts deleting the tenant's data and notifies the other servers.
func (m *erasureModule) deleted(id tenant.ID) {
	if err := m.bus.TenantDeleted(id); err != nil { // the key caches of the other servers expire anyway
		m.log.Warn("cannot notify other servers of a deleted tenant", "error", err)
	}
	m.Wake()
}
