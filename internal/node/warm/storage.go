package warm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/storage"
)

// A sandbox that storage can be mounted in has an empty folder of the host at
// storage.Root. When it is claimed, the host makes a folder there for each mount, and
// mounts on that. Until then it has nothing of any tenant.

// Mounter is an Instance that folders can be mounted in while it runs.
type Mounter interface {
	// Mount mounts folders of the host on empty folders below a writable mount that
	// the sandbox was made with.
	Mount(mounts []runtime.Mount) error
}

// Mount shows folders of the host below storage.Root, in a sandbox whose key has
// Storage set. It comes before the first program, and once. The error wraps
// runtime.ErrUnsupported where the runtime cannot.
func (s *Sandbox) Mount(ctx context.Context, mounts []runtime.Mount) error {
	var fixed []string
	m, ok := s.instance.(Mounter)
	if !ok {
		return fmt.Errorf("mount folders in %s: %w", s.ID(), runtime.ErrUnsupported)
	}
	for _, mount := range mounts {
		name, ok := strings.CutPrefix(mount.Target, storage.Root+"/")
		if !ok || !filepath.IsLocal(name) || strings.Contains(name, "/") {
			return fmt.Errorf("%q is not a folder directly below %s", mount.Target, storage.Root)
		}
		if err := makeOpen(filepath.Join(s.maker.cfg.Storage, string(s.ID()), name)); err != nil {
			return err
		}
		if !mount.Writable {
			fixed = append(fixed, mount.Target)
		}
	}
	if err := m.Mount(mounts); err != nil || len(fixed) == 0 {
		return err
	}
	ctx, cancel := s.untilEnd(ctx)
	defer cancel()
	return s.guest.Protect(ctx, fixed)
}

// Stores reports whether the Maker's sandboxes can have storage mounted while they run.
func (m *Maker) Stores() bool { return m.cfg.Storage != "" }

// makeOpen makes a folder that programs may enter. It stays the host's own, so they
// cannot write to it.
func makeOpen(path string) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	return os.Chmod(path, 0o755) // whatever the umask is
}

// RemoveStorage removes the folder that a sandbox had at storage.Root. folders is
// Config.Storage. What was mounted there is never removed.
func RemoveStorage(folders string, id runtime.ID) error {
	if folders == "" {
		return nil
	}
	dir := filepath.Join(folders, string(id))
	err := os.Remove(dir) // empty as a rule
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		errs = append(errs, os.Remove(filepath.Join(dir, e.Name())))
	}
	return errors.Join(append(errs, os.Remove(dir))...)
}
