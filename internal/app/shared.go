package app

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/infra/bus"
)

// sharedModule finds the id of the installation: in the records, or else by asking its gateways.
type sharedModule struct {
	*process
	identity *identityModule
	records  *recordsModule

	id string // the same for all servers of the installation
}

// findTime bounds the search for a gateway.
const findTime = 5 * time.Minute

// Start implements module.Part.
func (m *sharedModule) Start(ctx context.Context, _ *module.Undo) (err error) {
	if m.records != nil {
		m.id = m.records.installation
		return nil
	}
	cfg := m.cfg.Settings
	if m.id = cfg.Installation; m.id != "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, findTime)
	defer cancel()
	m.log.Info("asking the gateways for the installation")
	m.id, err = bus.FindInstallation(ctx, bus.Config{URL: cfg.NATS, Credentials: cfg.NATSCreds, Name: m.identity.id, Log: m.log})
	return err
}
