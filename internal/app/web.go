package app

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/atoll-run/atoll/internal/agent/fetch"
	"github.com/atoll-run/atoll/internal/agent/search"
	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/web"
)

// webModule makes what searches the web and fetches pages.
type webModule struct {
	*process
	records   *recordsModule
	gateway   *gatewayModule
	directory *directoryModule

	*web.Service
}

// Start implements module.Part.
func (m *webModule) Start(_ context.Context, undo *module.Undo) error {
	cfg := m.cfg.Settings
	found, err := m.openSearch(search.Config{Provider: cfg.SearchProvider, URL: cfg.SearchURL, Setting: "search"}, cfg.SearchKeyFile, cfg.SearchTool, undo)
	if err != nil {
		return err
	}
	people, err := m.openSearch(search.Config{Provider: cfg.PeopleProvider, URL: cfg.PeopleSearchURL, Setting: "people_search"}, cfg.PeopleKeyFile, cfg.PeopleTool, undo)
	if err != nil {
		return err
	}
	services := web.Config{
		Web: found, People: people, Record: m.directory.Record, Used: m.records.db.Usage().Month, Cover: m.gateway.Cover,
	}
	if cfg.FetchURL == "on" {
		allow, err := outbound.Parse(cfg.FetchAllow)
		if err != nil {
			return fmt.Errorf("fetch_allow: %w", err)
		}
		pages := fetch.New(allow, m.cfg.Version)
		undo.Add(func(context.Context) error { pages.Close(); return nil })
		services.Pages = pages
	}
	m.Service = web.New(services)
	return nil
}

// off says why agents do not get a tool of the web here; nil if they do.
func (m *webModule) off(t agent.ToolType) error {
	switch t {
	case agent.WebSearch:
		return m.Check(web.Query{})
	case agent.FetchURL:
		return m.CheckFetch()
	}
	return nil
}

// openSearch returns the engine of some settings, nil for off.
func (m *webModule) openSearch(cfg search.Config, keyFile, tool string, undo *module.Undo) (web.Engine, error) {
	if cfg.Provider == "off" {
		return nil, nil
	}
	if keyFile != "" {
		key, err := os.ReadFile(keyFile)
		if err != nil {
			return nil, fmt.Errorf("%s_key_file: %w", cfg.Setting, err)
		}
		if cfg.Key = strings.TrimSpace(string(key)); cfg.Key == "" || strings.ContainsFunc(cfg.Key, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return nil, fmt.Errorf("%s_key_file: %s must hold one key of visible ASCII characters", cfg.Setting, keyFile)
		}
	}
	if tool != "" && cfg.Provider != search.MCP {
		return nil, fmt.Errorf("%s_tool applies only to the provider %s", cfg.Setting, search.MCP)
	}
	if cfg.Provider == search.MCP {
		engine, err := search.OpenMCP(cfg, tool, m.cfg.Version)
		if err != nil {
			return nil, err
		}
		undo.Add(func(context.Context) error { engine.Close(); return nil })
		return engine, nil
	}
	engine, err := search.Open(cfg)
	if err != nil {
		return nil, err
	}
	undo.Add(func(context.Context) error { engine.Close(); return nil })
	return engine, nil
}
