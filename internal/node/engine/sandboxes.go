package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/guest/daemonclient"
	"github.com/atoll-run/atoll/internal/guest/initclient"
	"github.com/atoll-run/atoll/internal/node/disk"
	"github.com/atoll-run/atoll/internal/node/idmap"
	"github.com/atoll-run/atoll/internal/node/image"
	"github.com/atoll-run/atoll/internal/node/sandboxes"
	"github.com/atoll-run/atoll/internal/node/warm"
)

// Sandboxes makes named sandboxes with an Engine. The Engine's folder on disk was made
// fit with thread.Secure, or Config.Unfit says why not.
type Sandboxes struct{ e *Engine }

var _ sandboxes.Engine = Sandboxes{}

// Named is what makes named sandboxes.
func (e *Engine) Sandboxes() Sandboxes { return Sandboxes{e} }

// SandboxFolder is the folder of the files of named sandboxes, in a process's own on
// disk. A sandbox that has a folder there is no one's to sweep.
const SandboxFolder = "sandboxes"

// Where the files of a sandbox are on the host, in its folder, and inside.
const (
	homeShare = "share" // holds the home
	tmpDir    = "tmp"
	varTmpDir = "var-tmp"
	socketDir = "attend" // beside the runtime's own files, whose path is short
)

func (h *host) sandboxDir(id runtime.ID) string {
	return filepath.Join(h.disk, SandboxFolder, string(id))
}

// files is the folder of what a sandbox's programs write, beside its memory.
func (h *host) files(id runtime.ID) string { return filepath.Join(h.sandboxDir(id), filesDir) }

// isSandbox reports whether a sandbox is a named one that is kept.
func (h *host) isSandbox(id runtime.ID) bool {
	if !h.keep {
		return false
	}
	_, err := os.Lstat(h.sandboxDir(id))
	return !errors.Is(err, fs.ErrNotExist) // one that cannot be told stays
}

// Admit implements sandboxes.Engine.
func (n Sandboxes) Admit(r sandboxes.Recipe) error {
	h := n.e.host
	if unfit := errors.Join(h.homeless, n.e.cfg.Unfit); unfit != nil {
		return fault.New(fault.Unavailable, "named sandboxes keep their files in folders of the host, and here they cannot: %v", unfit)
	}
	if err := h.admit(r.Limits); err != nil {
		return err
	}
	_, release, err := n.e.useImage(r.Image)
	if err != nil {
		return err
	}
	if err := release(); err != nil {
		return err
	}
	if err := n.e.admitMounts(r.Mounts); err != nil {
		return err
	}
	if !r.Connected {
		return nil
	}
	return n.e.networks.admit(false)
}

// runtime is what a recipe's sandbox is made by. One with a network trusts the
// installation's authority: secrets may be bound to hosts while it lives.
func (n Sandboxes) runtime(r sandboxes.Recipe) runtime.Runtime {
	switch {
	case !r.Connected:
		return n.e.host
	case n.e.networks.cfg.Egress.Authority != nil:
		return withAuthority{n.e.networks}
	default:
		return n.e.networks
	}
}

