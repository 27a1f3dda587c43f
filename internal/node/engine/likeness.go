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

// likeness is all that a kernel must have in common with the sandbox that it is to
// be.
type likeness struct {
	Image, Digest     string
	Limits            runtime.Limits
	Connected, Traced bool
	Guest             uint64 // inode of the guest's image
	Mounts            string // of storage: where, and how
}

// likeness reads that of a sandbox's folder.
func (n Named) likeness(id runtime.ID, r sandboxes.Recipe) (likeness, error) {
	like := likeness{Image: r.Image, Limits: r.Limits, Connected: r.Connected, Traced: r.Permissions.Process.Traced()}
	for _, m := range r.Mounts {
		like.Mounts += fmt.Sprintf("%q %t ", m.Folder(), m.ReadOnly)
	}
	digest, err := os.ReadFile(filepath.Join(n.e.host.named(id), imageFile))
	if err != nil {
		return like, err
	}
	like.Digest = string(digest)
	like.Guest, err = inode(filepath.Join(n.e.host.named(id), guestFile))
	return like, err
}

func inode(path string) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return 0, &os.PathError{Op: "lstat", Path: path, Err: err}
	}
	return st.Ino, nil
}

// guestOf is a file that is the guest's image of a likeness, which some of these
// sandboxes had.
func (h *host) guestOf(like likeness, ids []runtime.ID) (string, error) {
	for _, id := range ids {
		path := filepath.Join(h.named(id), guestFile)
		if is, err := inode(path); err == nil && is == like.Guest {
			return path, nil
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return "", fs.ErrNotExist
}

// blankDir is the folder, in a process's own, of those that kernels have mounted
// which are nobody's yet.
const blankDir = "blank"

// blank is what the sandbox of a recipe has mounted, with nothing in it. gVisor tells
// some mounts from others by their folder, so each has one.
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
