package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/disk"
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

// memoryRecord says what a memory is of, and what its files are.
type memoryRecord struct {
	Kernel string // digest of the kernel's program
	Limits sandbox.Limits
	Mounts string `json:",omitzero"` // of its tenant's storage
	Files  map[string]fileRecord
}

type fileRecord struct {
	Size int64
	Sum  uint32 // CRC-32C: for what a disk may do, not for what people may
}

// mostRecord bounds a record.
const mostRecord = 64 << 10

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// digest is that of a file, in hexadecimal.
func digest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// keepOrigin notes what a sandbox is made of, of which a later version of this
// program may have another.
func (h *host) keepOrigin(id sandbox.ID, img *image.Image) error {
	if err := h.linkGuest(filepath.Join(h.named(id), guestFile)); err != nil {
		return err
	}
	return replaceFile(filepath.Join(h.named(id), imageFile), []byte(img.Digest))
}

// linkGuest gives the guest's image another name. The folder of this process is a
// mount of its own, so there is a copy in it.
func (h *host) linkGuest(to string) error {
	shared := filepath.Join(h.disk, filepath.Base(h.guest))
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := os.Link(shared, to); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	data, err := os.ReadFile(h.guest)
	if err != nil {
		return err
	}
	if err := replaceFile(shared, data); err != nil {
		return err
	}
	return os.Link(shared, to)
}

// dropGuests removes copies of the guest's image that no sandbox has.
func (h *host) dropGuests() error {
	all, err := filepath.Glob(filepath.Join(h.disk, "guest-*.erofs"))
	errs := []error{err}
	for _, path := range all {
		var st unix.Stat_t
		if unix.Lstat(path, &st) == nil && st.Nlink == 1 {
			errs = append(errs, os.Remove(path))
		}
	}
	return errors.Join(errs...)
}

// replaceFile writes a file anew, whoever has the one that was there.
func replaceFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

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

// keepMemory adds to a checkpoint what it takes to know that it can be used.
func (h *host) keepMemory(dir string, r named.Recipe) error {
	rec := memoryRecord{Limits: r.Limits, Mounts: mountsOf(r)}
	var err error
	if rec.Kernel, err = h.kernel(); err != nil {
		return err
	}
	if rec.Files, err = sums(dir); err != nil {
		return err
	}
	data, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, recordName), data, 0o600)
}

// sums reads what a memory's folder holds.
func sums(dir string) (map[string]fileRecord, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	files := map[string]fileRecord{}
	all := make([]fileRecord, len(entries))
	var g errgroup.Group
	for i, e := range entries {
		g.Go(func() error {
			f, err := openFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return err
			}
			defer f.Close()
			sum := crc32.New(castagnoli)
			all[i].Size, err = io.CopyBuffer(struct{ io.Writer }{sum}, f, make([]byte, 1<<20))
			all[i].Sum = sum.Sum32()
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for i, e := range entries {
		if e.Name() != recordName {
			files[e.Name()] = all[i]
		}
	}
	return files, nil
}

// openFile opens what must be a file: a folder may be whoever's.
func openFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s is no file", path), err, f.Close())
	}
	return f, nil
}

// readRecord reads the record of a memory.
func readRecord(dir string) (rec memoryRecord, err error) {
	f, err := openFile(filepath.Join(dir, recordName))
	if errors.Is(err, fs.ErrNotExist) {
		return rec, unusable("there is none")
	}
	if err != nil {
		return rec, unusable("there is none: %v", err)
	}
	defer f.Close()
	if err := json.NewDecoder(io.LimitReader(f, mostRecord)).Decode(&rec); err != nil {
		return rec, unusable("its record cannot be read: %v", err)
	}
	return rec, nil
}

// checkMemory refuses a memory that is not whole, or of another kernel, image, size
// or storage than a sandbox would be made with.
func (h *host) checkMemory(r named.Recipe, img *image.Image) error {
	dir := filepath.Join(h.named(r.ID), memoryDir)
	rec, err := readRecord(dir)
	if err != nil {
		return err
	}
	kernel, err := h.kernel()
	if err != nil {
		return err
	}
	origin, err := os.ReadFile(filepath.Join(h.named(r.ID), imageFile))
	if err != nil {
		return unusable("its image is not known: %v", err)
	}
	switch {
	case rec.Kernel != kernel:
		return unusable("it was written by another version of gVisor")
	case string(origin) != img.Digest:
		return unusable("the image %q was replaced since", img.Name)
	case rec.Limits != r.Limits:
		return unusable("it is of a sandbox with other limits")
	case rec.Mounts != mountsOf(r):
		return unusable("it is of a sandbox with more storage mounted than it may have now")
	}
	files, err := sums(dir)
	if err != nil {
		return unusable("its files cannot be read: %v", err)
	}
	for name, want := range rec.Files {
		if files[name] != want {
			return unusable("its file %s is damaged", name)
		}
	}
	if len(files) != len(rec.Files) || len(files) == 0 {
		return unusable("it has files that its record does not know, or none")
	}
	return nil
}

func unusable(format string, args ...any) error {
	return fmt.Errorf("%w: %s", named.ErrMemory, fmt.Sprintf(format, args...))
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

// Copy implements named.Engine. The memory, which nobody writes to, is linked. The
// folders of one that Twin has begun are there.
func (n Named) Copy(ctx context.Context, from, to sandbox.ID) (err error) {
	if err := n.CopyFiles(ctx, from, to); err != nil {
		return err
	}
	src, dst := n.e.host.named(from), n.e.host.named(to)
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("copy the memory of %s: %w", from, err), os.RemoveAll(dst))
		}
	}()
	if err := linkFolder(filepath.Join(src, memoryDir), filepath.Join(dst, memoryNew)); err != nil {
		return err
	}
	return os.Rename(filepath.Join(dst, memoryNew), filepath.Join(dst, memoryDir))
}

// CopyFiles implements named.Engine.
func (n Named) CopyFiles(ctx context.Context, from, to sandbox.ID) (err error) {
	src, dst := n.e.host.named(from), n.e.host.named(to)
	if err := os.MkdirAll(dst, 0o700); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("copy the files of %s: %w", from, err), n.Remove(context.WithoutCancel(ctx), to))
		}
	}()
	if err := disk.MergeTree(ctx, filepath.Join(src, filesDir), filepath.Join(dst, filesDir)); err != nil {
		return err
	}
	for _, name := range []string{guestFile, imageFile} {
		if err := os.Link(filepath.Join(src, name), filepath.Join(dst, name)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

func linkFolder(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.Link(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// Freeze implements named.Live.
func (a *alive) Freeze(ctx context.Context) error { return a.inst.Freeze(ctx) }

// Thaw implements named.Live.
func (a *alive) Thaw(ctx context.Context) error { return a.inst.Thaw(ctx) }