// Create implements sandboxes.Engine.
func (n Sandboxes) Create(ctx context.Context, r sandboxes.Recipe) (_ sandboxes.Live, err error) {
	if err := n.e.host.admitRules(r.Permissions); err != nil {
		return nil, err
	}
	img, release, err := n.e.useImage(r.Image)
	if err != nil {
		return nil, err
	}
	undo := []func() error{release}
	defer func() {
		if err != nil {
			for i := len(undo) - 1; i >= 0; i-- {
				err = errors.Join(err, undo[i]())
			}
		}
	}()
	undo = append(undo, func() error {
		if r.FromFiles {
			return n.EndProcesses(context.WithoutCancel(ctx), r)
		}
		return n.Remove(context.WithoutCancel(ctx), r.ID)
	})
	if err := n.e.host.removeCheckpoint(r.ID); err != nil {
		return nil, err
	}
	t := n.e.pin()
	defer n.e.unpin(t)
	var inst runtime.Instance
	if err := n.withMounts(ctx, r, func(mounts []runtime.Mount) (err error) {
		spec := n.spec(r, img, mounts)
		spec.Guest = n.e.host.guest
		if r.Connected {
			spec.Guest = t.guest
		}
		if err := errors.Join(n.e.host.keepProvenance(r.ID, img, spec.Guest), n.markTrust(r.ID, r.Connected, t)); err != nil {
			return fmt.Errorf("note what %s is made of: %w", r.ID, err)
		}
		if inst, err = n.runtime(r).Create(ctx, spec); err == nil {
			undo = append(undo, func() error { return inst.Destroy(context.WithoutCancel(ctx)) })
		}
		return err
	}); err != nil {
		return nil, err
	}
	a := n.live(r, img, inst, release)
	if err := a.withInit(ctx, func(c *initclient.Client) error {
		if err := n.e.version.check(c.Info().Version); err != nil {
			return err
		}
		if r.Permissions.Restricts() {
			if err := c.Confine(ctx, r.Permissions); err != nil {
				return runtime.Unenforceable(err)
			}
		}
		if err := c.Reseed(ctx, reseed(r.ID)); err != nil {
			return err
		}
		return c.Enter(ctx, true)
	}); err != nil {
		return nil, err
	}
	if _, err := a.Guest(ctx); err != nil {
		return nil, err
	}
	return a, nil
}

// Open implements sandboxes.Engine. Nothing is asked of the guest: it may be frozen.
func (n Sandboxes) Open(ctx context.Context, r sandboxes.Recipe) (sandboxes.Live, error) {
	img, release, err := n.e.useImage(r.Image)
	if err != nil { // what runs needs no image any more
		img, release = &image.Image{Name: r.Image}, func() error { return nil }
	}
	inst, err := n.runtime(r).Open(ctx, r.ID)
	if err != nil {
		return nil, errors.Join(err, release())
	}
	a := n.live(r, img, inst, release)
	if n.e.host.mayBeStopped(r.ID) { // it was falling asleep, or had just woken
		if err := errors.Join(a.Thaw(ctx), a.Resume(ctx)); err != nil {
			return nil, errors.Join(err, a.Detach())
		}
	}
	return a, nil
}

func (n Sandboxes) spec(r sandboxes.Recipe, img *image.Image, mounts []runtime.Mount) runtime.Spec {
	return runtime.Spec{
		ID: r.ID, Rootfs: img.Rootfs, Limits: r.Limits, Traces: r.Permissions.Process.Traced(), Sockets: true,
		Labels: map[string]string{"named": "true"}, Mounts: mounts,
	}
}

// useImage is an image that is not removed until it is released.
func (e *Engine) useImage(name string) (*image.Image, func() error, error) {
	img, release, err := e.cfg.Images.Use(name)
	if fault.KindOf(err) == fault.NotFound {
		return nil, nil, fault.New(fault.Invalid, "this server has no image %q; import it with 'atoll image import', or name another", name)
	}
	return img, release, err
}

// findOwners asks once, because a process's user namespace does not change.
var findOwners = sync.OnceValues(idmap.Find)

// FolderCopier implements sandboxes.Engine.
func (n Sandboxes) FolderCopier(more func(int64) (int64, error)) (disk.FolderCopier, error) {
	owners, err := findOwners()
	if err != nil {
		return disk.FolderCopier{}, err
	}
	uid, _ := owners.UID.ToHost(runtime.UID)
	gid, _ := owners.GID.ToHost(runtime.GID)
	return disk.FolderCopier{UID: int(uid), GID: int(gid), More: more}, nil
}

