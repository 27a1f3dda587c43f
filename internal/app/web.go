package app

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/agent/fetch"
	"github.com/atoll-run/atoll/internal/agent/search"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/usage"
	"github.com/atoll-run/atoll/internal/core/web"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// openWeb makes what searches the web and fetches pages.
func (s *Server) openWeb(context.Context) error {
	cfg := s.cfg.Settings
	found, err := s.openSearch(search.Config{Provider: cfg.SearchProvider, URL: cfg.SearchURL, Setting: "search"}, cfg.SearchKeyFile, cfg.SearchTool)
	if err != nil {
		return err
	}
	people, err := s.openSearch(search.Config{Provider: cfg.PeopleProvider, URL: cfg.PeopleSearchURL, Setting: "people_search"}, cfg.PeopleKeyFile, cfg.PeopleTool)
	if err != nil {
		return err
	}
	services := web.Config{
		Web: found, People: people, Record: s.directory.Record, Used: s.db.Usage().Month,
		Cover: func(p *tenant.Principal, text string) (string, error) { return s.gateway.Cover(p, text) },
	}
	if cfg.FetchURL == "on" {
		allow, err := outbound.Parse(cfg.FetchAllow)
		if err != nil {
			return fmt.Errorf("fetch_allow: %w", err)
		}
		pages := fetch.New(allow, s.cfg.Version)
		s.later(func(context.Context) error { pages.Close(); return nil })
		services.Pages = pages
	}
	s.web = web.New(services)
	return nil
}

// serveWeb answers the calls that programs in sandboxes make, on this machine and others.
func (s *Server) serveWeb() error {
	stop, err := s.bus.ServeWeb(httpapi.Inner{Server: s.http, Holders: s.authority, Reserve: s.reserveCall})
	if err != nil {
		return err
	}
	s.later(func(context.Context) error { stop(); return nil })
	return nil
}

// openPrograms makes what holds the calls of programs to what may be spent.
func (s *Server) openPrograms() {
	s.programs = &usage.Programs{Budget: s.budget, Prices: s.runPrices().Tools, Calls: func(ctx context.Context, tenant, traceID string) (map[string]int, error) {
		now := time.Now()
		return s.db.Usage().Calls(ctx, tenant, traceID, now.Add(-s.cfg.Settings.MaxTimeout-time.Minute), now.Add(time.Minute))
	}}
}

func (s *Server) reserveCall(ctx context.Context, p *tenant.Principal, c *execution.WebCall, service string) (release func(), err error) {
	return s.programs.Reserve(ctx, usage.ProgramCall{Tenant: p.Tenant.ID, TraceID: c.TraceID, Service: service, Left: c.Left, Budgeted: p.Tenant.MonthlyCost > 0})
}

// openSearch returns the engine of some settings, nil for off.
func (s *Server) openSearch(cfg search.Config, keyFile, tool string) (web.Engine, error) {
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
		engine, err := search.OpenMCP(cfg, tool, s.cfg.Version)
		if err != nil {
			return nil, err
		}
		s.later(func(context.Context) error { engine.Close(); return nil })
		return engine, nil
	}
	engine, err := search.Open(cfg)
	if err != nil {
		return nil, err
	}
	s.later(func(context.Context) error { engine.Close(); return nil })
	return engine, nil
}
