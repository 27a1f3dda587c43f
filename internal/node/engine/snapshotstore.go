package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/thread"
	"github.com/atoll-run/atoll/internal/node/disk"
	"github.com/atoll-run/atoll/internal/node/home"
	"github.com/atoll-run/atoll/internal/node/sandboxes"
)

// SnapshotStore keeps named sandboxes of an Engine in a store of folders.
type SnapshotStore struct {
	Engine *Engine
	Store  *home.Store
}

var _ sandboxes.SnapshotFiles = SnapshotStore{}

// settling bounds how often what changes is stored anew. Copies, and the kernels that
// wait for more of them, share files with the sandbox; a link made or removed looks
// like a change.
const settling = 30 * time.Second

// Save implements sandbox.SnapshotStore.
func (v SnapshotStore) Save(ctx context.Context, tenantID tenant.ID, id runtime.ID) (sandbox.StoredCopy, error) {
	h := v.Engine.host
	k := sandbox.StoredCopy{}
	data, err := os.ReadFile(filepath.Join(h.sandboxDir(id), checkpointDir, recordName))
	if err == nil {
		var rec checkpointRecord
		if err := json.Unmarshal(data, &rec); err != nil {
			return k, unusable("its record cannot be read: %v", err)
		}
		k.Checkpoint, k.Kernel = true, rec.Kernel
	} else if !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	origin, err := os.ReadFile(filepath.Join(h.sandboxDir(id), imageFile))
	if err != nil {
		return k, err
	}
	k.Image = string(origin)
	if k.Disk, err = disk.Measure(ctx, h.files(id), 1<<62); err != nil {
		return k, err
	}
	tree, err := v.Store.Save(ctx, tenantID, h.sandboxDir(id), nil, thread.Quota{})
	for end := time.Now().Add(settling); errors.Is(err, home.ErrChanged) && time.Now().Before(end) && ctx.Err() == nil; {
		tree, err = v.Store.Save(ctx, tenantID, h.sandboxDir(id), nil, thread.Quota{})
	}
	if errors.Is(err, home.ErrChanged) {
		return k, fault.Wrap(fault.Unavailable, err, "the sandbox is being copied; try again in a moment")
	}
	if err != nil {
		return k, fmt.Errorf("store the sandbox %s: %w", id, err)
	}
	k.State, k.Bytes = string(tree.State), tree.Bytes
	return k, nil
}

// Usable implements sandbox.SnapshotStore.
func (v SnapshotStore) Usable(k sandbox.StoredCopy, r sandboxes.Recipe) error {
	if !k.Checkpoint {
		return unusable("there is none")
	}
	img, release, err := v.Engine.useImage(r.Image)
	if fault.KindOf(err) == fault.Invalid {
		return unusable("the image %q is not there any more", r.Image)
	}
	if err != nil {
		return err
	}
	kernel, err := v.Engine.host.kernel()
	if err := errors.Join(err, release()); err != nil {
		return err
	}
	switch {
	case k.Kernel != kernel:
		return unusable("it was written by another version of gVisor")
	case k.Image != img.Digest:
		return unusable("the image %q was replaced since", r.Image)
	}
	return nil
}

// Fetch implements sandbox.SnapshotStore.
func (v SnapshotStore) Fetch(ctx context.Context, tenantID tenant.ID, k sandbox.StoredCopy, id runtime.ID, filesOnly bool) (err error) {
	h := v.Engine.host
	dir := h.sandboxDir(id)
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)); err != nil {
		return err
	}
	defer func() {
		if errors.Is(err, home.ErrCorrupt) {
			err = fault.Wrap(fault.Conflict, err, "the stored data of the sandbox is damaged or missing, and was not used")
		}
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	tree, err := v.Store.Load(ctx, tenantID, home.State(k.State))
	if err != nil {
		return err
	}
	if filesOnly {
		tree = tree.Only(filesDir)
	}
	if err := v.Store.Restore(ctx, tenantID, tree, dir, nil); err != nil {
		return fmt.Errorf("bring back the sandbox %s: %w", id, err)
	}
	return ownFolder(dir)
}

// ownFolder gives all that is in a sandbox's folder to this process's user, but
// for what its programs wrote.
func ownFolder(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if err := os.Lchown(path, os.Geteuid(), os.Getegid()); err != nil {
			return err
		}
		if e.IsDir() && path == filepath.Join(dir, filesDir) {
			return fs.SkipDir
		}
		return nil
	})
}
