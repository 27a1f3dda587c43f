package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/atoll-run/atoll/internal/core/runtime"
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

// sweepHomes removes the folders of sandboxes that are no more: an earlier
// process was ended before it could. Those of a run that is to be taken over stay.
func (h *host) sweepHomes() error {
	if h.homes == "" {
		return nil
	}
	return errors.Join(
		h.sweepFolders(h.homes, func(id runtime.ID) error { return disk.RemoveTree(filepath.Join(h.homes, string(id))) }),
		h.sweepFolders(h.storage, func(id runtime.ID) error { return warm.RemoveStorage(h.storage, id) }),
	)
}

// sweepFolders removes what a folder has of sandboxes that are no more.
func (h *host) sweepFolders(folder string, remove func(runtime.ID) error) error {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if h.keep && executor.HasJob(filepath.Join(h.dir, e.Name())) {
			continue
		}
		if err := remove(runtime.ID(e.Name())); err != nil {
			return err
		}
	}
	return nil
}
