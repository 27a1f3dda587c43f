package server

import (
	"context"

	"github.com/atoll-run/atoll/internal/owner"
	"github.com/atoll-run/atoll/internal/thread"
	"github.com/atoll-run/atoll/internal/thread/catalog"
)

// openThreads opens what saved homes are kept in. Reading and editing them needs
// no sandbox; programs have them only where the engine can mount one.
func (s *Server) openThreads(context.Context) (err error) {
	owners, err := owner.Find()
	if err != nil {
		owners = owner.Map{} // files of homes belong to nobody here; none is restored
	}
	if s.homes, err = thread.NewStore(thread.Config{Blobs: s.blobs, Key: s.box.Threads(), Owners: owners}); err != nil {
		return err
	}
	s.threads = catalog.New(catalog.Config{Records: s.db.Threads(), Homes: s.homes, Keep: s.cfg.Settings.KeepThreads, Log: s.log})
	return nil
}
