package app

import (
	"context"

	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/control/directory"
)

// directoryModule finds named sandboxes, of this machine and of others.
type directoryModule struct {
	*process
	identity  *identityModule
	records   *recordsModule
	sandboxes *sandboxesModule
	gateway   *gatewayModule
	nodes     *nodesModule

	*directory.Directory
}

// Start implements module.Part.
func (m *directoryModule) Start(context.Context, *module.Undo) error {
	c := directory.Config{
		Executor: m.identity.id, Peers: m.peers(), Store: m.records.db.Sandboxes(), Snapshots: m.records.db.Snapshots(), Prices: m.prices(),
		Refusals: m.records.refusals, Recordable: m.records.trail.Check, Text: m.gateway.Text, Fold: m.records.executorEvents().FoldRecord, Log: m.log,
	}
	if m.sandboxes != nil {
		c.Local = m.sandboxes.Manager
	}
	m.Directory = directory.New(c)
	return nil
}

// peers finds other machines. Only a shared database knows any.
func (m *directoryModule) peers() directory.Peers {
	if m.cfg.Settings.OwnRecords() {
		return nil
	}
	return m.nodes
}