// List implements sandboxes.Engine.
func (n Sandboxes) List(context.Context) ([]runtime.ID, error) {
	entries, err := os.ReadDir(filepath.Join(n.e.host.disk, SandboxFolder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var ids []runtime.ID
	for _, entry := range entries {
		if id := runtime.ID(entry.Name()); id.Valid() {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// Remove implements sandboxes.Engine. The folder of the files goes last: what has it
// is known, and swept.
func (n Sandboxes) Remove(ctx context.Context, id runtime.ID) error {
	n.awoke(id)
	if err := n.e.standby.takeFork(id).abandon(ctx); err != nil {
		return err
	}
	if err := n.e.host.Destroy(ctx, id); err != nil {
		return err
	}
	if err := n.e.host.unmount(id); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(n.e.host.socketFolder(id)), disk.RemoveTree(n.e.host.sandboxDir(id)), n.e.dropGuests())
}

// makeFolders creates the folders of a sandbox and returns their mounts. size limits their bytes,
// 0 for no limit.
func (h *host) makeFolders(id runtime.ID, size int64) ([]runtime.Mount, error) {
	owners, err := idmap.Find()
	if err != nil {
		return nil, err
	}
	dir := h.files(id)
	for _, f := range []struct {
		name string
		mode os.FileMode
		uid  uint32
	}{{homeShare, 0o700, 0}, {filepath.Join(homeShare, initclient.HomeName), 0o755, runtime.UID}, {tmpDir, 0o777 | os.ModeSticky, 0}, {varTmpDir, 0o777 | os.ModeSticky, 0}} {
		path := filepath.Join(dir, f.name)
		if err := os.MkdirAll(path, 0o700); err != nil {
			return nil, err
		}
		uid, _ := owners.UID.ToHost(f.uid)
		gid, _ := owners.GID.ToHost(f.uid)
		if err := errors.Join(os.Lchown(path, int(uid), int(gid)), os.Chmod(path, f.mode)); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{homeShare, tmpDir, varTmpDir} {
		if err := disk.SetSize(filepath.Join(dir, name), size); err != nil {
			return nil, err
		}
	}
	socket := h.socketFolder(id)
	rootUID, _ := owners.UID.ToHost(0)
	rootGID, _ := owners.GID.ToHost(0)
	if err := daemonclient.MakeFolder(socket, int(rootUID), int(rootGID)); err != nil {
		return nil, err
	}
	return ownMounts(dir, socket), nil
}

// ownMounts is where a sandbox has its files, and the folder where it meets the host.
func ownMounts(files, socket string) []runtime.Mount {
	return []runtime.Mount{
		{Source: filepath.Join(files, homeShare), Target: initclient.SharedFolder, Writable: true, Own: true},
		{Source: filepath.Join(files, tmpDir), Target: "/tmp", Writable: true, Own: true},
		{Source: filepath.Join(files, varTmpDir), Target: "/var/tmp", Writable: true, Own: true},
		{Source: socket, Target: daemonclient.Mountpoint},
	}
}

// socketFolder has the socket by which a sandbox's guest daemon reaches the host. It is
// not on the disk, because the path of a socket is at most 107 bytes long.
func (h *host) socketFolder(id runtime.ID) string {
	return filepath.Join(h.dir, socketDir+"-"+string(id))
}

func (n Sandboxes) live(r sandboxes.Recipe, img *image.Image, inst runtime.Instance, release func() error) *liveSandbox {
	a := &liveSandbox{
		engine: n.e, recipe: r, inst: inst, image: img.Env, release: sync.OnceValue(release), link: n.e.networks.link(r.ID), trusted: n.trustFile(r.ID), lock: make(chan struct{}, 1),
	}
	a.link.own(r.Tenant)
	a.memory = memoryGuard{inst: inst, limit: r.Limits.Memory, guest: a.Guest}
	a.memory.start(n.e.cfg.Log.Warn)
	return a
}

// environ is the environment of a program in a named sandbox, which trusts the certificates of a
// file in the guest's folder besides its image's.
func (e *Engine) environ(image, variables map[string]string, connected bool, trusted string) []string {
	if connected {
		variables = e.networks.env(variables, trusted)
	} else {
		variables = offline(variables)
	}
	return warm.Environ(image, variables)
}
