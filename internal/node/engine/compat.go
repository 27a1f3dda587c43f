package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/sandboxes"
)

// compatKey is all that a kernel must have in common with a sandbox to be able to
// become it.
type compatKey struct {
	Image, Digest     string
	Limits            runtime.Limits
	Connected, Traced bool
	Guest             uint64 // inode of the guest's image
	Mounts            string // of storage: where, and whether read-only
}

// compatKey reads a sandbox's key from its recipe and its folder.
func (n Sandboxes) compatKey(id runtime.ID, r sandboxes.Recipe) (compatKey, error) {
	key := compatKey{Image: r.Image, Limits: r.Limits, Connected: r.Connected, Traced: r.Permissions.Process.Traced()}
	for _, m := range r.Mounts {
		key.Mounts += fmt.Sprintf("%q %t ", m.Folder(), m.ReadOnly)
	}
	digest, err := os.ReadFile(filepath.Join(n.e.host.sandboxDir(id), imageFile))
	if err != nil {
		return key, err
	}
	key.Digest = string(digest)
	key.Guest, err = inode(filepath.Join(n.e.host.sandboxDir(id), guestFile))
	return key, err
}

func inode(path string) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return 0, &os.PathError{Op: "lstat", Path: path, Err: err}
	}
	return st.Ino, nil
}

// guestOf returns a file that is the guest's image of a key, in the folder of one of
// these sandboxes.
func (h *host) guestOf(key compatKey, ids []runtime.ID) (string, error) {
	for _, id := range ids {
		path := filepath.Join(h.sandboxDir(id), guestFile)
		if is, err := inode(path); err == nil && is == key.Guest {
			return path, nil
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return "", fs.ErrNotExist
}

// blankDir is the folder, in a process's own, of the empty folders that standby kernels
// have mounted.
const blankDir = "blank"

// blank returns the mounts of a recipe's sandbox, with empty folders as their sources.
// gVisor tells some mounts apart by their source, so each has one of its own.
func (h *host) blank(r sandboxes.Recipe) ([]runtime.Mount, error) {
	mounts := ownMounts("", "")
	for _, m := range r.Mounts {
		mounts = append(mounts, runtime.Mount{Target: m.Folder(), Writable: !m.ReadOnly})
	}
	for i := range mounts {
		mounts[i].Source = filepath.Join(h.dir, blankDir, strconv.Itoa(i))
		if err := os.MkdirAll(mounts[i].Source, 0o711); err != nil {
			return nil, err
		}
	}
	return mounts, nil
}
