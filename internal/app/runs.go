package app

import (
	"context"
	"errors"
	"time"

	"github.com/atoll-run/atoll/internal/agent/admission"
	"github.com/atoll-run/atoll/internal/agent/approval"
	"github.com/atoll-run/atoll/internal/agent/conversation"
	"github.com/atoll-run/atoll/internal/agent/grader"
	"github.com/atoll-run/atoll/internal/agent/handoff"
	"github.com/atoll-run/atoll/internal/agent/interpreter"
	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/agent/mcptool"
	"github.com/atoll-run/atoll/internal/agent/pooltool"
	"github.com/atoll-run/atoll/internal/agent/response"
	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/agent/skilltool"
	"github.com/atoll-run/atoll/internal/agent/webtool"
	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/core/container"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/ratelimit"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/usage"
)

// runsModule makes what drives runs, and the services of sessions, responses and approvals.
type runsModule struct {
	*process
	installation *installationModule
	identity     *identityModule
	records      *recordsModule
	bus          *busModule
	files        *filesModule
	images       *imageQuestionsModule
	webhooks     *webhooksModule
	gateway      *gatewayModule
	directory    *directoryModule
	models       *modelsModule
	web          *webModule
	remotes      *remotesModule
	tools        *toolsModule

	*loop.Loop
	conversations *conversation.Service
	responses     *response.Service
	approvals     *approval.Service
	programs      *usage.Programs // holds the calls of programs to what may be spent

	// The table sets these.
	poke     func()       // delivers notices of sessions now
	draining func() error // rejects new runs while the server shuts down
}

// Start implements module.Part.
func (m *runsModule) Start(context.Context, *module.Undo) error {
	db, authority := m.records.db, m.records.authority
	rates := ratelimit.NewModels(time.Now, m.installation.servers)
	db.OnChange(m.bus.News().Changed)
	budget := usage.NewBudget(db.Usage().CheckCost)
	m.programs = &usage.Programs{Budget: budget, Prices: m.runPrices().Tools, Calls: func(ctx context.Context, tenant, traceID string) (map[string]int, error) {
		now := time.Now()
		return db.Usage().Calls(ctx, tenant, traceID, now.Add(-m.cfg.Settings.MaxTimeout-time.Minute), now.Add(time.Minute))
	}}
	skills := &skilltool.Skills{Folders: db.Skills(), Events: db.Sessions()}
	handoffs := &handoff.Handoffs{Store: db.Runs(), Threads: db.Sessions(), LetGo: func(ctx context.Context, r *run.Run) {
		if err := m.releaseSandbox(ctx, r); err != nil {
			m.log.WarnContext(ctx, "cannot delete the sandbox of a hand-off", "run", string(r.ID), "error", err)
		}
	}}
	m.Loop = loop.New(loop.Config{
		Store: db.Runs(), Models: m.models.Catalog, Events: m.bus.RunEvents(m.records.box), News: m.bus.News(), Log: m.log, Holder: m.identity.id,
		LetGo: m.releaseSandbox, Conversation: db.Sessions().Conversation,
		Forget: func(ctx context.Context, id run.ID) error { return m.gateway.Forget(ctx, string(id)) },
		Handlers: map[string]loop.Handler{
			sandboxtool.Handler: &sandboxtool.Sandbox{Runner: m.gateway.Gateway, Callers: authority, Ledger: db.Usage(), Services: m.web.Services(), Vaults: db.Vaults(), Extras: m.images.extras, Programs: skilltool.Programs()},
			pooltool.Handler:    m.pool(),
			webtool.Handler:     &webtool.Web{Service: m.web.Service, Callers: authority},
			mcptool.Handler:     m.remotes.Tools,
			skilltool.Handler:   skills,
			handoff.Handler:     handoffs,
			interpreter.Name:    &interpreter.Interpreter{Sandboxes: m.directory.Directory, Callers: authority, Policies: m.gateway.Gateway},
		},
		Check: skills.Check, Grade: grader.Outcome,
		Ended: func(r *run.Run) {
			if r.Session != "" {
				m.conversations.Wake()
				m.poke()
			}
		},
		Prices: m.runPrices(), Budget: budget, Spent: db.Tenants().TokenSpent,
		Room: func(ctx context.Context, r *run.Run) error {
			p, err := authority.Entrant(ctx, r.Tenant, r.Key, r.Environment)
			if k := fault.KindOf(err); k == fault.Unauthorized || k == fault.Forbidden || k == fault.NotFound {
				return nil // the calls are refused for that
			}
			if err != nil {
				return err
			}
			return m.gateway.Room(ctx, &p, db.Usage(), r.Keep > 0)
		},
		Used: func(r *run.Run, model string, tokens int64) { rates.Use(r.Tenant, r.Key, model, tokens) },
	})
	cfg := m.cfg.Settings
	gate := &admission.Gate{
		Models: m.models.Catalog, Rates: rates, Budget: budget.Check, Stopping: m.draining,
		Space: func(ctx context.Context, caller *tenant.Principal, kept bool) error {
			return m.gateway.Room(ctx, caller, db.Usage(), kept)
		},
	}
	m.conversations = conversation.New(conversation.Config{
		Store: db.Sessions(), Agents: db.Agents(), Skills: db.Skills(), Vaults: db.Vaults(), Files: m.files.Service, Runs: m.Loop, Records: db.Runs(),
		Gate: gate, MCP: m.remotes.Tools, Web: m.web.Service, Services: m.web.Services(), Pool: m.pool(), Sandboxes: m.directory.Directory, Images: m.images.preparer, EndTurn: m.gateway.EndTurn,
		Enter: authority.Enter, Entrant: authority.Entrant, CheckWebhook: m.webhooks.CheckURL, Told: m.poke,
		Max: cfg.MaxSessions, MaxUnderWay: cfg.MaxResponses, Within: cfg.ConfirmationTime, Keep: cfg.KeepResponses, RetryFor: &cfg.ModelRetryFor, Log: m.log,
	})
	handoffs.Runs, handoffs.Planner = m.Loop, m.conversations
	m.responses = response.New(response.Config{
		Runs: m.Loop, Records: db.Runs(), Gate: gate, MCP: m.remotes.Tools, Web: m.web.Service, Seal: m.records.box, Containers: m.directory.Directory, Services: m.web.Services(),
		Keep: cfg.KeepResponses, Within: cfg.ConfirmationTime, RetryFor: &cfg.ModelRetryFor, MaxUnderWay: cfg.MaxResponses, Log: m.log,
	})
	m.approvals = approval.New(approval.Config{Store: db.Approvals(), Conversations: m.conversations, Responses: m.responses, Entrant: authority.Entrant, Log: m.log})
	return nil
}

// pool gives agents the named sandboxes of their sessions.
func (m *runsModule) pool() *pooltool.Pool {
	return &pooltool.Pool{Set: m.tools.Set, Callers: m.records.authority, Keeper: m.gateway.Gateway, Ledger: m.records.db.Usage(), Services: m.web.Services()}
}

// releaseSandbox ends the sandbox of a conversation that no response goes on with, and its container.
func (m *runsModule) releaseSandbox(ctx context.Context, r *run.Run) error {
	p, err := m.records.authority.Entrant(ctx, r.Tenant, r.Key, r.Environment)
	if err != nil {
		return err
	}
	err = m.gateway.EndTurn(ctx, &p, "", r.Sandbox)
	if _, none := m.directory.Get(ctx, &p, container.Session, r.Sandbox); none != nil {
		return err
	}
	return errors.Join(err, m.directory.Destroy(ctx, &p, container.Session, r.Sandbox))
}
