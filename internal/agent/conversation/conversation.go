// Package conversation holds the use cases of sessions: it creates sessions, takes what clients say to
// them, plans, admits, starts, queues, answers, interrupts and settles turns, and plans the parts of
// agents that others hand work to.
//
// Every API calls the same Service. So do hand-offs and the queue of turns.
package conversation

import (
	"context"
	"log/slog"
	"time"

	"github.com/atoll-run/atoll/internal/agent/admission"
	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/agent/mcptool"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/upload"
	"github.com/atoll-run/atoll/internal/core/vault"
	"github.com/atoll-run/atoll/internal/core/web"
)

// Config configures a Service.
type Config struct {
	Store  session.Store
	Agents agent.Store
	Skills skill.Store
	Vaults vault.Store
	Files  *upload.Service // nil without uploaded files
	Runs   *loop.Loop
	// Records finds the run of a shared file.
	Records interface {
		Run(ctx context.Context, t tenant.ID, id run.ID) (*run.Run, error)
	}
	Gate *admission.Gate
	MCP  *mcptool.Tools
	Web  *web.Service
	// Services are the web services that code in a sandbox may call.
	Services []string
	// Pool lists the tools of named sandboxes, and Sandboxes ends them; nil without named sandboxes.
	Pool interface {
		Tools(agent string) ([]run.Tool, error)
	}
	Sandboxes Sandboxes
	// Images makes extras of the default image that skills need; nil if the server makes none.
	Images interface {
		// Prepare has the image with these extras made. It returns at once, and says so while the image
		// is not there: "" if it is, or cannot be made.
		Prepare(ctx context.Context, image string, extras []string) (string, error)
	}
	// EndTurn ends the sandbox that the calls of a session or thread share.
	EndTurn func(ctx context.Context, p *tenant.Principal, agent, turn string) error
	// Enter moves a principal to an environment, and Entrant returns who started a run, as a
	// tenant.Authority does.
	Enter        func(ctx context.Context, p *tenant.Principal, environment string) error
	Entrant      func(ctx context.Context, t tenant.ID, key, environment string) (tenant.Principal, error)
	CheckWebhook func(ctx context.Context, raw string) error
	Told         func() // a session may have an event for its webhook

	Max         int            // sessions of a tenant; 0 for no limit
	MaxUnderWay int            // runs of a tenant; 0 for no limit
	Within      time.Duration  // for which calls wait for the client unless the agent's policy says; 0 for no limit
	Keep        time.Duration  // of the runs of turns
	RetryFor    *time.Duration // run.Request.RetryFor unless the agent says
	Log         *slog.Logger
}

// Service holds the sessions of all tenants.
type Service struct {
	Config
	wake chan struct{}
}

// New returns a Service. Queued turns start once Run is called.
func New(cfg Config) *Service { return &Service{cfg, make(chan struct{}, 1)} }

// Find returns a session of a tenant.
func (s *Service) Find(ctx context.Context, t tenant.ID, id session.ID) (*session.Session, error) {
	if !id.Valid() {
		return nil, session.ErrNotFound
	}
	return s.Store.Get(ctx, t, id)
}

// Thread returns a thread of a session.
func (s *Service) Thread(ctx context.Context, t tenant.ID, id session.ID, thread string) (*session.Thread, error) {
	of, err := s.Find(ctx, t, id)
	if err != nil {
		return nil, err
	}
	if !session.ValidThread(thread) {
		return nil, session.ErrNoThread
	}
	return s.Store.Thread(ctx, of.Tenant, of.ID, thread)
}

// ArchiveThread archives a thread that has ended.
func (s *Service) ArchiveThread(ctx context.Context, p *tenant.Principal, id session.ID, thread string) (*session.Thread, error) {
	t, err := s.Thread(ctx, p.Tenant.ID, id, thread)
	if err != nil {
		return nil, err
	}
	return s.Store.ArchiveThread(ctx, t.Tenant, t.Session, t.ID, change(p, t.Session, "archived the thread "+t.ID))
}

// change records a change of a session.
func change(p *tenant.Principal, id session.ID, now string) tenant.PolicyEvent {
	return p.Event("session/"+string(id), "", now)
}
