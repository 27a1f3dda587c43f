package app

import (
	"context"
	"fmt"

	"github.com/atoll-run/atoll/internal/agent/mcpclient"
	"github.com/atoll-run/atoll/internal/agent/mcptool"
	"github.com/atoll-run/atoll/internal/agent/token"
	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/core/outbound"
)

// remotesModule calls tools of MCP servers that callers name.
type remotesModule struct {
	*process
	records   *recordsModule
	gateway   *gatewayModule
	directory *directoryModule

	*mcptool.Tools
	client *mcpclient.Client
	allow  outbound.List // hosts of MCP servers
}

// Start implements module.Part.
func (m *remotesModule) Start(_ context.Context, undo *module.Undo) error {
	allow, err := outbound.Parse(m.cfg.Settings.MCPAllow)
	if err != nil {
		return fmt.Errorf("mcp_allow: %w", err)
	}
	m.allow = allow
	m.client = mcpclient.New(allow, m.cfg.Version)
	undo.Add(func(context.Context) error { m.client.Close(); return nil })
	tokens := &token.Source{Store: m.records.db.Vaults(), Client: m.client.HTTP(), Check: m.client.CheckURL}
	m.Tools = mcptool.New(mcptool.Config{Client: m.client, Seal: m.records.box, Callers: m.records.authority, Record: m.directory.Record, Token: tokens.Token, Cover: m.gateway.Cover})
	return nil
}
