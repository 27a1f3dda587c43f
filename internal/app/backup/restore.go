package backup

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// staging is the folder in the data folder where files wait until all of them
// have been checked.
const staging = ".restoring"

// maxManifest bounds the manifest's size.
const maxManifest = 1 << 30

// Check reads a whole backup and compares it with its manifest.
func Check(ctx context.Context, source string) (*Manifest, error) {
	var seen []File
	m, err := read(ctx, source, func(entry File, r io.Reader) error {
		sum, err := copySum(io.Discard, r, entry.Size)
		entry.SHA256 = sum
		seen = append(seen, entry)
		return err
	})
	if err != nil {
		return nil, err
	}
	return m, compare(m, seen)
}

// Restore puts a backup into a data folder, which must be empty or not there.
// Files go to their places when all of them have been found as the manifest has
// them; until then nothing of them can be taken for a data folder, and
// nothing stays when it fails.
func Restore(ctx context.Context, source, dataDir string) (_ *Manifest, err error) {
	made, err := emptyFolder(dataDir)
	if err != nil {
		return nil, err
	}
	defer func() {
		switch {
		case err == nil:
		case made:
			err = errors.Join(err, os.RemoveAll(dataDir))
		default:
			err = errors.Join(err, clearFolder(dataDir))
		}
	}()
	stage := filepath.Join(dataDir, staging)
	if err := os.Mkdir(stage, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(stage)
	if err != nil {
		return nil, err
	}
	defer root.Close()

	var seen []File
	m, err := read(ctx, source, func(entry File, r io.Reader) error {
		sum, err := writeFile(root, entry, r)
		entry.SHA256 = sum
		seen = append(seen, entry)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := compare(m, seen); err != nil {
		return nil, err
	}
	if err := syncDisk(stage); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(stage)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if err := os.Rename(filepath.Join(stage, e.Name()), filepath.Join(dataDir, e.Name())); err != nil {
			return nil, err
		}
	}
	if err := os.Remove(stage); err != nil {
		return nil, err
	}
	return m, syncDisk(dataDir)
}

// compare says how files differ from a manifest.
func compare(m *Manifest, seen []File) error {
	if m == nil {
		return errors.New("the archive has no manifest: it is not a backup, or it is incomplete")
	}
	if m.Format != format {
		return fmt.Errorf("the backup has format %d, but this version reads format %d", m.Format, format)
	}
	missing := map[string]File{}
	for _, f := range m.Files {
		missing[f.Path] = f
	}
	if len(missing) != len(m.Files) {
		return errors.New("the backup's manifest lists a file twice")
	}
	for _, f := range seen {
		want, ok := missing[f.Path]
		switch {
		case !ok:
			return fmt.Errorf("%s is not in the backup's manifest", f.Path)
		case want.Size != f.Size || want.SHA256 != f.SHA256:
			return fmt.Errorf("%s was changed after the backup: its digest differs", f.Path)
		}
		delete(missing, f.Path)
	}
	for path := range missing {
		return fmt.Errorf("the backup lacks %s", path)
	}
	return nil
}

// expected reports whether a backup may hold a file of that name.
func expected(name string) bool {
	if !filepath.IsLocal(name) || filepath.ToSlash(filepath.Clean(name)) != name {
		return false
	}
	top, _, below := strings.Cut(name, "/")
	if below {
		return top == blobsDir || top == imagesDir
	}
	return name == Database || slices.Contains(keyFiles, name)
}

// read passes every file of a backup to each, which must read all of it, and
// returns the manifest, nil if there is none.
func read(ctx context.Context, source string, each func(File, io.Reader) error) (*Manifest, error) {
	info, err := os.Stat(source)
	if err != nil {
		return nil, err
	}
	var m *Manifest
	one := func(entry File, r io.Reader) (err error) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if entry.Path == manifestFile {
			if m != nil || entry.Size > maxManifest {
				return errors.New("the backup's manifest is invalid")
			}
			m = new(Manifest)
			if err := json.NewDecoder(r).Decode(m); err != nil {
				return fmt.Errorf("read the backup's manifest: %w", err)
			}
			return nil
		}
		if !expected(entry.Path) {
			return fmt.Errorf("%q does not belong in a backup", entry.Path)
		}
		if err := each(entry, r); err != nil {
			return fmt.Errorf("read %s: %w", entry.Path, err)
		}
		return nil
	}
	if info.IsDir() {
		err = readFolder(source, one)
	} else {
		err = readArchive(source, one)
	}
	return m, err
}

func readFolder(dir string, each func(File, io.Reader) error) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !d.Type().IsRegular() {
			return fmt.Errorf("%q is not a regular file", path)
		}
		f, err := root.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		return each(File{Path: path, Mode: info.Mode().Perm(), Size: info.Size()}, f)
	})
}

func readArchive(name string, each func(File, io.Reader) error) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return err
	}
	defer z.Close()
	t := tar.NewReader(z)
	for {
		h, err := t.Next()
		if err == io.EOF {
			// What follows the last entry tells whether the archive is whole.
			_, err := io.Copy(io.Discard, z)
			return err
		}
		if err != nil {
			return fmt.Errorf("read the archive: %w", err)
		}
		if h.Typeflag != tar.TypeReg {
			return fmt.Errorf("%q is not a regular file", h.Name)
		}
		if err := each(File{Path: h.Name, Mode: fs.FileMode(h.Mode).Perm(), Size: h.Size}, t); err != nil {
			return err
		}
	}
}
