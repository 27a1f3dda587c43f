package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/agent/admission"
	"github.com/atoll-run/atoll/internal/agent/approval"
	"github.com/atoll-run/atoll/internal/agent/conversation"
	"github.com/atoll-run/atoll/internal/agent/grader"
	"github.com/atoll-run/atoll/internal/agent/handoff"
	"github.com/atoll-run/atoll/internal/agent/interpreter"
	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/agent/mcpclient"
	"github.com/atoll-run/atoll/internal/agent/mcptool"
	"github.com/atoll-run/atoll/internal/agent/pooltool"
	"github.com/atoll-run/atoll/internal/agent/response"
	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/agent/skilltool"
	"github.com/atoll-run/atoll/internal/agent/token"
	"github.com/atoll-run/atoll/internal/agent/webtool"
	"github.com/atoll-run/atoll/internal/app/config"
	"github.com/atoll-run/atoll/internal/core/container"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/ratelimit"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/usage"
)

// openRemotes makes what calls tools of MCP servers that callers name.
func (s *Server) openRemotes(context.Context) error {
	allow, err := outbound.Parse(s.cfg.Settings.MCPAllow)
	if err != nil {
		return fmt.Errorf("mcp_allow: %w", err)
	}
	s.allow.mcp = allow
	s.mcpClient = mcpclient.New(allow, s.cfg.Version)
	s.later(func(context.Context) error { s.mcpClient.Close(); return nil })
	tokens := &token.Source{Store: s.db.Vaults(), Client: s.mcpClient.HTTP(), Check: s.mcpClient.CheckURL}
	s.mcp = mcptool.New(mcptool.Config{Client: s.mcpClient, Seal: s.box, Callers: s.authority, Record: s.directory.Record, Token: tokens.Token, Cover: s.gateway.Cover})
	return nil
}

// openRuns makes what drives runs.
func (s *Server) openRuns(context.Context) error {
	s.rates = ratelimit.NewModels(time.Now)
	s.db.OnChange(s.bus.News().Changed)
	s.budget = usage.NewBudget(s.db.Usage().CheckCost)
	s.openPrograms()
	skills := &skilltool.Skills{Folders: s.db.Skills(), Events: s.db.Sessions()}
	handoffs := &handoff.Handoffs{Store: s.db.Runs(), Threads: s.db.Sessions(), LetGo: func(ctx context.Context, r *run.Run) {
		if err := s.letGo(ctx, r); err != nil {
			s.log.WarnContext(ctx, "cannot delete the sandbox of a hand-off", "run", string(r.ID), "error", err)
		}
	}}
	s.runs = loop.New(loop.Config{
		Store: s.db.Runs(), Models: s.models, Events: s.bus.RunEvents(s.box), News: s.bus.News(), Log: s.log, Holder: s.id,
		LetGo: s.letGo, Conversation: s.db.Sessions().Conversation,
		Forget: func(ctx context.Context, id run.ID) error { return s.gateway.Forget(ctx, string(id)) },
		Handlers: map[string]loop.Handler{
			sandboxtool.Handler: &sandboxtool.Sandbox{Runner: s.gateway, Callers: s.authority, Ledger: s.db.Usage(), Services: s.web.Services(), Vaults: s.db.Vaults(), Extras: s.extras(), Programs: skilltool.Programs()},
			pooltool.Handler:    s.pool(),
			webtool.Handler:     &webtool.Web{Service: s.web, Callers: s.authority},
			mcptool.Handler:     s.mcp,
			skilltool.Handler:   skills,
			handoff.Handler:     handoffs,
			interpreter.Name:    &interpreter.Interpreter{Sandboxes: s.directory, Callers: s.authority, Policies: s.gateway},
		},
		Check: skills.Check, Grade: grader.Outcome,
		Ended: func(r *run.Run) {
			if r.Session != "" {
				s.conversations.Wake()
				s.jobs.Poke()
			}
		},
		Prices: s.runPrices(), Budget: s.budget, Spent: s.db.Tenants().TokenSpent,
		Room: func(ctx context.Context, r *run.Run) error {
			p, err := s.authority.Entrant(ctx, r.Tenant, r.Key, r.Environment)
			if k := fault.KindOf(err); k == fault.Unauthorized || k == fault.Forbidden || k == fault.NotFound {
				return nil // the calls are refused for that
			}
			if err != nil {
				return err
			}
			return s.gateway.Room(ctx, &p, s.db.Usage(), r.Keep > 0)
		},
		Used: func(r *run.Run, model string, tokens int64) { s.rates.Use(r.Tenant, r.Key, model, tokens) },
	})
	cfg := s.cfg.Settings
	s.gate = &admission.Gate{
		Models: s.models, Rates: s.rates, Budget: s.budget.Check, Stopping: s.stopping,
		Space: func(ctx context.Context, caller *tenant.Principal, kept bool) error {
			return s.gateway.Room(ctx, caller, s.db.Usage(), kept)
		},
	}
	s.conversations = conversation.New(conversation.Config{
		Store: s.db.Sessions(), Agents: s.db.Agents(), Skills: s.db.Skills(), Vaults: s.db.Vaults(), Files: s.files, Runs: s.runs, Records: s.db.Runs(),
		Gate: s.gate, MCP: s.mcp, Web: s.web, Services: s.web.Services(), Pool: s.pool(), Sandboxes: s.directory, Images: s.preparer(), EndTurn: s.gateway.EndTurn,
		Enter: s.authority.Enter, Entrant: s.authority.Entrant, CheckWebhook: s.webhooks.CheckURL, Told: func() { s.jobs.Poke() },
		Max: cfg.MaxSessions, MaxUnderWay: cfg.MaxResponses, Within: cfg.ConfirmationTime, Keep: cfg.KeepResponses, RetryFor: &cfg.ModelRetryFor, Log: s.log,
	})
	handoffs.Runs, handoffs.Planner = s.runs, s.conversations
	s.responses = response.New(response.Config{
		Runs: s.runs, Records: s.db.Runs(), Gate: s.gate, MCP: s.mcp, Containers: s.directory, Services: s.web.Services(),
		Keep: cfg.KeepResponses, Within: cfg.ConfirmationTime, RetryFor: &cfg.ModelRetryFor, MaxUnderWay: cfg.MaxResponses, Log: s.log,
	})
	s.approvals = approval.New(approval.Config{Store: s.db.Approvals(), Conversations: s.conversations, Responses: s.responses, Entrant: s.authority.Entrant, Log: s.log})
	return nil
}

