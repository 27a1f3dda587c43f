package app

import (
	"context"
	"net/http"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/api/routes"
	"github.com/atoll-run/atoll/internal/agent/agents"
	"github.com/atoll-run/atoll/internal/agent/feed"
	"github.com/atoll-run/atoll/internal/agent/skills"
	"github.com/atoll-run/atoll/internal/agent/vaults"
	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/control/connections"
	"github.com/atoll-run/atoll/internal/control/environments"
	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/control/signed"
	"github.com/atoll-run/atoll/internal/control/tokens"
	"github.com/atoll-run/atoll/internal/control/webcall"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	coresandbox "github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/core/tenant"
	spending "github.com/atoll-run/atoll/internal/core/usage"
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
	"github.com/atoll-run/atoll/internal/edge/mcp"
	"github.com/atoll-run/atoll/internal/infra/clientip"
)

// httpModule serves the APIs, and the calls that programs in sandboxes make.
type httpModule struct {
	*process
	installation *installationModule
	disk         *diskModule
	records      *recordsModule
	bus          *busModule
	files        *filesModule
	storage      *storageModule
	threads      *threadsModule
	executor     *executorModule
	webhooks     *webhooksModule
	gateway      *gatewayModule
	directory    *directoryModule
	previews     *previewsModule
	tenants      *tenantsModule
	models       *modelsModule
	web          *webModule
	remotes      *remotesModule
	tools        *toolsModule
	runs         *runsModule
	jobs         *jobsModule
	readiness    *readiness

	*httpapi.Server
	e2b atomic.Pointer[e2b.Handlers] // nil where it is off
}

// Start implements module.Part.
func (m *httpModule) Start(ctx context.Context, undo *module.Undo) error {
	cfg, db, authority, box := m.cfg.Settings, m.records.db, m.records.authority, m.records.box
	directory, gateway, conversations := m.directory.Directory, m.gateway.Gateway, m.runs.conversations
	proxies, err := m.proxies()
	if err != nil {
		return err
	}
	mcp, err := m.openMCP(proxies, undo)
	if err != nil {
		return err
	}
	envs := &environments.Service{Tenants: m.tenants.Admin, Sandboxes: directory}
	tickets, err := m.bus.OpenTickets(ctx, sandboxes.TicketLife)
	if err != nil {
		return err
	}
	named := sandboxes.New(sandboxes.Config{
		Sandboxes: directory, Previews: m.previews.Previews, Policies: gateway, Keys: authority, Tickets: tickets, EnterPool: conversations.EnterPool, Draining: m.draining,
	})
	streams := &sessionstream.Streams{Feeds: &feed.Feeds{Service: conversations, News: m.bus.News()}}
	agentService := &agents.Service{Store: db.Agents(), Models: m.models.Catalog, Skills: db.Skills(), Limits: agent.Limits{Agents: cfg.MaxAgents, Versions: cfg.MaxAgentVersions}, Off: m.web.off}
	vaultService := &vaults.Service{Store: db.Vaults(), Max: cfg.MaxVaults, CheckURL: m.remotes.client.CheckURL}
	handlers := routes.Handlers{
		Execute:      &execute.Handlers{Gateway: gateway, CheckURL: m.webhooks.CheckURL, Tenants: m.tenants.Admin, Webhooks: m.jobs.Client},
		Responses:    &responseapi.Handlers{Service: m.runs.responses, Files: gateway},
		Usage:        &usage.Handlers{Ledger: db.Usage(), Tenants: m.tenants.Admin, Keep: m.keepOutputs()},
		Activity:     &activity.Handlers{Store: db.Activity(), Names: m.tenants.Admin},
		Tokens:       &token.Handlers{Service: &tokens.Service{Tokens: tenant.NewTokens(db.Tenants(), authority), Sessions: db.Sessions(), Sandboxes: directory}},
		Threads:      &thread.Handlers{Threads: m.threads.Catalog, Folders: m.storage, Signed: &signed.Files{Signer: box, Keys: authority}},
		Tools:        &tool.Handlers{ExecuteCode: m.tools.executeCode, Tools: m.tools.Set, MCP: mcp},
		Sandboxes:    &sandbox.Handlers{Service: named},
		Environments: &environment.Handlers{Service: envs},
		Models:       &modelapi.Handlers{Catalog: m.models.Catalog, Tenants: m.tenants.Admin},
		Agents:       &agentapi.Handlers{Service: agentService},
		Sessions:     &sessionapi.Handlers{Service: conversations, Streams: streams, Outputs: gateway},
		Skills:       &skillapi.Handlers{Service: &skills.Service{Store: db.Skills(), Limits: skill.Limits{Skills: cfg.MaxSkills, Bytes: int64(cfg.MaxSkillBytes)}}},
		Vaults:       &vaultapi.Handlers{Service: vaultService},
		Files:        &fileapi.Handlers{Files: m.files.Service, Conversations: conversations, Outputs: gateway},
		Web:          &webapi.Handlers{Web: m.web.Service},
		Admin:        &admin.Handlers{Tenants: m.tenants.Admin, Environments: envs, Trail: db.Audit(), Verifier: audit.NewSealer(db.Audit()), Caps: m.tools.breakers, Models: m.models.Catalog},
	}
	handlers.Approvals = &approval.Handlers{Service: m.runs.approvals, Within: authority.Within, Cover: gateway.Cover}
	handlers.Tools.Own = conversations.Own
	handlers.Managed = &anthropic.Handlers{Agents: agentService, Streams: streams, Conversations: conversations, Vaults: vaultService, Files: m.files.Service, Environments: envs, Keys: authority}
	handlers.Containers = &openai.Handlers{Sandboxes: named}
	var services func(*http.Request) *http.Request
	if cfg.Cloudflare == "on" {
		handlers.Cloudflare = cloudflare.New(named)
	}
	if cfg.E2B == "on" {
		handlers.E2B = e2b.New(e2b.Config{Sandboxes: named, Keys: authority, Signer: box, Hosts: m.previews.Previews, Holders: db.Sandboxes()})
		m.e2b.Store(handlers.E2B)
		services = handlers.E2B.Services
		undo.Add(func(context.Context) error { handlers.E2B.Close(); return nil })
	}
	m.Server, err = httpapi.New(httpapi.Config{
		Operations: handlers.Operations(), CompatPath: anthropic.Path, Previews: m.previews.proxy, Services: services,
		Auth: authority, Tokens: authority, CORS: cfg.CORSOrigins, Repeats: db.Idempotency(), Record: directory.Record, Metrics: m.cfg.Registry, Log: m.log, Grace: cfg.ShutdownGrace,
		Ready: m.readiness.check, Room: m.disk.AdmitBytes, MaxConnections: maxConnections(), Servers: m.installation.servers, Streams: connections.StreamLimits{Token: cfg.StreamsPerToken, Key: cfg.StreamsPerKey, Tenant: cfg.StreamsPerTenant}, Drain: []func(){mcp.Drain, m.previews.proxy.Drain}, Expire: m.expire(),
		Client: func(r *http.Request) string { return proxies.Client(r).String() },
	})
	if err != nil {
		return err
	}
	stop, err := m.bus.ServeWeb(webcall.Service{Server: m.API(), Holders: authority, Reserve: m.reserve})
	if err != nil {
		return err
	}
	undo.Add(func(context.Context) error { stop(); return nil })
	return nil
}

