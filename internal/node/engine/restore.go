package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/guest/initclient"
	"github.com/atoll-run/atoll/internal/infra/trace"
	"github.com/atoll-run/atoll/internal/node/image"
	"github.com/atoll-run/atoll/internal/node/sandboxes"
)

// Restore implements sandboxes.Engine.
func (n Sandboxes) Restore(ctx context.Context, r sandboxes.Recipe) (_ sandboxes.Live, err error) {
	img, release, err := n.e.useImage(r.Image)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, release())
		}
	}()
	defer n.e.standby.pool.Hold()()
	inst, err := n.restore(ctx, r, img)
	if err != nil {
		return nil, err
	}
	h := n.e.host
	checkpoint, used := filepath.Join(h.sandboxDir(r.ID), checkpointDir), filepath.Join(h.sandboxDir(r.ID), checkpointUsed)
	a := n.live(r, img, inst, release)
	meeting, span := trace.Start(ctx, "guest.dial")
	err = a.withInit(meeting, func(c *initclient.Client) error { return c.Reseed(meeting, reseed(r.ID)) })
	if err == nil {
		_, err = a.Guest(meeting)
	}
	span.End()
	if err == nil {
		err = n.dropCheckpoint(ctx, r.ID)
	}
	if err != nil { // what it did in the moment that it ran is lost; the checkpoint is not
		return nil, errors.Join(fmt.Errorf("wake %s: %w", r.ID, err), a.CloseGuest(), inst.Destroy(context.WithoutCancel(ctx)), os.Rename(used, checkpoint))
	}
	n.awoke(r.ID)
	n.expect(r.ID, r, 1) // it may sleep again
	return a, nil
}

// dropCheckpoint removes the checkpoint of a sandbox that runs again. It fails if a later
// wake would use it.
func (n Sandboxes) dropCheckpoint(ctx context.Context, id runtime.ID) error {
	h := n.e.host
	end := keepOpen(filepath.Join(h.sandboxDir(id), checkpointUsed))
	err := h.removeCheckpoint(id)
	n.e.tasks.Go(end)
	if err != nil && !n.HasCheckpoint(id) {
		n.e.cfg.Log.WarnContext(ctx, "cannot remove a used checkpoint", "sandbox_id", string(id), "error", err)
		return nil
	}
	return err
}

// keepOpen keeps the files of a folder until what it returns is called. The last
// reference to a large file takes a while to go, and a wake does not wait for that.
func keepOpen(dir string) (end func()) {
	var files []*os.File
	names, _ := checkpointFiles(dir) // else they go at once
	for _, name := range names {
		if f, err := openFile(filepath.Join(dir, name)); err == nil {
			files = append(files, f)
		}
	}
	return func() {
		for _, f := range files {
			f.Close()
		}
	}
}

// restore makes a sandbox from its checkpoint, which is then in the folder of used ones,
// or, after an error, where it was. The checkpoint is verified while the kernel starts
// and reads it: no program runs from one that is damaged.
func (n Sandboxes) restore(ctx context.Context, r sandboxes.Recipe, img *image.Image) (inst runtime.Instance, err error) {
	h := n.e.host
	checkpoint, used := filepath.Join(h.sandboxDir(r.ID), checkpointDir), filepath.Join(h.sandboxDir(r.ID), checkpointUsed)
	var starts, verifies errgroup.Group
	var kernel runtime.Prepared
	var shared bool
	starts.Go(func() (err error) {
		ctx, span := trace.Start(ctx, "sandbox.kernel")
		defer span.End()
		kernel, shared, err = n.kernel(ctx, r, img)
		return err
	})
	rest, err := h.verifyCheckpoint(r, img)
	if err == nil {
		verifies.Go(rest)
		defer func() { _ = verifies.Wait() }() // where an earlier error has decided
	}
	if err = errors.Join(err, starts.Wait()); err == nil {
		err = os.Rename(checkpoint, used)
	}
	if err != nil {
		if kernel != nil {
			err = errors.Join(err, kernel.Destroy(context.WithoutCancel(ctx)))
		}
		return nil, err
	}
	restoring, span := trace.Start(ctx, "sandbox.restore")
	inst, err = kernel.Restore(restoring, used, verifies.Wait)
	span.End()
	if err != nil && shared && verifies.Wait() == nil && !changed(err, r.Mounts) { // it may have died while it waited
		n.e.cfg.Log.WarnContext(ctx, "a standby kernel failed to restore the checkpoint; starting another one", "sandbox_id", string(r.ID), "error", err)
		if kernel, err = n.prepare(ctx, r, img); err == nil {
			inst, err = kernel.Restore(ctx, used, verifies.Wait)
		}
	}
	switch {
	case err == nil:
		return inst, nil
	case verifies.Wait() != nil:
		err = verifies.Wait()
	case changed(err, r.Mounts):
		n.e.cfg.Log.WarnContext(ctx, "the checkpoint of a sandbox no longer matches its volumes", "sandbox_id", string(r.ID), "error", err)
		err = unusable("what its programs had open in a volume is not there any more")
	}
	return nil, errors.Join(fmt.Errorf("wake %s: %w", r.ID, err), os.Rename(used, checkpoint))
}

// kernel returns the one that is to be a sandbox which wakes. shared says that it was
// started for any sandbox that is compatible.
func (n Sandboxes) kernel(ctx context.Context, r sandboxes.Recipe, img *image.Image) (kernel runtime.Prepared, shared bool, err error) {
	f := n.e.standby.takeFork(r.ID)
	if f.kernel != nil {
		return f.kernel, false, nil
	}
	if f.claim == nil {
		if f.claim, err = n.reserve(r.ID, r, img); err != nil {
			return nil, false, fmt.Errorf("wake %s: %w", r.ID, err)
		}
	}
	if f.claim != nil {
		if kernel = n.become(ctx, f.claim, r); kernel != nil {
			return kernel, true, nil
		}
	}
	if kernel, err = n.prepare(ctx, r, img); err != nil {
		return nil, false, fmt.Errorf("wake %s: %w", r.ID, err)
	}
	return kernel, false, nil
}

// changed reports whether a kernel cannot go on since files are gone that it had
// open in a volume, which is not its sandbox's alone. It says so in words.
func changed(err error, mounts []storage.Mount) bool {
	return slices.ContainsFunc(mounts, func(m storage.Mount) bool {
		return strings.Contains(err.Error(), "in mount \"") && strings.Contains(err.Error(), ":"+m.Folder()+"\"")
	})
}

// prepare starts a kernel for one sandbox.
func (n Sandboxes) prepare(ctx context.Context, r sandboxes.Recipe, img *image.Image) (kernel runtime.Prepared, err error) {
	err = n.withMounts(ctx, r, func(mounts []runtime.Mount) (err error) {
		spec := n.spec(r, img, mounts)
		spec.Guest = filepath.Join(n.e.host.sandboxDir(r.ID), guestFile)
		kernel, err = n.runtime(r).Prepare(ctx, spec)
		return err
	})
	if err != nil && kernel != nil {
		err = errors.Join(err, kernel.Destroy(context.WithoutCancel(ctx)))
	}
	return kernel, err
}

// reseed has the host name and machine id of a sandbox, for its guest.
func reseed(id runtime.ID) initclient.Reseed {
	sum := sha256.Sum256([]byte("machine id of " + id))
	return initclient.Reseed{Hostname: string(id), MachineID: hex.EncodeToString(sum[:16])}
}
