package server

import (
	"context"

	"github.com/atoll-run/atoll/internal/forwarded"
	"github.com/atoll-run/atoll/internal/mcpserver"
	"github.com/atoll-run/atoll/internal/tools"
)

// openMCP opens what offers the tools to clients of the Model Context Protocol.
func (s *Server) openMCP(set *tools.Set, proxies *forwarded.Proxies) (*mcpserver.Server, error) {
	m, err := mcpserver.New(mcpserver.Config{
		Tools: set, Pool: s.sandboxes, Version: s.cfg.Version, Proxied: proxies.Proxied,
		Origins: s.cfg.Settings.MCPOrigins, Idle: s.cfg.Settings.MCPIdle, Log: s.log, Metrics: s.cfg.Registry,
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
