package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/image"
)

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

// keepProvenance notes what a sandbox is made of, of which a later version of this
// program may have another.
func (h *host) keepProvenance(id runtime.ID, img *image.Image, guest string) error {
	if err := h.linkGuest(guest, filepath.Join(h.sandboxDir(id), guestFile)); err != nil {
		return err
	}
	return replaceFile(filepath.Join(h.sandboxDir(id), imageFile), []byte(img.Digest))
}

// linkGuest gives a guest image another name. The folder of this process is a
// mount of its own, so there is a copy in it, which the first call makes. Two calls must not
// make it at the same time: a link to a file fails that another one replaces meanwhile.
func (h *host) linkGuest(guest, to string) error {
	h.guestCopy.Lock()
	defer h.guestCopy.Unlock()
	shared := filepath.Join(h.disk, filepath.Base(guest))
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := os.Link(shared, to); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	data, err := os.ReadFile(guest)
	if err != nil {
		return err
	}
	if err := replaceFile(shared, data); err != nil {
		return err
	}
	return os.Link(shared, to)
}

// dropGuests removes copies of guest images that no sandbox has, except those of keep.
func (h *host) dropGuests(keep ...string) error {
	h.guestCopy.Lock()
	defer h.guestCopy.Unlock()
	all, err := filepath.Glob(filepath.Join(h.disk, "guest-*.erofs"))
	errs := []error{err}
	for _, path := range all {
		var st unix.Stat_t
		if slices.ContainsFunc(keep, func(other string) bool { return filepath.Base(other) == filepath.Base(path) }) {
			continue
		}
		if unix.Lstat(path, &st) == nil && st.Nlink == 1 {
			errs = append(errs, os.Remove(path))
		}
	}
	return errors.Join(errs...)
}

// replaceFile writes a new file in the place of one that others may have open or linked.
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
