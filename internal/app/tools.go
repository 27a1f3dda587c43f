package app

import (
	"context"

	"github.com/atoll-run/atoll/internal/agent/pooltool"
	"github.com/atoll-run/atoll/internal/agent/sandboxmcp"
	"github.com/atoll-run/atoll/internal/control/tools"
	"github.com/atoll-run/atoll/internal/core/breaker"
)

// openTools makes the tools that agents call, by HTTP, by MCP and in turns of sessions.
func (s *Server) openTools(context.Context) (err error) {
	if s.caps, err = breaker.New(s.db.Breakers(), s.log, s.cfg.Registry); err != nil {
		return err
	}
	s.executeCode = tools.NewExecuteCode(tools.Config{Runner: s.gateway, Templates: s.db.Tenants(), Breakers: s.caps})
	s.tools = tools.NewSet(tools.SetConfig{Pool: s.directory, Images: s.aliases, Policies: s.gateway, ExecuteCode: s.executeCode, Previews: exposed{s.previews}, Sessions: s.db.Sessions(), Files: s.files, Skills: s.db, Web: s.bus.Web(), Log: s.log})
	s.mcpClient.StartBy(&sandboxmcp.Starter{Set: s.tools, Callers: s.authority})
	return nil
}

// pool gives agents the named sandboxes of their sessions.
func (s *Server) pool() *pooltool.Pool {
	return &pooltool.Pool{Set: s.tools, Callers: s.authority, Keeper: s.gateway, Ledger: s.db.Usage(), Services: s.web.Services()}
}
