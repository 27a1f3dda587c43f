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
	return disk.RemoveTree(filepath.Join(h.homes, string(id)))
}

// sweepHomes removes the folders of sandboxes that are no more: an earlier
// process was ended before it could. Of those whose run is to be taken over the
// home stays.
func (h *host) sweepHomes() error {
	if h.homes == "" {
		return nil
	}
	entries, err := os.ReadDir(h.homes)
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
		if err := disk.RemoveTree(filepath.Join(h.homes, e.Name())); err != nil {
			return err
		}
	}
	return nil
}
