package image

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// Store is a folder of images. Any number of processes may use one folder at
// the same time; files with flock(2) keep them apart.
type Store struct {
	dir string
}

const (
	locksDir   = ".locks"  // one lock file per image name, held by who uses the image
	importLock = ".import" // held shared by every import, so that a sweep spares its files
	tempPrefix = ".tmp-"   // folders being filled or thrown away
)

// Open opens the store in dir, making the folder when it is missing, and
// removes what a crash left there.
func Open(dir string) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, locksDir), 0o700); err != nil {
		return nil, fmt.Errorf("open image store: %w", err)
	}
	s := &Store{dir: dir}
	if err := s.sweep(); err != nil {
		return nil, fmt.Errorf("sweep image store: %w", err)
	}
	return s, nil
}

// Dir is the store's folder.
func (s *Store) Dir() string { return s.dir }

// sweep removes temporary folders unless some process is importing.
func (s *Store) sweep() error {
	lock, err := flock(filepath.Join(s.dir, importLock), unix.LOCK_EX)
	if errors.Is(err, errLocked) {
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), tempPrefix) {
			if err := os.RemoveAll(filepath.Join(s.dir, e.Name())); err != nil {
				slog.Warn("cannot remove a temporary folder of the image store; the next start retries", "name", e.Name(), "error", err)
			}
		}
	}
	return nil
}

// temp makes a folder that vanishes with undo, or with the next sweep after a
// crash.
func (s *Store) temp() (dir string, undo func() error, err error) {
	lock, err := flock(filepath.Join(s.dir, importLock), unix.LOCK_SH)
	if errors.Is(err, errLocked) {
		return "", nil, fault.New(fault.Unavailable, "the image store is being cleaned; try again")
	}
	if err != nil {
		return "", nil, err
	}
	dir, err = os.MkdirTemp(s.dir, tempPrefix)
	if err != nil {
		return "", nil, errors.Join(err, lock.Close())
	}
	return dir, func() error { return errors.Join(os.RemoveAll(dir), lock.Close()) }, nil
}

// Get returns the image of that name. It fails with a NotFound or Invalid
// fault.Error.
func (s *Store) Get(name string) (*Image, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	img, err := readRecord(filepath.Join(s.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, unknownImage(name)
	}
	return img, err
}

// Use is Get, and keeps the image from being removed until release is called
// or the process ends.
func (s *Store) Use(name string) (img *Image, release func() error, err error) {
	if err := CheckName(name); err != nil {
		return nil, nil, err
	}
	lock, err := s.lock(name, unix.LOCK_SH)
	if err != nil {
		return nil, nil, err
	}
	img, err = s.Get(name)
	if err != nil {
		return nil, nil, errors.Join(err, lock.Close())
	}
	return img, lock.Close, nil
}

// lock takes the lock of a valid image name; a Conflict when it is taken.
func (s *Store) lock(name string, how int) (*os.File, error) {
	lock, err := flock(filepath.Join(s.dir, locksDir, name), how)
	if errors.Is(err, errLocked) {
		if how == unix.LOCK_SH {
			return nil, fault.New(fault.Conflict, "the image %q is being replaced or removed", name)
		}
		return nil, fault.New(fault.Conflict, "the image %q is in use", name)
	}
	return lock, err
}

// List returns every image, ordered by name.
func (s *Store) List() ([]*Image, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	var all []*Image
	for _, e := range entries {
		if !e.IsDir() || CheckName(e.Name()) != nil {
			continue
		}
		img, err := s.Get(e.Name())
		if fault.KindOf(err) == fault.NotFound {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		all = append(all, img)
	}
	slices.SortFunc(all, func(a, b *Image) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// Remove removes an image; a Conflict while it is in use.
func (s *Store) Remove(name string) (err error) {
	if err := CheckName(name); err != nil {
		return err
	}
	lock, err := s.lock(name, unix.LOCK_EX)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	trash, undo, err := s.temp()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, undo()) }()
	err = os.Rename(filepath.Join(s.dir, name), filepath.Join(trash, name))
	if errors.Is(err, fs.ErrNotExist) {
		return unknownImage(name)
	}
	return err
}

// free reports, as a Conflict, that an image of that name is there.
func (s *Store) free(name string) error {
	_, err := os.Lstat(filepath.Join(s.dir, name))
	if err == nil {
		return fault.New(fault.Conflict, "there is an image %q already", name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// publish moves the finished folder temp to its name; with replace, in
// exchange for one that is not in use.
func (s *Store) publish(temp, name string, replace bool) (err error) {
	lock, err := s.lock(name, unix.LOCK_EX)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	target := filepath.Join(s.dir, name)
	if err := s.free(name); err != nil {
		if !replace || fault.KindOf(err) != fault.Conflict {
			return err
		}
		// What was there ends up in temp and goes with it.
		err := unix.Renameat2(unix.AT_FDCWD, temp, unix.AT_FDCWD, target, unix.RENAME_EXCHANGE)
		if err == nil {
			return syncDir(s.dir)
		}
		if err != unix.EINVAL && err != unix.ENOSYS {
			return fmt.Errorf("publish image: %w", err)
		}
		if err := os.Rename(target, filepath.Join(s.dir, tempPrefix+"old-"+filepath.Base(temp))); err != nil {
			return err
		}
	}
	if err := os.Rename(temp, target); err != nil {
		return err
	}
	return syncDir(s.dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
