package app

import (
	"context"

	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// devModule opens this machine's loopback for the tenant dev, if the settings ask for it.
type devModule struct {
	*process
	records  *recordsModule
	webhooks *webhooksModule
	models   *modelsModule
	remotes  *remotesModule
}

// Start implements module.Part.
func (m *devModule) Start(ctx context.Context, _ *module.Undo) error {
	if m.cfg.Settings.Dev != "on" {
		return nil
	}
	dev, err := m.records.db.Tenants().Tenant(ctx, tenant.Dev)
	if err != nil {
		return err
	}
	for _, l := range []outbound.List{m.models.allow, m.remotes.allow, m.webhooks.Allowed()} {
		l.OpenLoopback(dev.ID)
	}
	m.log.Info("development mode: models, MCP servers and webhooks of the tenant dev may be on this machine")
	return nil
}
