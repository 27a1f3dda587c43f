package app

import (
	"context"

	"github.com/atoll-run/atoll/internal/agent/sandboxmcp"
	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/control/tools"
	"github.com/atoll-run/atoll/internal/core/breaker"
)

// toolsModule makes the tools that agents call, by HTTP, by MCP and in turns of sessions.
type toolsModule struct {
	*process
	records   *recordsModule
	bus       *busModule
	files     *filesModule
	images    *imageQuestionsModule
	gateway   *gatewayModule
	directory *directoryModule
	previews  *previewsModule
	remotes   *remotesModule

	*tools.Set
	executeCode *tools.ExecuteCode
	breakers    *breaker.Breakers
}

// Start implements module.Part.
func (m *toolsModule) Start(context.Context, *module.Undo) (err error) {
	db := m.records.db
	if m.breakers, err = breaker.New(db.Breakers(), m.log, m.cfg.Registry); err != nil {
		return err
	}
	m.executeCode = tools.NewExecuteCode(tools.Config{Runner: m.gateway.Gateway, Templates: db.Tenants(), Breakers: m.breakers})
	m.Set = tools.NewSet(tools.SetConfig{Pool: m.directory.Directory, Images: m.images.Images, Policies: m.gateway.Gateway, ExecuteCode: m.executeCode, Previews: exposed{m.previews.Previews}, Sessions: db.Sessions(), Files: m.files.Service, Skills: db, Web: m.bus.Web(), Log: m.log})
	m.remotes.client.StartBy(&sandboxmcp.Starter{Set: m.Set, Callers: m.records.authority})
	return nil
}
