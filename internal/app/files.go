package app

import (
	"context"

	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/core/upload"
)

// filesModule opens the files that callers upload.
type filesModule struct {
	*process
	records *recordsModule
	blobs   *blobsModule

	*upload.Service
}

// Start implements module.Part.
func (m *filesModule) Start(context.Context, *module.Undo) error {
	cfg := m.cfg.Settings
	m.Service = &upload.Service{
		Store: m.records.db.Files(), Contents: upload.Contents{Blobs: m.blobs.Store, Seal: m.records.box}, Log: m.log,
		Limits: upload.Limits{Files: cfg.MaxFiles, Bytes: int64(cfg.MaxFileBytes), Size: int64(cfg.MaxFileSize)},
	}
	return nil
}
