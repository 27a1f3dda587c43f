package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/image"
	"github.com/atoll-run/atoll/internal/named"
	"github.com/atoll-run/atoll/internal/sandbox"
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
