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
	"github.com/atoll-run/atoll/internal/guest"
	"github.com/atoll-run/atoll/internal/node/image"
	"github.com/atoll-run/atoll/internal/node/sandboxes"
)

// Restore implements named.Engine.
func (n Named) Restore(ctx context.Context, r sandboxes.Recipe) (_ sandboxes.Live, err error) {
	img, release, err := n.e.useImage(r.Image)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, release())
		}
	}()
	defer n.e.spares.wakes()()
	inst, err := n.rise(ctx, r, img)
	if err != nil {
		return nil, err
	}
	h := n.e.host
	memory, used := filepath.Join(h.named(r.ID), memoryDir), filepath.Join(h.named(r.ID), memoryUsed)
	a := n.alive(r, img, inst, release)
	err = a.speak(ctx, func(c *guest.Client) error { return c.Reseed(ctx, reseed(r.ID)) })
	if err == nil {
		_, err = a.Guest(ctx)
	}
	if err != nil { // it has run for a moment: what it did is lost, not what it was
		return nil, errors.Join(fmt.Errorf("wake %s: %w", r.ID, err), a.CloseGuest(), inst.Destroy(context.WithoutCancel(ctx)), os.Rename(used, memory))
	}
	n.rose(r.ID)
	n.KeepStandby(r.ID, r, 1) // it may sleep again
	end := linger(used)
	err = h.forgetMemory(r.ID)
	n.e.spares.making.Go(end)
	return a, err
}

// linger keeps a folder's files until what it returns is called: those of a memory
// take a while to go, which nobody need wait for.
func linger(dir string) (end func()) {
	var files []*os.File
	names, _ := memoryFiles(dir) // else they go at once
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

// rise makes a sandbox of its memory, which then is the one that was used, or, if that
// fails, is as it was. The memory is looked at while the kernel starts and reads it:
// what is not whole runs nothing.
func (n Named) rise(ctx context.Context, r sandboxes.Recipe, img *image.Image) (inst runtime.Instance, err error) {
	h := n.e.host
	memory, used := filepath.Join(h.named(r.ID), memoryDir), filepath.Join(h.named(r.ID), memoryUsed)
	var starts, looks errgroup.Group
	var kernel runtime.Prepared
	var waited bool
	starts.Go(func() (err error) {
		kernel, waited, err = n.kernel(ctx, r, img)
		return err
	})
	rest, err := h.checkMemory(r, img)
	if err == nil {
		looks.Go(rest)
		defer func() { _ = looks.Wait() }() // for whoever did not need to know
	}
	if err = errors.Join(err, starts.Wait()); err == nil {
		err = os.Rename(memory, used)
	}
	if err != nil {
		if kernel != nil {
			err = errors.Join(err, kernel.Destroy(context.WithoutCancel(ctx)))
		}
		return nil, err
	}
	inst, err = kernel.Restore(ctx, used, looks.Wait)
	if err != nil && waited && looks.Wait() == nil && !changed(err, r.Mounts) { // it may have died while it waited
		n.e.cfg.Log.WarnContext(ctx, "a kernel that waited took no memory, and another one is started", "sandbox_id", string(r.ID), "error", err)
		if kernel, err = n.boot(ctx, r, img); err == nil {
			inst, err = kernel.Restore(ctx, used, looks.Wait)
		}
	}
	switch {
	case err == nil:
		return inst, nil
	case looks.Wait() != nil:
		err = looks.Wait()
	case changed(err, r.Mounts):
		n.e.cfg.Log.WarnContext(ctx, "the memory of a sandbox does not fit its volumes any more", "sandbox_id", string(r.ID), "error", err)
		err = unusable("what its programs had open in a volume is not there any more")
	}
	return nil, errors.Join(fmt.Errorf("wake %s: %w", r.ID, err), os.Rename(used, memory))
}

// kernel is the one that is to be a sandbox which wakes, and whether it waited for
// any sandbox like it.
func (n Named) kernel(ctx context.Context, r sandboxes.Recipe, img *image.Image) (kernel runtime.Prepared, waited bool, err error) {
	tw := n.e.twins.take(r.ID)
	switch {
	case tw == nil:
		like, err := n.likeness(r.ID, r)
		if err != nil {
			return nil, false, fmt.Errorf("wake %s: %w", r.ID, err)
		}
		kernel = n.adopt(ctx, n.spare(like), r)
	case tw.spare != nil:
		kernel = n.adopt(ctx, tw.spare, r)
	default:
		return tw.kernel, false, nil
	}
	if kernel != nil {
		return kernel, true, nil
	}
	kernel, err = n.boot(ctx, r, img)
	return kernel, false, err
}

// changed reports whether a kernel cannot go on since files are gone that it had
// open in a volume, which is not its sandbox's alone. It says so in words.
func changed(err error, mounts []storage.Mount) bool {
	return slices.ContainsFunc(mounts, func(m storage.Mount) bool {
		return strings.Contains(err.Error(), "in mount \"") && strings.Contains(err.Error(), ":"+m.Folder()+"\"")
	})
}

// boot starts the kernel of a sandbox that wakes.
func (n Named) boot(ctx context.Context, r sandboxes.Recipe, img *image.Image) (runtime.Prepared, error) {
	kernel, err := n.prepare(ctx, r, img)
	if err != nil {
		return nil, fmt.Errorf("wake %s: %w", r.ID, err)
	}
	return kernel, nil
}

// prepare starts a kernel that waits to be a sandbox.
func (n Named) prepare(ctx context.Context, r sandboxes.Recipe, img *image.Image) (kernel runtime.Prepared, err error) {
	err = n.furnish(ctx, r, func(mounts []runtime.Mount) (err error) {
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
func reseed(id runtime.ID) guest.Reseed {
	sum := sha256.Sum256([]byte("machine id of " + id))
	return guest.Reseed{Hostname: string(id), MachineID: hex.EncodeToString(sum[:16])}
}
