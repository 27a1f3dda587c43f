package app

import (
	"context"

	"github.com/atoll-run/atoll/internal/agent/interpreter"
	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/edge/httpapi/response"
)

// openRuns makes what drives runs.
func (s *Server) openRuns(context.Context) error {
	s.runs = loop.New(loop.Config{
		Store: s.db.Runs(), Models: s.models, Events: s.bus.RunEvents(s.box), Log: s.log, Holder: s.id,
		Forget: func(ctx context.Context, id run.ID) error { return s.gateway.Forget(ctx, string(id)) },
		Handlers: map[string]loop.Handler{
			sandboxtool.Handler: &sandboxtool.Sandbox{Runner: s.gateway, Callers: s.authority},
			interpreter.Name:    &interpreter.Interpreter{Sandboxes: s.directory, Callers: s.authority, Policies: s.gateway},
		},
	})
	return nil
}

// startRuns goes on with the runs of an earlier process, and drives new ones.
func (s *Server) startRuns(ctx context.Context) error {
	s.later(func(context.Context) error { s.runs.Stop(); return nil })
	return s.runs.Start(ctx)
}

func (s *Server) responses() *response.Handlers {
	return &response.Handlers{
		Loop: s.runs, Files: s.gateway, Store: s.db.Runs(), Models: s.models, Seal: s.box, Containers: s.directory,
		Keep: s.cfg.Settings.KeepResponses, MaxUnderWay: s.cfg.Settings.MaxResponses,
	}
}
