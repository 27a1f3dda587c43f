// Package volume keeps managed volumes: folders that the operator has, one for
// each connection.
//
// Programs write to them as they like, also links and folders that change while
// they are looked at. So a folder within a volume is only ever opened beneath the
// volume's root, without following links, and used by its descriptor.
package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/node/idmap"
)

// Store is where volumes are.
type Store struct {
	Dir    string    // of all volumes; made when the first one is
	Owners idmap.Map // the host's ids of a sandbox's users
}

// Open opens a folder of a connection's volume. What is missing is made if make
// is set, and belongs to the sandboxes' user.
func (s Store) Open(tenant, connection string, p storage.Path, make bool) (*os.File, error) {
	root, err := s.root(tenant, connection, make)
	if err != nil {
		return nil, err
	}
	if p == "" {
		return root, nil
	}
	defer root.Close()
	f, err := beneath(root, string(p), unix.O_PATH|unix.O_DIRECTORY)
	if errors.Is(err, fs.ErrNotExist) && make {
		f, err = s.make(root, string(p))
	}
	return f, explain(p, err)
}

// root opens a volume itself. Its parents are the operator's alone.
func (s Store) root(tenant, connection string, make bool) (*os.File, error) {
	dir := filepath.Join(s.Dir, tenant, connection)
	f, err := os.OpenFile(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if !errors.Is(err, fs.ErrNotExist) || !make {
		return f, explain("", err)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o711); err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if f, err = os.OpenFile(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0); err != nil {
		return nil, err
	}
	if err := s.give(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// give makes the sandboxes' user the owner of an open folder.
func (s Store) give(f *os.File) error {
	uid, _ := s.Owners.UID.ToHost(runtime.UID)
	gid, _ := s.Owners.GID.ToHost(runtime.GID)
	if err := unix.Fchownat(int(f.Fd()), "", int(uid), int(gid), unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return fmt.Errorf("give a folder to the sandboxes' user: %w", err)
	}
	return nil
}

// make makes a path beneath an open folder, name by name.
func (s Store) make(root *os.File, path string) (*os.File, error) {
	at, err := beneath(root, ".", unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(path, "/") {
		made := unix.Mkdirat(int(at.Fd()), name, 0o755)
		if made != nil && !errors.Is(made, unix.EEXIST) {
			return nil, errors.Join(made, at.Close())
		}
		next, err := beneath(at, name, unix.O_PATH|unix.O_DIRECTORY)
		at.Close()
		if err != nil {
			return nil, err
		}
		if at = next; made == nil {
			if err := s.give(at); err != nil {
				return nil, errors.Join(err, at.Close())
			}
		}
	}
	return at, nil
}

// beneath opens a path beneath an open folder. Links are not followed, wherever
// they lead.
func beneath(root *os.File, path string, flags uint64) (*os.File, error) {
	fd, err := unix.Openat2(int(root.Fd()), path, &unix.OpenHow{
		Flags: flags | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// explain makes faults of errors that the caller who names a path can mend.
func explain(p storage.Path, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fault.Wrap(fault.Invalid, err, fmt.Sprintf("the volume has no folder %q; make it with a program that may write there, or name another", p))
	case errors.Is(err, unix.ENOTDIR):
		return fault.Wrap(fault.Invalid, err, fmt.Sprintf("%q in the volume is not a folder; name the folder it lies in", p))
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.EXDEV):
		return fault.Wrap(fault.Invalid, err, fmt.Sprintf("%q in the volume leads through a link; name the folder that it leads to", p))
	}
	return fmt.Errorf("open %q in a volume: %w", p, err)
}