// expire returns what ends the executions of this process; nil in a gateway, which runs none.
func (m *httpModule) expire() func() {
	if m.executor == nil {
		return nil
	}
	return m.executor.expire
}

// openMCP opens what offers the tools to clients of the Model Context Protocol.
func (m *httpModule) openMCP(proxies *clientip.Proxies, undo *module.Undo) (*mcp.Server, error) {
	s, err := mcp.New(mcp.Config{
		Tools: m.tools.Set, Pool: m.directory.Directory, Version: m.cfg.Version, Proxied: proxies.Proxied,
		Origins: m.cfg.Settings.MCPOrigins, Idle: m.cfg.Settings.MCPIdle, Log: m.log, Metrics: m.cfg.Registry,
		OpenStream: func(p *tenant.Principal) (func(), error) { return m.OpenStream(p) },
		Cancel: func(ctx context.Context, tenantID, traceID string) error {
			_, err := m.gateway.Cancel(ctx, tenantID, traceID)
			return err
		},
	})
	if err != nil {
		return nil, err
	}
	undo.Add(func(context.Context) error { s.Close(); return nil })
	return s, nil
}

// reserve holds the calls of programs to what may be spent.
func (m *httpModule) reserve(ctx context.Context, p *tenant.Principal, c *execution.WebCall, service string) (release func(), err error) {
	return m.runs.programs.Reserve(ctx, spending.ProgramCall{Tenant: p.Tenant.ID, TraceID: c.TraceID, Service: service, Left: c.Left, Budgeted: p.Tenant.MonthlyCost > 0})
}

// draining rejects new runs while the server shuts down.
func (m *httpModule) draining() error {
	if m.Server == nil { // it has not started
		return nil
	}
	return m.Draining()
}

// admitE2B refuses a request to a port of a sandbox that E2B's clients have the host of.
func (m *httpModule) admitE2B(r *http.Request, to *coresandbox.Sandbox) error {
	api := m.e2b.Load()
	if api == nil {
		return fault.New(fault.NotFound, "E2B's protocol is off")
	}
	return api.Admit(r, to)
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
