package app

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/control/erasure"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// settleTime is how long a request may take to record its resources after authentication. The
// erasure waits this long after the key caches of other servers have expired.
const settleTime = 5 * time.Second

// openErasure starts deleting tenants. It also drops the caches of tenants that other servers
// delete.
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

// tenantDeleted starts deleting the tenant's data and notifies the other servers.
func (s *Server) tenantDeleted(id tenant.ID) {
	if err := s.bus.TenantDeleted(id); err != nil { // the key caches of the other servers expire anyway
		s.log.Warn("cannot notify other servers of a deleted tenant", "error", err)
	}
	s.eraser.Wake()
}

// forgetTenant drops a deleted tenant from this server's memory and caches.
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
		if err := s.homes.Cache.Forget(r); err != nil { // forgetThreads retries
			s.log.Warn("cannot remove the cached home of a deleted tenant", "error", err)
		}
	}
}

// deleteVolumes deletes a tenant's managed volumes, but never the tenant's own buckets.
func (s *Server) deleteVolumes(ctx context.Context, id tenant.ID) error {
	if s.buckets.Volumes != nil {
		return s.buckets.DeleteVolumes(ctx, id)
	}
	if s.volumes.Dir == "" {
		return nil
	}
	return s.volumes.Delete(id)
}
