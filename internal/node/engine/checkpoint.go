package engine

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/image"
	"github.com/atoll-run/atoll/internal/node/sandboxes"
)

// checkpointRecord says what a memory is of, and what its files are.
type checkpointRecord struct {
	Kernel string // digest of the kernel's program
	Limits runtime.Limits
	Mounts string `json:",omitzero"` // of its tenant's storage
	Files  map[string]fileRecord
}

type fileRecord struct {
	Size int64
	Sum  uint32 // CRC-32C: for what a disk may do, not for what people may
}

// maxRecord bounds a record.
const maxRecord = 64 << 10

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// mountsOf says what of its tenant's storage a recipe's sandbox has mounted.
func mountsOf(r sandboxes.Recipe) string {
	if len(r.Mounts) == 0 {
		return ""
	}
	text := fmt.Sprintf("%q", r.Tenant)
	for _, m := range r.Mounts {
		text += fmt.Sprintf(" %q %q %q %q %t", m.Slug, m.Connection, m.Kind, m.Path, m.ReadOnly)
	}
	return text
}

// describeCheckpoint adds to a checkpoint what it takes to know that it can be used.
func (h *host) describeCheckpoint(dir string, r sandboxes.Recipe) error {
	rec := checkpointRecord{Limits: r.Limits, Mounts: mountsOf(r)}
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
	names, err := checkpointFiles(dir)
	if err != nil {
		return nil, err
	}
	files := map[string]fileRecord{}
	all := make([]fileRecord, len(names))
	var g errgroup.Group
	for i, name := range names {
		g.Go(func() error {
			f, err := openFile(filepath.Join(dir, name))
			if err != nil {
				return err
			}
			defer f.Close()
			all[i], err = sum(f)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for i, name := range names {
		files[name] = all[i]
	}
	return files, nil
}

// checkpointFiles lists what a memory's folder holds besides its record.
func checkpointFiles(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.Name() != recordName {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// sumBuffers are kept: the collector would run for a few that were made anew.
var sumBuffers = sync.Pool{New: func() any { return new([256 << 10]byte) }}

func sum(f *os.File) (rec fileRecord, err error) {
	buf := sumBuffers.Get().(*[256 << 10]byte)
	defer sumBuffers.Put(buf)
	crc := crc32.New(castagnoli)
	rec.Size, err = io.CopyBuffer(struct{ io.Writer }{crc}, struct{ io.Reader }{f}, buf[:])
	rec.Sum = crc.Sum32()
	return rec, err
}

// openFile opens a regular file. Anything else, such as a folder, is refused.
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
func readRecord(dir string) (rec checkpointRecord, err error) {
	f, err := openFile(filepath.Join(dir, recordName))
	if errors.Is(err, fs.ErrNotExist) {
		return rec, unusable("there is none")
	}
	if err != nil {
		return rec, unusable("there is none: %v", err)
	}
	defer f.Close()
	if err := json.NewDecoder(io.LimitReader(f, maxRecord)).Decode(&rec); err != nil {
		return rec, unusable("its record cannot be read: %v", err)
	}
	return rec, nil
}

// verifyCheckpoint refuses a memory that is not whole, or of another kernel, image, size
// or storage than a sandbox would be made with. What it returns does the rest of it:
// it looks at the largest file, wherever that is by then. It must be called, once.
func (h *host) verifyCheckpoint(r sandboxes.Recipe, img *image.Image) (rest func() error, err error) {
	dir := filepath.Join(h.sandboxDir(r.ID), checkpointDir)
	rec, err := readRecord(dir)
	if err != nil {
		return nil, err
	}
	kernel, err := h.kernel()
	if err != nil {
		return nil, err
	}
	origin, err := os.ReadFile(filepath.Join(h.sandboxDir(r.ID), imageFile))
	if err != nil {
		return nil, unusable("its image is not known: %v", err)
	}
	switch {
	case rec.Kernel != kernel:
		return nil, unusable("it was written by another version of gVisor")
	case string(origin) != img.Digest:
		return nil, unusable("the image %q was replaced since", img.Name)
	case rec.Limits != r.Limits:
		return nil, unusable("it is of a sandbox with other limits")
	case rec.Mounts != mountsOf(r):
		return nil, unusable("it is of a sandbox with more storage mounted than it may have now")
	}
	names, err := checkpointFiles(dir)
	if err != nil {
		return nil, unusable("its files cannot be read: %v", err)
	}
	if len(names) != len(rec.Files) || len(names) == 0 {
		return nil, unusable("it has files that its record does not know, or none")
	}
	largest := slices.MaxFunc(names, func(a, b string) int { return cmp.Compare(rec.Files[a].Size, rec.Files[b].Size) })
	for _, name := range names {
		f, err := openFile(filepath.Join(dir, name))
		if err != nil {
			return nil, errors.Join(unusable("its files cannot be read: %v", err), drop(rest))
		}
		check := func() error {
			defer f.Close()
			is, err := sum(f)
			if err != nil {
				return unusable("its files cannot be read: %v", err)
			}
			if want, ok := rec.Files[name]; !ok || is != want {
				return unusable("its file %s is damaged", name)
			}
			return nil
		}
		if name == largest {
			rest = check
		} else if err := check(); err != nil {
			return nil, errors.Join(err, drop(rest))
		}
	}
	return rest, nil
}

// drop calls what verifyCheckpoint would have returned.
func drop(rest func() error) error {
	if rest == nil {
		return nil
	}
	return rest()
}

func unusable(format string, args ...any) error {
	return fmt.Errorf("%w: %s", sandboxes.ErrCheckpoint, fmt.Sprintf(format, args...))
}
