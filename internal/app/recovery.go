package app

import (
	"context"
	"sync"

	"github.com/atoll-run/atoll/internal/app/module"
)

// recoveryModule continues what an earlier process left on this machine: it takes over its executions
// and named sandboxes. Then it drives the loops of the machine.
type recoveryModule struct {
	*process
	records   *recordsModule
	homes     *homesModule
	engine    *engineModule
	packages  *packagesModule
	executor  *executorModule
	sandboxes *sandboxesModule
	gateway   *gatewayModule
}

// Start implements module.Part.
func (m *recoveryModule) Start(ctx context.Context, undo *module.Undo) error {
	loop, loops := startLoops(ctx, undo)
	if err := m.executor.Recover(ctx, m.executor.presence); err != nil {
		return err
	}
	takeOver, err := m.sandboxes.BeginRecovery(ctx)
	if err != nil {
		return err
	}
	loops.Go(func() { // a thousand take half a minute, in which the server can serve others
		if err := takeOver(loop); err != nil && loop.Err() == nil {
			m.log.Error("cannot take over the named sandboxes", "error", err)
		}
	})
	if m.records != nil {
		loops.Go(func() { m.warmUp(loop) })
	}
	if m.packages.provisioner != nil {
		loops.Go(func() { m.packages.provisioner.Run(loop) })
	}
	loops.Go(func() { m.sandboxes.Run(loop) })
	loops.Go(func() { m.homes.forget(loop) })
	return nil
}

// startLoops returns the context and the group of a module's loops. The undo ends the context and
// waits for the loops.
func startLoops(ctx context.Context, undo *module.Undo) (context.Context, *sync.WaitGroup) {
	loop, stop := context.WithCancel(context.WithoutCancel(ctx))
	var loops sync.WaitGroup
	undo.Add(func(context.Context) error {
		stop()
		loops.Wait()
		return nil
	})
	return loop, &loops
}
