package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/cleanup"
	"github.com/atoll-run/atoll/internal/node/disk"
	"github.com/atoll-run/atoll/internal/node/executor"
	"github.com/atoll-run/atoll/internal/node/idmap"
	"github.com/atoll-run/atoll/internal/node/warm"
)

// homesFolder is where sandboxes find other home directories than their image's:
// on the disk of the data folder, since a home is moved there and back.
func homesFolder(p Platform, disk string) (string, error) {
	if p.OCI != "" {
		return "", errors.New("runtime is oci, and its sandboxes mount nothing once they run; runtime gvisor's do")
	}
	if _, err := idmap.Find(); err != nil {
		return "", err
	}
	return filepath.Join(disk, "homes"), nil
}

// Destroy implements runtime.Runtime, for sandboxes that no warm.Sandbox has open.
func (h *host) Destroy(ctx context.Context, id runtime.ID) error {
	if err := h.Runtime.Destroy(ctx, id); err != nil || h.homes == "" {
		return err
	}
	return errors.Join(warm.RemoveStorage(h.storage, id), disk.RemoveTree(filepath.Join(h.homes, string(id))))
}

// sweepHomes removes the home and storage folders of sandboxes that ended with an earlier
// process, except those in skip. It returns how many it could not remove.
func (h *host) sweepHomes(ctx context.Context, skip map[runtime.ID]bool) (failed int) {
	if h.homes == "" {
		return 0
	}
	return h.sweepEach(ctx, cleanup.Folder, h.homes, skip, func(id runtime.ID) error { return disk.RemoveTree(filepath.Join(h.homes, string(id))) }) +
		h.sweepEach(ctx, cleanup.Folder, h.storage, skip, func(id runtime.ID) error { return warm.RemoveStorage(h.storage, id) })
}

// sweepEach calls remove for each sandbox that has an entry in a folder. It spares runs
// that the next server takes over.
func (h *host) sweepEach(ctx context.Context, step cleanup.Step, folder string, skip map[runtime.ID]bool, remove func(runtime.ID) error) (failed int) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	if err != nil {
		h.cleanup.Count(step, folder, err)
		return 1
	}
	for _, e := range entries {
		id := runtime.ID(e.Name())
		if skip[id] || h.keep && executor.HasJob(filepath.Join(h.dir, e.Name())) {
			continue
		}
		if !h.cleanup.Try(ctx, step, e.Name(), func(context.Context) error { return remove(id) }) {
			failed++
		}
	}
	return failed
}