// stopping rejects new runs while the HTTP server shuts down.
func (s *Server) stopping() error {
	if s.http == nil {
		return nil
	}
	return s.http.Draining()
}

// letGo ends the sandbox of a conversation that no response goes on with, and its container.
func (s *Server) letGo(ctx context.Context, r *run.Run) error {
	p, err := s.authority.Entrant(ctx, r.Tenant, r.Key, r.Environment)
	if err != nil {
		return err
	}
	err = s.gateway.EndTurn(ctx, &p, "", r.Sandbox)
	if _, none := s.directory.Get(ctx, &p, container.Session, r.Sandbox); none != nil {
		return err
	}
	return errors.Join(err, s.directory.Destroy(ctx, &p, container.Session, r.Sandbox))
}

// runPrices are what runs are charged in money beside their models' tokens.
func (s *Server) runPrices() loop.Prices {
	cfg := s.cfg.Settings
	tools := map[string]model.Money{}
	for tool, text := range cfg.PriceTools {
		dollars, _ := config.ParseToolPrice(text) // it was checked
		tools[tool] = usage.MoneyOf(dollars)
	}
	return loop.Prices{Tools: tools, Window: usage.MoneyOf(cfg.PriceWindow)}
}

// startRuns goes on with the runs of an earlier process, and drives new ones.
func (s *Server) startRuns(ctx context.Context) error {
	s.later(func(context.Context) error { s.runs.Stop(); return nil })
	queued, stop := context.WithCancel(context.WithoutCancel(ctx))
	var looking sync.WaitGroup
	s.later(func(context.Context) error { stop(); looking.Wait(); return nil })
	looking.Go(func() { s.conversations.Run(queued) })
	looking.Go(func() { s.approvals.Run(queued) })
	return s.runs.Start(ctx)
}

// keepOutputs is the longest that anything is kept which counts for a plan's max_outputs:
// files of responses stay as long as those.
func (s *Server) keepOutputs() time.Duration {
	return max(s.cfg.Settings.KeepFor, s.cfg.Settings.KeepResponses)
}
