package app

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/app/module"
)

// resultsModule records the results of executions, and ends executions that are lost. It also drives
// the deletion of tenants.
type resultsModule struct {
	*process
	bus      *busModule
	executor *executorModule
	gateway  *gatewayModule
	erasure  *erasureModule
}

// Start implements module.Part.
func (m *resultsModule) Start(ctx context.Context, undo *module.Undo) error {
	loop, loops := startLoops(ctx, undo)
	loops.Go(func() { m.erasure.Run(loop) })
	loops.Go(func() {
		if err := m.bus.Results(loop, m.gateway.Conclude); err != nil && loop.Err() == nil {
			m.log.Error("stopped recording results", "error", err)
		}
	})
	if m.cfg.Settings.Alone() {
		m.gateway.Sweep(ctx, time.Now(), m.executor.Complete())
	}
	loops.Go(func() {
		if err := m.gateway.Reconcile(loop, lostAfter); err != nil {
			m.log.Error("stopped looking for lost executions", "error", err)
		}
	})
	return nil
}
