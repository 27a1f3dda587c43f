package app

import (
	"context"

	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/infra/bus"
	"github.com/atoll-run/atoll/internal/infra/trace"
)

// busModule connects to NATS, or starts the embedded NATS server.
type busModule struct {
	*process
	identity *identityModule
	shared   *sharedModule

	*bus.Bus
}

// Start implements module.Part.
func (m *busModule) Start(ctx context.Context, undo *module.Undo) (err error) {
	cfg := m.cfg.Settings
	installation, replicas := "", 0
	if !cfg.Alone() {
		installation, replicas = m.shared.id, cfg.NATSReplicas
	}
	m.Bus, err = bus.Open(ctx, bus.Config{
		URL: cfg.NATS, Credentials: cfg.NATSCreds, Dir: m.path("nats"), Name: m.identity.id, Installation: installation, Replicas: replicas,
		MaxBytes: int64(cfg.LogSize), MaxRunBytes: int64(cfg.LogPerRun), MaxAge: cfg.LogAge, Log: m.log,
		Inject: inject, Extract: extract,
	})
	if err != nil {
		return err
	}
	undo.Add(func(context.Context) error { return m.Close() })
	if !cfg.Gateway() {
		return nil
	}
	stop, err := m.AnswerInstallation()
	if err != nil {
		return err
	}
	undo.Add(func(context.Context) error { stop(); return nil })
	return nil
}

// inject and extract carry the context of a trace over the bus.
func inject(ctx context.Context) map[string]string {
	var out map[string]string
	for name, values := range trace.Header(ctx) {
		if out == nil {
			out = map[string]string{}
		}
		out[name] = values[0]
	}
	return out
}

func extract(ctx context.Context, headers map[string]string) context.Context {
	if !trace.On() {
		return ctx
	}
	carried := make(map[string][]string, len(headers))
	for name, value := range headers {
		carried[name] = []string{value}
	}
	return trace.Extract(ctx, carried)
}
