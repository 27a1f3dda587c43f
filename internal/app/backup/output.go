package backup

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"
)

// output is a backup that is being written.
type output interface {
	scratch() string // a folder on the disk of the backup
	add(entry File, r io.Reader) (sum string, err error)
	finish(m *Manifest) error // writes the manifest, and returns once everything is on the disk
	abandon() error
}

func create(target string) (output, error) {
	target, err := filepath.Abs(target)
	if err != nil {
		return nil, err
	}
	if archive(target) {
		return createArchive(target)
	}
	return createFolder(target)
}

// copySum copies exactly size bytes and returns their digest.
func copySum(w io.Writer, r io.Reader, size int64) (string, error) {
	h := sha256.New()
	if _, err := io.CopyN(io.MultiWriter(w, h), r, size); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func (m *Manifest) encode() ([]byte, error) { return json.MarshalIndent(m, "", "  ") }

// folder is a backup of single files.
type folder struct {
	dir  string
	made bool // by us
	root *os.Root
}

func createFolder(dir string) (output, error) {
	made, err := emptyFolder(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &folder{dir: dir, made: made, root: root}, nil
}

// emptyFolder makes a folder, or finds it empty.
func emptyFolder(dir string) (made bool, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return true, os.MkdirAll(dir, 0o700)
	}
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("%s is not empty", dir)
	}
	return false, err
}

func (f *folder) scratch() string { return f.dir }

func (f *folder) add(entry File, r io.Reader) (string, error) { return writeFile(f.root, entry, r) }

// writeFile makes a new file below root.
func writeFile(root *os.Root, entry File, r io.Reader) (sum string, err error) {
	name := filepath.FromSlash(entry.Path)
	if err := root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return "", err
	}
	w, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, entry.Mode.Perm())
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	return copySum(w, r, entry.Size)
}

func (f *folder) finish(m *Manifest) error {
	text, err := m.encode()
	if err != nil {
		return err
	}
	if err := f.root.WriteFile(manifestFile, text, 0o600); err != nil {
		return err
	}
	return errors.Join(syncDisk(f.dir), f.root.Close())
}

// syncDisk has everything written to the disk of a folder.
func syncDisk(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(d.Fd())), d.Close())
}

func (f *folder) abandon() error {
	f.root.Close()
	if f.made {
		return os.RemoveAll(f.dir)
	}
	return clearFolder(f.dir)
}

func clearFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}

// bundle is a backup in one archive. Until it is finished it has another name.
type bundle struct {
	name string
	f    *os.File
	z    *zstd.Encoder
	t    *tar.Writer
}

const unfinished = ".partial"

func createArchive(name string) (output, error) {
	if _, err := os.Lstat(name); err == nil {
		return nil, fmt.Errorf("%s already exists", name)
	}
	f, err := os.OpenFile(name+unfinished, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	// One core: a server works beside us.
	z, err := zstd.NewWriter(f, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &bundle{name: name, f: f, z: z, t: tar.NewWriter(z)}, nil
}

func (b *bundle) scratch() string { return filepath.Dir(b.name) }

func (b *bundle) add(entry File, r io.Reader) (string, error) {
	err := b.t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: entry.Path, Mode: int64(entry.Mode.Perm()), Size: entry.Size, Format: tar.FormatPAX})
	if err != nil {
		return "", err
	}
	return copySum(b.t, r, entry.Size)
}

func (b *bundle) finish(m *Manifest) error {
	text, err := m.encode()
	if err != nil {
		return err
	}
	if err := b.t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: manifestFile, Mode: 0o600, Size: int64(len(text))}); err != nil {
		return err
	}
	if _, err := b.t.Write(text); err != nil {
		return err
	}
	if err := errors.Join(b.t.Close(), b.z.Close(), b.f.Sync(), b.f.Close()); err != nil {
		return err
	}
	if err := os.Rename(b.name+unfinished, b.name); err != nil {
		return err
	}
	return syncDisk(filepath.Dir(b.name))
}

func (b *bundle) abandon() error {
	b.z.Close()
	b.f.Close()
	err := os.Remove(b.name + unfinished)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
