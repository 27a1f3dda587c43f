package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest"
	"github.com/atoll-run/atoll/internal/image"
	"github.com/atoll-run/atoll/internal/named"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/storage"
)

// What is in a named sandbox's folder besides its files. A memory that is being
// written or read has another name: one is whole, and nothing has run since.
const (
	filesDir   = "files"
	guestFile  = "guest.erofs" // the guest that is in it
	imageFile  = "image"       // digest of its image
	memoryDir  = "memory"
	memoryNew  = "memory.new"  // while it is written
	memoryUsed = "memory.used" // while a sandbox is made from it
	recordName = "record.json"
)

// Asleep implements named.Engine.
func (n Named) Asleep(id sandbox.ID) bool {
	for _, name := range []string{memoryDir, memoryUsed} {
		if _, err := os.Lstat(filepath.Join(n.e.host.named(id), name, recordName)); err == nil {
			return true
		}
	}
	return false
}

// Memory implements named.Engine.
func (n Named) Memory(id sandbox.ID) (bytes int64) {
	entries, err := os.ReadDir(filepath.Join(n.e.host.named(id), memoryDir))
	if err != nil {
		return 0 // there is none
	}
	for _, entry := range entries {
		var st unix.Stat_t
		if unix.Lstat(filepath.Join(n.e.host.named(id), memoryDir, entry.Name()), &st) == nil {
			bytes += st.Blocks * 512
		}
	}
	return bytes
}

// Sleep implements named.Live.
func (a *alive) Sleep(ctx context.Context) error {
	// A frozen attendant could not say goodbye.
	if err := errors.Join(a.Thaw(ctx), a.Quiet()); err != nil {
		return err
	}
	h := a.engine.host
	dir := filepath.Join(h.named(a.recipe.ID), memoryNew)
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
		return err
	}
	if err := a.inst.Checkpoint(ctx, dir); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	err := h.keepMemory(dir, a.recipe)
	if err == nil {
		err = os.Rename(dir, filepath.Join(filepath.Dir(dir), memoryDir))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("keep the memory of %s: %w", a.recipe.ID, err), a.Resume(context.WithoutCancel(ctx)))
	}
	return nil
}

// Resume implements named.Live. What was written is of no use from the moment on
// that anything runs.
func (a *alive) Resume(ctx context.Context) error {
	if err := a.engine.host.forgetMemory(a.recipe.ID); err != nil {
		return err
	}
	return a.inst.Resume(ctx)
}

// mayBeStopped reports whether there is any memory of a sandbox, whole or not: then
// it may have been stopped for it.
func (h *host) mayBeStopped(id sandbox.ID) bool {
	for _, name := range []string{memoryDir, memoryUsed, memoryNew} {
		if _, err := os.Lstat(filepath.Join(h.named(id), name)); err == nil {
			return true
		}
	}
	return false
}

// forgetMemory removes every memory of a sandbox.
func (h *host) forgetMemory(id sandbox.ID) error {
	var errs []error
	for _, name := range []string{memoryDir, memoryUsed, memoryNew} {
		// Renamed first, what is left after a crash is no memory.
		path, half := filepath.Join(h.named(id), name), filepath.Join(h.named(id), memoryNew)
		if name != memoryNew {
			if err := os.Rename(path, half); errors.Is(err, fs.ErrNotExist) {
				continue
			} else if err != nil {
				errs = append(errs, err)
			}
		}
		errs = append(errs, os.RemoveAll(half))
	}
	return errors.Join(errs...)
}

// Rest implements named.Live.
func (a *alive) Rest(ctx context.Context) error {
	return errors.Join(a.inst.Destroy(ctx), a.Quiet(), os.RemoveAll(a.engine.host.attendFolder(a.recipe.ID)), a.release())
}

