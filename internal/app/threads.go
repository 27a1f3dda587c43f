package app

import (
	"context"
	"path/filepath"
	"time"

	"github.com/atoll-run/atoll/internal/core/thread"
	"github.com/atoll-run/atoll/internal/node/cleanup"
	"github.com/atoll-run/atoll/internal/node/engine"
	"github.com/atoll-run/atoll/internal/node/executor"
	"github.com/atoll-run/atoll/internal/node/home"
	"github.com/atoll-run/atoll/internal/node/idmap"
)

// openThreads opens what saved homes are kept in, which needs no sandbox, and the
// homes of this machine's executor, which does.
func (s *Server) openThreads(context.Context) error {
	owners, unmapped := idmap.Find()
	homes, err := home.NewStore(home.Config{Blobs: s.blobs, Key: s.box.Threads(), Owners: owners})
	if err != nil {
		return err
	}
	s.threads = thread.New(thread.Config{
		Records: s.db.Threads(), Homes: home.States{Store: homes}, Keep: s.cfg.Settings.KeepThreads, Log: s.log,
		Deleted: func(tenant, id string) {
			if err := s.bus.ThreadDeleted(tenant, id); err != nil { // forgetThreads finds it
				s.log.Warn("cannot notify other machines of a deleted thread", "error", err)
			}
		},
	})
	if unmapped != nil || s.cfg.Platform.OCI != "" {
		s.homeless = unmapped
		return nil // the engine says why when a thread is asked for
	}
	// Homes move between the cache and the folders that sandboxes mount, by a
	// rename, which works within one mount.
	folder := s.folder()
	if err := home.Secure(folder); err != nil {
		s.log.Warn("cannot mount home directories of threads", "reason", err)
		s.homeless = err
		return nil
	}
	s.later(func(context.Context) error { return home.Unmount(folder) })
	retries, err := cleanup.New(s.log, s.cfg.Registry)
	if err != nil {
		return err
	}
	cache, err := home.OpenCache(home.CacheConfig{
		Store: homes, Dir: filepath.Join(folder, "threads"), Bytes: int64(s.cfg.Settings.ThreadCache), Log: s.log, Cleanup: retries,
	})
	if err != nil {
		retries.Close()
		return err
	}
	s.later(func(context.Context) error { retries.Close(); cache.Close(); return nil })
	s.homes = engine.Threads{Cache: cache}
	forget := func(tenant, id string) {
		if err := cache.Forget(home.Ref{Tenant: tenant, ID: id}); err != nil {
			s.log.Warn("cannot remove the cached home of a deleted thread", "error", err)
		}
	}
	stop, err := s.bus.DeletedThreads(forget)
	if err != nil {
		return err
	}
	s.later(func(context.Context) error { stop(); return nil })
	return nil
}

// forgetEvery is how often cached homes are compared with the records: threads also
// expire, go with their tenants, and are deleted while this machine is away.
const forgetEvery = 10 * time.Minute

// forgetThreads removes cached homes of threads that do not exist anymore, until ctx ends.
func (s *Server) forgetThreads(ctx context.Context) {
	if s.homes.Cache == nil {
		return
	}
	tick := time.NewTicker(forgetEvery)
	defer tick.Stop()
	for {
		for _, r := range s.homes.Cache.Unused() {
			exists, err := s.threads.Exists(ctx, r.Tenant, r.ID)
			if err == nil && !exists {
				err = s.homes.Cache.Forget(r)
			}
			if err != nil {
				s.log.Warn("cannot compare cached homes with the database", "error", err)
				break
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// folder is this process's part of the folder that sandboxes mount from, on disk.
func (s *Server) folder() string { return filepath.Join(s.cfg.Platform.Disk, s.cfg.Platform.Name) }

// homesOf is what the executor takes homes from, nil where there are none.
func (s *Server) homesOf() executor.Homes {
	if s.homes.Cache == nil {
		return nil // not (engine.Threads){}
	}
	return s.homes
}
