package engine

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/node/image"
	"github.com/atoll-run/atoll/internal/node/sandboxes"
)

// memory is the folder of a sandbox's memory that can be used, and what it is of.
type memory struct {
	h   *host
	id  runtime.ID
	img *image.Image
	dir string
}

func newMemory(t testing.TB) *memory {
	t.Helper()
	m := &memory{
		h:  &host{disk: t.TempDir(), kernel: func() (string, error) { return "kernel", nil }},
		id: runtime.NewID(), img: &image.Image{Name: "default", Digest: "digest"},
	}
	m.dir = filepath.Join(m.h.sandboxDir(m.id), checkpointDir)
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for path, data := range map[string]string{
		filepath.Join(m.h.sandboxDir(m.id), imageFile): "digest", filepath.Join(m.dir, "checkpoint.img"): "objects",
		filepath.Join(m.dir, "pages_meta.img"): "places", filepath.Join(m.dir, "pages.img"): "pages of memory",
	} {
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.h.describeCheckpoint(m.dir, m.recipe()); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *memory) path(name string) string { return filepath.Join(m.dir, name) }

func (m *memory) check() error {
	rest, err := m.h.verifyCheckpoint(m.recipe(), m.img)
	if err != nil {
		return err
	}
	return rest()
}

func (m *memory) recipe() sandboxes.Recipe {
	return sandboxes.Recipe{ID: m.id, Tenant: "ten_a", Limits: runtime.DefaultLimits(), Mounts: []storage.Mount{mountOf("team", "a")}}
}

func TestAMemoryThatIsNotWholeIsRefused(t *testing.T) {
	swap := func(m *memory, a, b string) error {
		return unix.Renameat2(unix.AT_FDCWD, m.path(a), unix.AT_FDCWD, m.path(b), unix.RENAME_EXCHANGE)
	}
	replace := func(name string, other func(path string) error) func(*memory) error {
		return func(m *memory) error { return errors.Join(os.Remove(m.path(name)), other(m.path(name))) }
	}
	rewrite := func(change func(*checkpointRecord)) func(*memory) error {
		return func(m *memory) error {
			rec, err := readRecord(m.dir)
			if err != nil {
				return err
			}
			change(&rec)
			data, err := json.Marshal(rec)
			return errors.Join(err, os.WriteFile(m.path(recordName), data, 0o600))
		}
	}
	for name, damage := range map[string]func(*memory) error{
		"truncated pages":      func(m *memory) error { return os.Truncate(m.path("pages.img"), 3) },
		"longer pages":         func(m *memory) error { return os.Truncate(m.path("pages.img"), 4096) },
		"empty objects":        func(m *memory) error { return os.Truncate(m.path("checkpoint.img"), 0) },
		"swapped files":        func(m *memory) error { return swap(m, "checkpoint.img", "pages_meta.img") },
		"no pages":             func(m *memory) error { return os.Remove(m.path("pages.img")) },
		"one file more":        func(m *memory) error { return os.WriteFile(m.path("more.img"), []byte("x"), 0o600) },
		"a link for a file":    replace("pages.img", func(path string) error { return os.Symlink("/etc/passwd", path) }),
		"a pipe for a file":    replace("pages.img", func(path string) error { return unix.Mkfifo(path, 0o600) }),
		"a folder for a file":  replace("pages.img", func(path string) error { return os.Mkdir(path, 0o700) }),
		"a pipe for a record":  replace(recordName, func(path string) error { return unix.Mkfifo(path, 0o600) }),
		"no record":            func(m *memory) error { return os.Remove(m.path(recordName)) },
		"an empty record":      func(m *memory) error { return os.Truncate(m.path(recordName), 0) },
		"half a record":        func(m *memory) error { return os.Truncate(m.path(recordName), 40) },
		"another kernel":       rewrite(func(r *checkpointRecord) { r.Kernel = "other" }),
		"other storage":        rewrite(func(r *checkpointRecord) { r.Mounts = "" }),
		"other limits":         rewrite(func(r *checkpointRecord) { r.Limits.Memory++ }),
		"a record of no files": rewrite(func(r *checkpointRecord) { r.Files = nil }),
		"a file that is not":   rewrite(func(r *checkpointRecord) { r.Files["../image"] = fileRecord{} }),
		"another image":        func(m *memory) error { m.img.Digest = "replaced"; return nil },
		"an unknown image":     func(m *memory) error { return os.Remove(filepath.Join(m.h.sandboxDir(m.id), imageFile)) },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMemory(t)
			if err := m.check(); err != nil {
				t.Fatalf("a whole one is refused: %v", err)
			}
			if err := damage(m); err != nil {
				t.Fatal(err)
			}
			if err := m.check(); !errors.Is(err, sandboxes.ErrCheckpoint) {
				t.Errorf("it is not refused: %v", err)
			}
		})
	}
}

// FuzzMemoryRecord: whatever a record says, a memory is used only if it is what was
// written.
func FuzzMemoryRecord(f *testing.F) {
	whole, err := os.ReadFile(newMemory(f).path(recordName))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add([]byte(`{"Kernel":"kernel","Files":{}}`))
	f.Add([]byte(`null`))
	m := newMemory(f)
	truth, err := readRecord(m.dir)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, record []byte) {
		if err := os.WriteFile(m.path(recordName), record, 0o600); err != nil {
			t.Fatal(err)
		}
		err := m.check()
		if err != nil {
			if !errors.Is(err, sandboxes.ErrCheckpoint) {
				t.Errorf("refused as something else: %v", err)
			}
			return
		}
		rec, err := readRecord(m.dir)
		if err != nil || rec.Kernel != truth.Kernel || rec.Limits != truth.Limits || len(rec.Files) != len(truth.Files) {
			t.Errorf("used with the record %s", record)
		}
	})
}
