package app

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/infra/trace"
)

// tracesModule sends spans, if the environment or the settings name a collector.
type tracesModule struct{ *process }

// Start implements module.Part.
func (m *tracesModule) Start(ctx context.Context, undo *module.Undo) error {
	stop, err := trace.Setup(ctx, trace.Config{
		Endpoint: m.cfg.Settings.TraceEndpoint, Version: m.cfg.Version, Getenv: m.cfg.Getenv, Log: m.log,
	})
	if err != nil {
		return err
	}
	undo.Add(func(ctx context.Context) error {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), tracesWait)
		defer cancel()
		if err := stop(last); err != nil { // no work depends on it
			m.log.Warn("cannot send the last traces", "error", err)
		}
		return nil
	})
	return nil
}

// tracesWait is how long a shutdown waits for a collector to accept its last spans.
const tracesWait = 3 * time.Second
