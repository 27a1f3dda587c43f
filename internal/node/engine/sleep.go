package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/sandboxes"
)

// What is in a named sandbox's folder besides its files. A memory that is being
// written or read has another name: one is whole, and nothing has run since.
const (
	filesDir       = "files"
	guestFile      = "guest.erofs" // the guest that is in it
	imageFile      = "image"       // digest of its image
	checkpointDir  = "memory"
	checkpointNew  = "memory.new"  // while it is written
	checkpointUsed = "memory.used" // while a sandbox is made from it
	recordName     = "record.json"
)

// HasCheckpoint implements sandboxes.Engine.
func (n Sandboxes) HasCheckpoint(id runtime.ID) bool {
	for _, name := range []string{checkpointDir, checkpointUsed} {
		if _, err := os.Lstat(filepath.Join(n.e.host.sandboxDir(id), name, recordName)); err == nil {
			return true
		}
	}
	return false
}

// CheckpointSize implements sandboxes.Engine.
func (n Sandboxes) CheckpointSize(id runtime.ID) (bytes int64) {
	entries, err := os.ReadDir(filepath.Join(n.e.host.sandboxDir(id), checkpointDir))
	if err != nil {
		return 0 // there is none
	}
	for _, entry := range entries {
		var st unix.Stat_t
		if unix.Lstat(filepath.Join(n.e.host.sandboxDir(id), checkpointDir, entry.Name()), &st) == nil {
			bytes += st.Blocks * 512
		}
	}
	return bytes
}

// Checkpoint implements sandboxes.Live.
func (a *liveSandbox) Checkpoint(ctx context.Context) (err error) {
	// A frozen guest daemon cannot end the connection.
	if err := a.Thaw(ctx); err != nil {
		return err
	}
	a.memory.pause()
	stopped := false // by a checkpoint: Resume resumes the guard, if it can
	defer func() {
		if err != nil && !stopped {
			a.memory.resume()
		}
	}()
	if err := a.CloseGuest(); err != nil {
		return err
	}
	h := a.engine.host
	dir := filepath.Join(h.sandboxDir(a.recipe.ID), checkpointNew)
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
		return err
	}
	if err := a.inst.Checkpoint(ctx, dir); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	stopped = true
	err = h.describeCheckpoint(dir, a.recipe)
	if err == nil {
		err = os.Rename(dir, filepath.Join(filepath.Dir(dir), checkpointDir))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("keep the memory of %s: %w", a.recipe.ID, err), a.Resume(context.WithoutCancel(ctx)))
	}
	return nil
}

// Resume implements sandboxes.Live. What was written is of no use from the moment on
// that anything runs.
func (a *liveSandbox) Resume(ctx context.Context) error {
	if err := a.engine.host.removeCheckpoint(a.recipe.ID); err != nil {
		return err
	}
	if err := a.inst.Resume(ctx); err != nil {
		return err
	}
	a.memory.resume()
	return nil
}

// mayBeStopped reports whether there is any memory of a sandbox, whole or not: then
// it may have been stopped for it.
func (h *host) mayBeStopped(id runtime.ID) bool {
	for _, name := range []string{checkpointDir, checkpointUsed, checkpointNew} {
		if _, err := os.Lstat(filepath.Join(h.sandboxDir(id), name)); err == nil {
			return true
		}
	}
	return false
}

// removeCheckpoint removes every memory of a sandbox.
func (h *host) removeCheckpoint(id runtime.ID) error {
	var errs []error
	for _, name := range []string{checkpointDir, checkpointUsed, checkpointNew} {
		// Renamed first, what is left after a crash is no memory.
		path, half := filepath.Join(h.sandboxDir(id), name), filepath.Join(h.sandboxDir(id), checkpointNew)
		if name != checkpointNew {
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

// EndProcesses implements sandboxes.Live.
func (a *liveSandbox) EndProcesses(ctx context.Context) error {
	a.memory.stop()
	err := errors.Join(a.inst.Destroy(ctx), a.CloseGuest(), os.RemoveAll(a.engine.host.socketFolder(a.recipe.ID)), a.release())
	if n := (Sandboxes{a.engine}); err == nil && n.HasCheckpoint(a.recipe.ID) {
		n.fellAsleep(a.recipe)
	}
	return err
}

// EndProcesses implements sandboxes.Engine.
func (n Sandboxes) EndProcesses(ctx context.Context, r sandboxes.Recipe) error {
	h := n.e.host
	used, memory := filepath.Join(h.sandboxDir(r.ID), checkpointUsed), filepath.Join(h.sandboxDir(r.ID), checkpointDir)
	if err := errors.Join(h.Destroy(ctx, r.ID), os.RemoveAll(h.socketFolder(r.ID))); err != nil {
		return err
	}
	if err := os.Rename(used, memory); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if n.HasCheckpoint(r.ID) {
		n.fellAsleep(r)
	}
	return nil
}

// DropCheckpoint implements sandboxes.Engine.
func (n Sandboxes) DropCheckpoint(ctx context.Context, r sandboxes.Recipe) error {
	if err := n.EndProcesses(ctx, r); err != nil { // undoes an interrupted wake
		return err
	}
	n.awoke(r.ID)
	return n.e.host.removeCheckpoint(r.ID)
}

// Freeze implements sandboxes.Live.
func (a *liveSandbox) Freeze(ctx context.Context) error {
	a.memory.pause()
	a.rest(true)
	err := a.inst.Freeze(ctx)
	if err != nil {
		a.rest(false)
		a.memory.resume()
	}
	return err
}

// Thaw implements sandboxes.Live.
func (a *liveSandbox) Thaw(ctx context.Context) error {
	err := a.inst.Thaw(ctx)
	if err == nil {
		a.rest(false)
		a.memory.resume()
	}
	return err
}

// rest tells the connection with the guest daemon that the sandbox is frozen, or runs again.
func (a *liveSandbox) rest(still bool) {
	a.lock <- struct{}{}
	defer func() { <-a.lock }()
	if a.client != nil {
		a.client.SetFrozen(still)
	}
}
