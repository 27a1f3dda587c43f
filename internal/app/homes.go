package app

import (
	"context"
	"path/filepath"
	"time"

	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/node/cleanup"
	"github.com/atoll-run/atoll/internal/node/engine"
	"github.com/atoll-run/atoll/internal/node/executor"
	"github.com/atoll-run/atoll/internal/node/home"
	"github.com/atoll-run/atoll/internal/node/idmap"
)

// homesModule opens the cache of this machine's executor for the homes of threads.
type homesModule struct {
	*process
	bus     *busModule
	blobs   *blobsModule
	threads *threadsModule
	control *controlModule

	cached engine.Threads // Cache is nil if the machine cannot keep homes
	unfit  error          // why the machine cannot keep homes
}

// Start implements module.Part.
func (m *homesModule) Start(_ context.Context, undo *module.Undo) error {
	_, unmapped := idmap.Find()
	if unmapped != nil || m.cfg.Platform.OCI != "" {
		m.unfit = unmapped
		return nil // the engine says why when a thread is asked for
	}
	// Homes move between the cache and the folders that sandboxes mount, by a
	// rename, which works within one mount.
	folder := m.folder()
	if err := home.Secure(folder); err != nil {
		m.log.Warn("cannot mount home directories of threads", "reason", err)
		m.unfit = err
		return nil
	}
	undo.Add(func(context.Context) error { return home.Unmount(folder) })
	retries, err := cleanup.New(m.log, m.cfg.Registry)
	if err != nil {
		return err
	}
	store, err := m.store()
	if err != nil {
		retries.Close()
		return err
	}
	cache, err := home.OpenCache(home.CacheConfig{
		Store: store, Dir: filepath.Join(folder, "threads"), Bytes: int64(m.cfg.Settings.ThreadCache), Log: m.log, Cleanup: retries,
	})
	if err != nil {
		retries.Close()
		return err
	}
	undo.Add(func(context.Context) error { retries.Close(); cache.Close(); return nil })
	m.cached = engine.Threads{Cache: cache}
	forget := func(tenant, id string) {
		if err := cache.Forget(home.Ref{Tenant: tenant, ID: id}); err != nil {
			m.log.Warn("cannot remove the cached home of a deleted thread", "error", err)
		}
	}
	stop, err := m.bus.DeletedThreads(forget)
	if err != nil {
		return err
	}
	undo.Add(func(context.Context) error { stop(); return nil })
	stopTenants, err := m.bus.DeletedTenants(m.forgetTenant)
	if err != nil {
		return err
	}
	undo.Add(func(context.Context) error { stopTenants(); return nil })
	return nil
}

// store returns the store of homes. Without records, its keys come with the executions.
func (m *homesModule) store() (*home.Store, error) {
	if m.threads != nil {
		return m.threads.homes, nil
	}
	owners, err := idmap.Find()
	if err != nil {
		return nil, err
	}
	return home.NewStore(home.Config{Blobs: m.blobs.Store, Keys: home.Learned, Owners: owners})
}

// forgetEvery is how often cached homes are compared with the records: threads also
// expire, go with their tenants, and are deleted while this machine is away.
const forgetEvery = 10 * time.Minute

// forget removes cached homes of threads that do not exist anymore, until ctx ends.
func (m *homesModule) forget(ctx context.Context) {
	if m.cached.Cache == nil {
		return
	}
	tick := time.NewTicker(forgetEvery)
	defer tick.Stop()
	for {
		for _, r := range m.cached.Cache.Unused() {
			exists, err := m.control.threadExists(ctx, r.Tenant, r.ID)
			if err == nil && !exists {
				err = m.cached.Cache.Forget(r)
			}
			if err != nil {
				m.log.Warn("cannot compare cached homes with the database", "error", err)
				break
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// forgetTenant removes the cached homes of a deleted tenant.
func (m *homesModule) forgetTenant(id tenant.ID) {
	for _, r := range m.cached.Cache.Unused() {
		if r.Tenant != id {
			continue
		}
		if err := m.cached.Cache.Forget(r); err != nil { // forget retries
			m.log.Warn("cannot remove the cached home of a deleted tenant", "error", err)
		}
	}
}

// forExecutor returns the homes for the executor, nil if the machine cannot keep homes.
func (m *homesModule) forExecutor() executor.Homes {
	if m.cached.Cache == nil {
		return nil // not (engine.Threads){}
	}
	return m.cached
}
