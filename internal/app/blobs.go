package app

import (
	"context"
	"fmt"

	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/infra/blob"
	_ "github.com/atoll-run/atoll/internal/infra/blob/provider" // gs:// and azblob://
)

// blobsModule opens the blob store.
type blobsModule struct {
	*process
	identity *identityModule
	shared   *sharedModule

	*blob.Store
	claim string // of the installation on a shared blob store; "" for one in the data folder
}

// Start implements module.Part.
func (m *blobsModule) Start(ctx context.Context, undo *module.Undo) (err error) {
	url := m.cfg.Settings.Blobs
	if url == "" {
		url = "file://" + m.path("blobs")
	}
	if m.Store, err = blob.Open(ctx, url); err != nil {
		return err
	}
	undo.Add(func(context.Context) error { return m.Close() })
	if m.cfg.Settings.Blobs != "" {
		if m.claim, err = m.Claim(ctx, m.shared.id, m.identity.id); err != nil {
			return fmt.Errorf("blobs: %w", err)
		}
	}
	return nil
}
