package app

import (
	"context"

	"github.com/atoll-run/atoll/internal/control/tools"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/clientip"
	"github.com/atoll-run/atoll/internal/edge/mcp"
)

// openMCP opens what offers the tools to clients of the Model Context Protocol.
func (s *Server) openMCP(set *tools.Set, proxies *clientip.Proxies) (*mcp.Server, error) {
	m, err := mcp.New(mcp.Config{
		Tools: set, Pool: s.directory, Version: s.cfg.Version, Proxied: proxies.Proxied,
		Origins: s.cfg.Settings.MCPOrigins, Idle: s.cfg.Settings.MCPIdle, Log: s.log, Metrics: s.cfg.Registry,
		OpenStream: func(p *tenant.Principal) (func(), error) { return s.http.OpenStream(p) },
		Cancel: func(ctx context.Context, tenantID, traceID string) error {
			_, err := s.gateway.Cancel(ctx, tenantID, traceID)
			return err
		},
	})
	if err != nil {
		return nil, err
	}
	s.later(func(context.Context) error { m.Close(); return nil })
	return m, nil
}
