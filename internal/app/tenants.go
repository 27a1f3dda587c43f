package app

import (
	"context"

	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/control/webhook"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/node/egress"
)

// tenantsModule administers tenants, keys and environments.
type tenantsModule struct {
	*process
	records  *recordsModule
	storage  *storageModule
	images   *imageQuestionsModule
	webhooks *webhooksModule

	*tenant.Admin

	deleted func(tenant.ID) // starts deleting a tenant's data; set by the table
}

// Start implements module.Part.
func (m *tenantsModule) Start(context.Context, *module.Undo) error {
	cfg := m.cfg.Settings
	m.Admin = tenant.NewAdmin(tenant.AdminConfig{
		Store: m.records.db.Tenants(), Authority: m.records.authority, Limits: cfg.Limits(), Image: cfg.Image, Templates: cfg.BaseTemplates,
		CheckImage: m.images.CheckImage, CheckNetwork: egress.ValidatePolicy, CheckWebhook: m.webhooks.CheckURL, CheckSecret: webhook.CheckSecret,
		Reach: m.storage.reach, Packages: m.images.installer, Deleted: m.deleted,
	})
	return nil
}
