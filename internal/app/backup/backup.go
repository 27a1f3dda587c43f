// Package backup copies what a data folder holds for good, while a server uses
// it, and puts it back.
//
// A backup is a folder, or the same in one archive: the files as they lie in the
// data folder, and a manifest with the digest of each. The database is copied
// first, as it is at one moment, and the blobs after it: a blob is complete
// before a record speaks of it, so every blob of the copied records is there,
// save those whose time ran out in between.
//
// What passes is left out: sandboxes, output logs that clients reconnect to,
// and results on their way. An execution that was running is recorded as lost by
// the server that starts on the restored folder.
package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Names in a backup, which are those in the data folder.
const (
	Database     = "atoll.db"
	blobsDir     = "blobs"
	imagesDir    = "images"
	manifestFile = "manifest.json"
)

// keyFiles are kept in the data folder where no setting gives them.
var keyFiles = []string{"secret-key", "admin-key", "dev-key", "authority.pem"}

// format is the version of the layout of backups.
const format = 1

// Manifest says what a backup holds.
type Manifest struct {
	Format    int       `json:"format"`
	CreatedAt time.Time `json:"created_at"`
	Version   string    `json:"version"`  // of Atoll
	Database  bool      `json:"database"` // false: it is PostgreSQL, with backups of its own
	Blobs     bool      `json:"blobs"`    // false: they are in a bucket
	SecretKey bool      `json:"secret_key"`
	Images    []Image   `json:"images"`      // all that there were
	WithImage bool      `json:"with_images"` // whether their files are in the backup
	Files     []File    `json:"files"`
}

// Image names an image that executions may need.
type Image struct {
	Name   string `json:"name"`
	Source string `json:"source"`
	Digest string `json:"digest"`
}

// File is a file of a backup.
type File struct {
	Path   string      `json:"path"`
	Mode   fs.FileMode `json:"mode"`
	Size   int64       `json:"size"`
	SHA256 string      `json:"sha256"`
}

// Config says what to back up.
type Config struct {
	DataDir string
	Version string // of Atoll
	// CopyDatabase writes a copy of the SQLite database in one file to another.
	// Nil if the records are in PostgreSQL.
	CopyDatabase func(ctx context.Context, from, to string) error
	Blobs        bool    // whether blobs are in the data folder
	Images       []Image // for the manifest
	WithImages   bool    // copy their files too
}

// archive reports whether a name stands for an archive rather than a folder.
func archive(name string) bool { return strings.HasSuffix(name, ".tar.zst") }

// Write makes a backup at target: an archive if its name ends in .tar.zst,
// otherwise a folder. Neither may exist; an empty folder may. Nothing stays
// there when it fails.
func Write(ctx context.Context, cfg Config, target string) (_ *Manifest, err error) {
	out, err := create(target)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, out.abandon())
		}
	}()
	m := &Manifest{
		Format: format, CreatedAt: time.Now().UTC(), Version: cfg.Version, Database: cfg.CopyDatabase != nil,
		Blobs: cfg.Blobs, Images: cfg.Images, WithImage: cfg.WithImages,
	}
	w := writer{ctx: ctx, dataDir: cfg.DataDir, out: out, m: m}
	if cfg.CopyDatabase != nil {
		if err := w.database(cfg.CopyDatabase); err != nil {
			return nil, err
		}
	}
	for _, name := range keyFiles {
		found, err := w.file(name)
		if err != nil {
			return nil, err
		}
		m.SecretKey = m.SecretKey || found && name == "secret-key"
	}
	if cfg.Blobs {
		if err := w.tree(blobsDir); err != nil {
			return nil, err
		}
	}
	if cfg.WithImages {
		if err := w.tree(imagesDir); err != nil {
			return nil, err
		}
	}
	if err := out.finish(m); err != nil {
		return nil, err
	}
	return m, nil
}

// writer adds files of a data folder to a backup.
type writer struct {
	ctx     context.Context
	dataDir string
	out     output
	m       *Manifest
}

func (w *writer) database(copyTo func(ctx context.Context, from, to string) error) (err error) {
	scratch, err := os.MkdirTemp(w.out.scratch(), ".atoll-backup-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	to := filepath.Join(scratch, Database)
	if err := copyTo(w.ctx, filepath.Join(w.dataDir, Database), to); err != nil {
		return err
	}
	_, err = w.add(Database, to)
	return err
}

// file adds a file of the data folder, if it is there.
func (w *writer) file(name string) (found bool, err error) {
	return w.add(name, filepath.Join(w.dataDir, filepath.FromSlash(name)))
}

// tree adds the regular files of a folder that are not on their way to be.
func (w *writer) tree(name string) error {
	return filepath.WalkDir(filepath.Join(w.dataDir, name), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		base := d.Name()
		if d.IsDir() && strings.HasPrefix(base, ".") {
			return filepath.SkipDir
		}
		if !d.Type().IsRegular() || strings.HasPrefix(base, ".") || strings.HasSuffix(base, ".tmp") {
			return nil
		}
		rel, err := filepath.Rel(w.dataDir, path)
		if err != nil {
			return err
		}
		_, err = w.file(filepath.ToSlash(rel))
		return err
	})
}

// add copies a file under a name. One that is gone by now is not found.
func (w *writer) add(name, path string) (found bool, err error) {
	if err := w.ctx.Err(); err != nil {
		return false, err
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	entry := File{Path: name, Mode: info.Mode().Perm(), Size: info.Size()}
	if !strings.Contains(name, "/") {
		entry.Mode &= 0o600 // the database and keys are for their owner alone
	}
	if entry.SHA256, err = w.out.add(entry, f); err != nil {
		return false, fmt.Errorf("back up %s: %w", name, err)
	}
	w.m.Files = append(w.m.Files, entry)
	return true, nil
}