// Rest implements named.Engine.
func (n Named) Rest(ctx context.Context, id sandbox.ID) error {
	h := n.e.host
	used, memory := filepath.Join(h.named(id), memoryUsed), filepath.Join(h.named(id), memoryDir)
	if err := errors.Join(h.Destroy(ctx, id), os.RemoveAll(h.attendFolder(id))); err != nil {
		return err
	}
	if err := os.Rename(used, memory); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Wake implements named.Engine. The kernel starts while its memory is looked at.
func (n Named) Wake(ctx context.Context, r named.Recipe) (_ named.Live, err error) {
	img, release, err := n.e.useImage(r.Image)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, release())
		}
	}()
	h, undo := n.e.host, context.WithoutCancel(ctx)
	memory, used := filepath.Join(h.named(r.ID), memoryDir), filepath.Join(h.named(r.ID), memoryUsed)
	var g errgroup.Group
	kernel := n.e.twins.take(r.ID)
	if kernel == nil {
		g.Go(func() (err error) {
			kernel, err = n.boot(ctx, r, img)
			return err
		})
	}
	unfit := h.checkMemory(r, img)
	err = errors.Join(unfit, g.Wait())
	if err == nil {
		err = os.Rename(memory, used)
	}
	if err != nil {
		if kernel != nil {
			err = errors.Join(err, kernel.Destroy(undo))
		}
		return nil, err
	}
	inst, err := kernel.Restore(ctx, used)
	if err != nil {
		if changed(err, r.Mounts) {
			n.e.cfg.Log.WarnContext(ctx, "the memory of a sandbox does not fit its volumes any more", "sandbox_id", string(r.ID), "error", err)
			err = unusable("what its programs had open in a volume is not there any more")
		}
		return nil, errors.Join(fmt.Errorf("wake %s: %w", r.ID, err), os.Rename(used, memory))
	}
	a := n.alive(r, img, inst, release)
	err = a.speak(ctx, func(c *guest.Client) error { return c.Reseed(ctx, reseed(r.ID)) })
	if err == nil {
		_, err = a.Guest(ctx)
	}
	if err != nil { // it has run for a moment: what it did is lost, not what it was
		return nil, errors.Join(fmt.Errorf("wake %s: %w", r.ID, err), a.Quiet(), inst.Destroy(undo), os.Rename(used, memory))
	}
	return a, h.forgetMemory(r.ID)
}

// changed reports whether a kernel cannot go on since files are gone that it had
// open in a volume, which is not its sandbox's alone. It says so in words.
func changed(err error, mounts []storage.Mount) bool {
	return slices.ContainsFunc(mounts, func(m storage.Mount) bool {
		return strings.Contains(err.Error(), "in mount \"") && strings.Contains(err.Error(), ":"+m.Folder()+"\"")
	})
}

// boot starts the kernel of a sandbox that wakes.
func (n Named) boot(ctx context.Context, r named.Recipe, img *image.Image) (sandbox.Prepared, error) {
	kernel, err := n.prepare(ctx, r, img)
	if err != nil {
		return nil, fmt.Errorf("wake %s: %w", r.ID, err)
	}
	return kernel, nil
}

// prepare starts a kernel that waits to be a sandbox.
func (n Named) prepare(ctx context.Context, r named.Recipe, img *image.Image) (kernel sandbox.Prepared, err error) {
	err = n.furnish(ctx, r, func(mounts []sandbox.Mount) (err error) {
		spec := n.spec(r, img, mounts)
		spec.Guest = filepath.Join(n.e.host.named(r.ID), guestFile)
		kernel, err = n.runtime(r).Prepare(ctx, spec)
		return err
	})
	if err != nil && kernel != nil {
		err = errors.Join(err, kernel.Destroy(context.WithoutCancel(ctx)))
	}
	return kernel, err
}

// reseed is what a sandbox's guest is told of who it is.
func reseed(id sandbox.ID) guest.Reseed {
	sum := sha256.Sum256([]byte("machine id of " + id))
	return guest.Reseed{Hostname: string(id), MachineID: hex.EncodeToString(sum[:16])}
}

// Freeze implements named.Live.
func (a *alive) Freeze(ctx context.Context) error {
	a.rest(true)
	err := a.inst.Freeze(ctx)
	if err != nil {
		a.rest(false)
	}
	return err
}

// Thaw implements named.Live.
func (a *alive) Thaw(ctx context.Context) error {
	err := a.inst.Thaw(ctx)
	if err == nil {
		a.rest(false)
	}
	return err
}

// rest tells the conversation with the attendant that it stands still, or goes on.
func (a *alive) rest(still bool) {
	a.turn <- struct{}{}
	defer func() { <-a.turn }()
	if a.client != nil {
		a.client.Rest(still)
	}
}
