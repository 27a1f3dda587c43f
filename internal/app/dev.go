package app

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// allowed are the lists of hosts that callers may have this server connect to.
type allowed struct{ models, mcp, webhooks outbound.List }

// openDev opens this machine's loopback for the tenant dev, if the settings ask for it.
func (s *Server) openDev(ctx context.Context) error {
	if s.cfg.Settings.Dev != "on" {
		return nil
	}
	dev, err := s.db.Tenants().Tenant(ctx, tenant.Dev)
	if err != nil {
		return err
	}
	for _, l := range []outbound.List{s.allow.models, s.allow.mcp, s.allow.webhooks} {
		l.OpenLoopback(dev.ID)
	}
	s.log.Info("development mode: models, MCP servers and webhooks of the tenant dev may be on this machine")
	return nil
}
