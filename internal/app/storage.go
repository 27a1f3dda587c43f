package app

import (
	"context"
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/blob"
	"github.com/atoll-run/atoll/internal/node/idmap"
	volume "github.com/atoll-run/atoll/internal/node/volumes"
	"github.com/atoll-run/atoll/internal/node/volumes/bucket"
)

// storageModule finds out where volumes are, and where connections may lead.
type storageModule struct {
	*process
	identity *identityModule
	shared   *sharedModule

	buckets bucket.Buckets
	volumes volume.Store // without Dir where volumes are in a bucket, or nothing can be mounted
	claim   string       // of the installation on shared volumes; "" for those in the data folder
}

// Start implements module.Part.
func (m *storageModule) Start(ctx context.Context, undo *module.Undo) (err error) {
	if m.buckets.Allow, err = outbound.Parse(m.cfg.Settings.StorageAllow); err != nil {
		return fmt.Errorf("storage_allow: %w", err)
	}
	if m.volumes.Owners, err = idmap.Find(); err != nil && m.cfg.Settings.Executor() {
		m.log.Warn("cannot mount storage in sandboxes", "reason", err)
		return nil
	}
	where := m.cfg.Settings.Volumes
	if err := CheckVolumes(ctx, where); err != nil {
		return err
	}
	switch {
	case where == "":
		where = m.path("volumes")
	case strings.Contains(where, "://"):
		if m.buckets.Volumes, err = blob.OpenBucket(ctx, where); err != nil {
			return fmt.Errorf("volumes: %w", err)
		}
		undo.Add(func(context.Context) error { return m.buckets.Volumes.Close() })
		if m.claim, err = blob.Claim(ctx, m.buckets.Volumes, m.shared.id, m.identity.id); err != nil {
			return fmt.Errorf("volumes: %w", err)
		}
		return nil
	}
	m.volumes.Dir = where
	if m.cfg.Settings.Volumes != "" {
		if m.claim, err = blob.ClaimFolder(ctx, where, m.shared.id, m.identity.id); err != nil {
			return fmt.Errorf("volumes: %w", err)
		}
	}
	return nil
}

// ListFolder implements thread.Folders.
func (m *storageModule) ListFolder(ctx context.Context, tenantID string, at storage.Mount) ([]storage.File, error) {
	switch {
	case m.buckets.Has(at.Kind):
		return m.buckets.List(ctx, tenantID, &at)
	case m.volumes.Dir == "":
		return nil, fault.New(fault.Unavailable, "this server cannot mount volumes")
	}
	return m.volumes.List(tenantID, at.Connection, at.Path)
}

// reach reports why a connection leads nowhere.
func (m *storageModule) reach(ctx context.Context, c *storage.Connection) error {
	switch {
	case m.buckets.Has(c.Kind):
		return m.buckets.Reach(ctx, c)
	case m.volumes.Dir == "":
		return fault.New(fault.Invalid, "this server cannot mount volumes: see its log, or run 'atoll doctor'")
	}
	return nil // it is made when it is first mounted
}

// delete deletes a tenant's managed volumes, but never the tenant's own buckets.
func (m *storageModule) delete(ctx context.Context, id tenant.ID) error {
	if m.buckets.Volumes != nil {
		return m.buckets.DeleteVolumes(ctx, id)
	}
	if m.volumes.Dir == "" {
		return nil
	}
	return m.volumes.Delete(id)
}
