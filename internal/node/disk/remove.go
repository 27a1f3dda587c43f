package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"golang.org/x/sys/unix"
)

// RemoveTree removes a folder with all below it, or a file; what is not there is
// no error. Folders may lie in each other as deep as they like: that takes neither
// descriptors nor stack. The folder must not change meanwhile.
func RemoveTree(path string) error {
	err := unix.Unlink(path)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	root, opened := unix.Open(path, openDir, 0)
	if opened != nil {
		return &fs.PathError{Op: "remove", Path: path, Err: errors.Join(err, opened)}
	}
	r := removal{root: root, buf: make([]byte, 32<<10)}
	err = r.empty(root)
	unix.Close(root)
	if err == nil {
		err = unix.Rmdir(path)
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}

// removal empties a folder. Folders that are deeper than one level below it are
// moved up to it, so it is never more than two levels that are looked at.
type removal struct {
	root  int
	moved int // folders so far, which are named by it
	buf   []byte
}

// empty removes what is in the folder, or in one of its folders.
func (r *removal) empty(dir int) error {
	for { // until a look finds nothing: entries come and go while they are read
		if _, err := unix.Seek(dir, 0, unix.SEEK_SET); err != nil {
			return err
		}
		found := false
		for {
			n, err := unix.ReadDirent(dir, r.buf)
			if err != nil {
				return err
			}
			if n <= 0 {
				break
			}
			_, _, names := unix.ParseDirent(r.buf[:n], -1, nil)
			found = found || len(names) > 0
			for _, name := range names {
				if err := r.remove(dir, name); err != nil {
					return fmt.Errorf("%q: %w", name, err)
				}
			}
		}
		if !found {
			return nil
		}
	}
}

// remove removes an entry of the folder, or of one of its folders.
func (r *removal) remove(dir int, name string) error {
	err := gone(unix.Unlinkat(dir, name, 0))
	if !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) {
		return err
	}
	if err = gone(unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)); !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST) {
		return err
	}
	if dir != r.root {
		return r.raise(dir, name)
	}
	sub, err := unix.Openat(dir, name, openDir, 0)
	if err != nil {
		return err
	}
	below := removal{root: r.root, moved: r.moved, buf: make([]byte, len(r.buf))}
	err = below.empty(sub)
	r.moved = below.moved
	unix.Close(sub)
	if err != nil {
		return err
	}
	return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
}

// raise moves a folder that has something in it up to the root.
func (r *removal) raise(dir int, name string) error {
	for {
		r.moved++
		err := unix.Renameat(dir, name, r.root, strconv.Itoa(r.moved))
		if !errors.Is(err, unix.EEXIST) && !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.ENOTDIR) {
			return err // nil, unless something of that name is there
		}
	}
}

// gone leaves away that there is nothing any more.
func gone(err error) error {
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}
