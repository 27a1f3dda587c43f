package app

import (
	"context"

	"github.com/atoll-run/atoll/internal/app/module"
)

// adminKeyModule makes the first key that administers.
type adminKeyModule struct {
	*process
	records *recordsModule

	key string // "" unless this start made it
}

// Start implements module.Part.
func (m *adminKeyModule) Start(ctx context.Context, _ *module.Undo) (err error) {
	m.key, err = m.records.setup().AdminKey(ctx, m.cfg.KeepAdminKey)
	return err
}
