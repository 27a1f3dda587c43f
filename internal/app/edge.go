package app

import (
	"context"
	"golang.org/x/sys/unix"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-run/atoll/internal/agent/agents"
	"github.com/atoll-run/atoll/internal/agent/skills"
	"github.com/atoll-run/atoll/internal/agent/vaults"
	"github.com/atoll-run/atoll/internal/control/environments"
	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/web"
	"github.com/atoll-run/atoll/internal/edge/compat/anthropic"
	"github.com/atoll-run/atoll/internal/edge/compat/cloudflare"
	"github.com/atoll-run/atoll/internal/edge/compat/e2b"
	"github.com/atoll-run/atoll/internal/edge/compat/openai"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
	"github.com/atoll-run/atoll/internal/edge/httpapi/activity"
	"github.com/atoll-run/atoll/internal/edge/httpapi/admin"
	agentapi "github.com/atoll-run/atoll/internal/edge/httpapi/agent"
	"github.com/atoll-run/atoll/internal/edge/httpapi/approval"
	"github.com/atoll-run/atoll/internal/edge/httpapi/environment"
	"github.com/atoll-run/atoll/internal/edge/httpapi/execute"
	fileapi "github.com/atoll-run/atoll/internal/edge/httpapi/file"
	modelapi "github.com/atoll-run/atoll/internal/edge/httpapi/model"
	responseapi "github.com/atoll-run/atoll/internal/edge/httpapi/response"
	"github.com/atoll-run/atoll/internal/edge/httpapi/routes"
	"github.com/atoll-run/atoll/internal/edge/httpapi/sandbox"
	sessionapi "github.com/atoll-run/atoll/internal/edge/httpapi/session"
	"github.com/atoll-run/atoll/internal/edge/httpapi/sessionstream"
	skillapi "github.com/atoll-run/atoll/internal/edge/httpapi/skill"
	"github.com/atoll-run/atoll/internal/edge/httpapi/thread"
	"github.com/atoll-run/atoll/internal/edge/httpapi/token"
	"github.com/atoll-run/atoll/internal/edge/httpapi/tool"
	"github.com/atoll-run/atoll/internal/edge/httpapi/usage"
	vaultapi "github.com/atoll-run/atoll/internal/edge/httpapi/vault"
	webapi "github.com/atoll-run/atoll/internal/edge/httpapi/web"
	"github.com/atoll-run/atoll/internal/edge/tlscert"
	"github.com/atoll-run/atoll/internal/infra/trace"
)

// openTraces has spans sent, if the environment asks for them.
func (s *Server) openTraces(ctx context.Context) error {
	stop, err := trace.Setup(ctx, trace.Config{
		Endpoint: s.cfg.Settings.TraceEndpoint, Version: s.cfg.Version, Getenv: s.cfg.Getenv, Log: s.log,
	})
	if err != nil {
		return err
	}
	s.later(func(ctx context.Context) error {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), tracesWait)
		defer cancel()
		if err := stop(last); err != nil { // no work depends on it
			s.log.Warn("cannot send the last traces", "error", err)
		}
		return nil
	})
	return nil
}

// tracesWait is how long a shutdown waits for a collector to take the last
// spans, which are those of the shutdown.
const tracesWait = 3 * time.Second

func (s *Server) openTLS(context.Context) (err error) {
	cfg := s.cfg.Settings
	if cfg.TLSCert == "" {
		return nil
	}
	if s.tls, err = tlscert.Open(tlscert.Config{Cert: cfg.TLSCert, Key: cfg.TLSKey, Log: s.log}); err != nil {
		return err
	}
	return s.cfg.Registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "atoll_tls_certificate_expiry_seconds", Help: "When the certificate that is served expires, in Unix seconds.",
	}, func() float64 { return float64(s.tls.Expires().Unix()) }))
}

// toolOff says why agents do not get a tool of the web here; nil if they do.
func (s *Server) toolOff(t agent.ToolType) error {
	switch t {
	case agent.WebSearch:
		return s.web.Check(web.Query{})
	case agent.FetchURL:
		return s.web.CheckFetch()
	}
	return nil
}

