package app

import (
	"context"

	"github.com/atoll-run/atoll/internal/app/module"
)

// sharedModule finds the id of the installation: in the records, or else by asking its gateways.
type sharedModule struct {
	*process
	records *recordsModule

	id string // the same for all servers of the installation
}

// Start implements module.Part.
func (m *sharedModule) Start(context.Context, *module.Undo) error {
	m.id = m.records.installation
	return nil
}
