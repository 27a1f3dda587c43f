package app

import (
	"context"

	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/control/directory"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// directoryModule finds named sandboxes, of this machine and of others.
type directoryModule struct {
	*process
	identity  *identityModule
	records   *recordsModule
	sandboxes *sandboxesModule
	gateway   *gatewayModule

	*directory.Directory
}

// Start implements module.Part.
func (m *directoryModule) Start(context.Context, *module.Undo) error {
	m.Directory = directory.New(directory.Config{
		Local: m.sandboxes.Manager, Executor: m.identity.id, Peers: m.peers(), Store: m.records.db.Sandboxes(), Snapshots: m.records.db.Snapshots(), Prices: m.prices(),
		Refusals: m.records.refusals, Recordable: m.records.trail.Check, Text: m.gateway.Text,
	})
	return nil
}

// peers finds other machines. Only a shared database knows any.
func (m *directoryModule) peers() directory.Peers {
	if m.cfg.Settings.OwnRecords() {
		return nil
	}
	return unreachable{}
}

// unreachable rejects calls to sandboxes of other machines, which this server knows from records only.
type unreachable struct{}

// Node implements directory.Peers.
func (unreachable) Node(_ context.Context, executor string) (sandbox.Node, error) {
	return nil, fault.New(fault.Unavailable, "the sandbox is on another machine (executor %s); send the request to that machine's server", executor)
}