func (s *Server) openHTTP(context.Context) error {
	cfg := s.cfg.Settings
	proxies, err := s.proxies()
	if err != nil {
		return err
	}
	mcp, err := s.openMCP(s.tools, proxies)
	if err != nil {
		return err
	}
	envs := &environments.Service{Tenants: s.tenants, Sandboxes: s.directory}
	named := sandboxes.New(sandboxes.Config{
		Sandboxes: s.directory, Previews: s.previews, Policies: s.gateway, Keys: s.authority, EnterPool: s.conversations.EnterPool, Draining: s.stopping,
	})
	streams := &sessionstream.Streams{Service: s.conversations, News: s.bus.News()}
	agentService := &agents.Service{Store: s.db.Agents(), Models: s.models, Skills: s.db.Skills(), Limits: agent.Limits{Agents: cfg.MaxAgents, Versions: cfg.MaxAgentVersions}, Off: s.toolOff}
	vaultService := &vaults.Service{Store: s.db.Vaults(), Max: cfg.MaxVaults, CheckURL: s.mcpClient.CheckURL}
	handlers := routes.Handlers{
		Execute:      &execute.Handlers{Gateway: s.gateway, CheckURL: s.webhooks.CheckURL, Tenants: s.tenants, Webhooks: s.jobs},
		Responses:    &responseapi.Handlers{Service: s.responses, Files: s.gateway, Seal: s.box, Web: s.web, MCP: s.mcp},
		Usage:        &usage.Handlers{Ledger: s.db.Usage(), Tenants: s.tenants, Keep: s.keepOutputs()},
		Activity:     &activity.Handlers{Store: s.db.Activity(), Names: s.tenants},
		Tokens:       &token.Handlers{Tokens: tenant.NewTokens(s.db.Tenants(), s.authority), Sessions: s.db.Sessions(), Sandboxes: s.directory},
		Threads:      &thread.Handlers{Threads: s.threads, Folders: s, Signer: s.box, Keys: s.authority},
		Tools:        &tool.Handlers{ExecuteCode: s.executeCode, Tools: s.tools, MCP: mcp},
		Sandboxes:    &sandbox.Handlers{Service: named},
		Environments: &environment.Handlers{Service: envs},
		Models:       &modelapi.Handlers{Catalog: s.models, Tenants: s.tenants},
		Agents:       &agentapi.Handlers{Service: agentService},
		Sessions:     &sessionapi.Handlers{Service: s.conversations, Streams: streams, Outputs: s.gateway},
		Skills:       &skillapi.Handlers{Service: &skills.Service{Store: s.db.Skills(), Limits: skill.Limits{Skills: cfg.MaxSkills, Bytes: int64(cfg.MaxSkillBytes)}}},
		Vaults:       &vaultapi.Handlers{Service: vaultService},
		Files:        &fileapi.Handlers{Files: s.files, Conversations: s.conversations, Outputs: s.gateway},
		Web:          &webapi.Handlers{Web: s.web},
		Admin:        &admin.Handlers{Tenants: s.tenants, Environments: envs, Trail: s.db.Audit(), Verifier: audit.NewSealer(s.db.Audit()), Caps: s.caps, Models: s.models},
	}
	handlers.Approvals = &approval.Handlers{Service: s.approvals, Within: s.authority.Within, Cover: s.gateway.Cover}
	handlers.Tools.Own = s.conversations.Own
	handlers.Managed = &anthropic.Handlers{Agents: agentService, Streams: streams, Conversations: s.conversations, Vaults: vaultService, Files: s.files, Environments: envs, Keys: s.authority}
	handlers.Containers = &openai.Handlers{Sandboxes: named}
	var services func(*http.Request) *http.Request
	if cfg.Cloudflare == "on" {
		handlers.Cloudflare = cloudflare.New(named)
	}
	if cfg.E2B == "on" {
		handlers.E2B = e2b.New(e2b.Config{Sandboxes: named, Keys: s.authority, Signer: s.box, Hosts: s.previews, Holders: s.db.Sandboxes()})
		s.e2b.Store(handlers.E2B)
		services = handlers.E2B.Services
		s.later(func(context.Context) error { handlers.E2B.Close(); return nil })
	}
	s.http, err = httpapi.New(httpapi.Config{
		Operations: handlers.Operations(), CompatPath: anthropic.Path, Previews: s.visits, Services: services,
		Auth: s.authority, Tokens: s.authority, CORS: cfg.CORSOrigins, Repeats: s.db.Idempotency(), Record: s.directory.Record, Metrics: s.cfg.Registry, Log: s.log, Grace: cfg.ShutdownGrace,
		Ready: s.Ready, Room: s.disk.AdmitBytes, MaxConnections: maxConnections(), Streams: httpapi.StreamLimits{Token: cfg.StreamsPerToken, Key: cfg.StreamsPerKey, Tenant: cfg.StreamsPerTenant}, Drain: []func(){mcp.Drain, s.visits.Drain}, Expire: s.expire,
		Client: func(r *http.Request) string { return proxies.Client(r).String() },
	})
	if err != nil {
		return err
	}
	return s.serveWeb()
}

// maxConnections is how many clients may be connected: half of the descriptors that the
// process may have, because sandboxes, files and records need some too. 0, for any number,
// where there is no bound.
func maxConnections() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(min(limit.Cur/2, 1<<20))
}

// ListFolder implements thread.Folders.
func (s *Server) ListFolder(ctx context.Context, tenantID string, m storage.Mount) ([]storage.File, error) {
	switch {
	case s.buckets.Has(m.Kind):
		return s.buckets.List(ctx, tenantID, &m)
	case s.volumes.Dir == "":
		return nil, fault.New(fault.Unavailable, "this server cannot mount volumes")
	}
	return s.volumes.List(tenantID, m.Connection, m.Path)
}

// reach reports why a connection leads nowhere.
func (s *Server) reach(ctx context.Context, c *storage.Connection) error {
	switch {
	case s.buckets.Has(c.Kind):
		return s.buckets.Reach(ctx, c)
	case s.volumes.Dir == "":
		return fault.New(fault.Invalid, "this server cannot mount volumes: see its log, or run 'atoll doctor'")
	}
	return nil // it is made when it is first mounted
}

// checkImage reports why an environment cannot have an image.
func (s *Server) checkImage(_ context.Context, name string) error {
	if strings.HasPrefix(name, requirement.ImagePrefix) {
		return fault.New(fault.Invalid, "image %q was built for the packages of environments and is deleted with them: use its base image, and packages", name)
	}
	if requirement.IsVariant(name) {
		return s.hasVariant(name)
	}
	if _, err := s.cfg.Images.Get(name); err != nil {
		return s.aliases.NotHere(name, err)
	}
	return nil
}
