package app

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// identityModule reads this server's name on the bus and in the records. The first start makes it.
type identityModule struct {
	*process

	id string // the same after every restart
}

// Start implements module.Part.
func (m *identityModule) Start(context.Context, *module.Undo) error {
	path := m.path("executor-id")
	kept, err := os.ReadFile(path)
	if m.id = strings.TrimSpace(string(kept)); err == nil && m.id != "" {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	m.id = tenant.NewID("exe")
	return os.WriteFile(path, []byte(m.id+"\n"), 0o600)
}
