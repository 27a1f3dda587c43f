package app

import (
	"context"

	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/control/gateway"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/redact"
)

// gatewayModule admits executions, offers them to executors and records their ends.
type gatewayModule struct {
	*process
	disk    *diskModule
	records *recordsModule
	bus     *busModule
	blobs   *blobsModule

	*gateway.Gateway

	poke func() // delivers webhooks now; set by the table
}

// Start implements module.Part.
func (m *gatewayModule) Start(context.Context, *module.Undo) error {
	cfg := m.cfg.Settings
	rules, err := redact.Except(nil)
	if err != nil {
		return err
	}
	c := gateway.Config{
		Store:   prompt{m.records.db.Executions(), m.poke},
		Runner:  m.bus.Runner(),
		Log:     m.bus.Log(),
		Starts:  m.bus.Starts(),
		Await:   func(traceID string) gateway.Waiter { return m.bus.Await(traceID) },
		Outputs: m.blobs.Store,
		Trail:   m.records.refusals,
		Disk:    m.disk.Admit,

		Recordable: m.records.trail.Check,

		Prices:     m.prices(),
		Rules:      rules,
		MaxTimeout: cfg.MaxTimeout,
		MaxOutput:  int64(cfg.MaxOutput),
		Keep:       m.keepOutputs(),
		Logger:     m.log,
		Metrics:    m.cfg.Registry,
	}
	if !cfg.Alone() { // executors without records need these
		c.ThreadKey, c.Signer = m.records.threadKey, m.records.box
	}
	m.Gateway, err = gateway.New(c)
	return err
}

// prompt is the store of executions. It starts the delivery of a webhook as soon as it has recorded
// the end of the execution.
type prompt struct {
	execution.Store
	poke func()
}

// Conclude implements execution.Store.
func (p prompt) Conclude(ctx context.Context, r execution.Result, follow func(*execution.Execution) execution.Consequences) (*execution.Execution, bool, error) {
	told := false
	e, first, err := p.Store.Conclude(ctx, r, func(e *execution.Execution) execution.Consequences {
		c := follow(e)
		told = c.Webhook
		return c
	})
	if err == nil && first && told {
		p.poke()
	}
	return e, first, err
}
