package app

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/control/erasure"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// settleTime is how long requests that were let in with a tenant's keys may take until they have
// recorded what they make, beyond the time that other servers remember the keys for.
const settleTime = 5 * time.Second

// openErasure makes what deletes tenants, and forgets deleted ones of other servers.
func (s *Server) openErasure(context.Context) error {
	contents := map[string]func(context.Context, tenant.ID) error{"volumes": s.deleteVolumes}
	for _, folder := range []string{"outputs", "files", "threads", "snapshots"} {
		contents[folder] = func(ctx context.Context, id tenant.ID) error { return s.blobs.DeletePrefix(ctx, folder+"/"+id) }
	}
	s.eraser = erasure.New(erasure.Config{
		Store: s.db.Erasures(), Executions: s.gateway, Runs: s.runs, Threads: s.threads, Tell: s.bus.TenantDeleted,
		Contents: contents, Settle: tenant.AuthTTL + settleTime, Log: s.log,
	})
	stop, err := s.bus.DeletedTenants(s.forgetTenant)
	if err != nil {
		return err
	}
	s.later(func(context.Context) error { stop(); return nil })
	return nil
}

// tenantDeleted hears of a tenant whose deletion begins.
func (s *Server) tenantDeleted(id tenant.ID) {
	if err := s.bus.TenantDeleted(id); err != nil { // the other servers forget its keys by themselves
		s.log.Warn("cannot tell other servers of a deleted tenant", "error", err)
	}
	s.eraser.Wake()
}

// forgetTenant ends what this server keeps of a deleted tenant in memory and in its caches.
func (s *Server) forgetTenant(id tenant.ID) {
	s.authority.Forget()
	s.executor.EndTurnsOf(id)
	if s.homes.Cache == nil {
		return
	}
	for _, r := range s.homes.Cache.Unused() {
		if r.Tenant != id {
			continue
		}
		if err := s.homes.Cache.Forget(r); err != nil { // forgetThreads tries again
			s.log.Warn("cannot remove the cached home of a deleted tenant", "error", err)
		}
	}
}

// deleteVolumes deletes the managed volumes of a tenant. Buckets of its own stay.
func (s *Server) deleteVolumes(ctx context.Context, id tenant.ID) error {
	if s.buckets.Volumes != nil {
		return s.buckets.DeleteVolumes(ctx, id)
	}
	if s.volumes.Dir == "" {
		return nil
	}
	return s.volumes.Delete(id)
}
