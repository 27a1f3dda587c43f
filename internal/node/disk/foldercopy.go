package disk

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// Place is a folder of a sandbox: Path, of clean names, below the folder Root of this
// machine. No name on the way may be a link.
type Place struct{ Root, Path string }

// FolderCopier copies folders between sandboxes that run. Programs may change what it
// reads meanwhile, and a kernel that one has taken over also what it writes, with the
// worst intent: everything is done with the rights of the user whose files these are, by
// descriptors of folders, and no link is followed.
type FolderCopier struct {
	UID, GID int // of this machine, never 0
	// More returns up to which sum of bytes room may be taken before it is asked again,
	// when so many are to be. Its error ends the copying.
	More func(spent int64) (most int64, err error)
}

// ErrUnsupported says that a folder has something that FolderCopier leaves to others, such as
// folders that are too deep in each other.
var ErrUnsupported = errors.New("not to be copied by the host")

const (
	maxCopyDepth = 100     // folders in each other, each with two descriptors
	maxCopyLinks = 100_000 // files with several names that are remembered
	copyPiece    = 8 << 20 // bytes of a file that are copied at once
)

// Copy copies a folder with all below it to a new name in another, with modes,
// times, links and holes, and returns how many entries there were and the bytes of
// their files. What there is of a copy that failed is left to the caller.
func (c FolderCopier) Copy(ctx context.Context, from, to Place, name string) (files, bytes int64, err error) {
	if c.UID == 0 || c.GID == 0 {
		return 0, 0, fmt.Errorf("copy %s as root", from.Path)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: the thread ends with its changed rights
		m := folderCopy{FolderCopier: c, ctx: ctx, piece: make([]byte, 128<<10), names: map[uint64]first{}}
		err = m.between(from, to, name)
		files, bytes = m.files, m.bytes
	}()
	<-done
	return files, bytes, err
}

// become gives the calling thread the rights of another user over files, and no
// more: its capabilities over them go with the user id 0.
func become(uid, gid int) error {
	for _, set := range []struct {
		call uintptr
		id   int
	}{{unix.SYS_SETFSGID, gid}, {unix.SYS_SETFSUID, uid}} {
		_, _, _ = unix.RawSyscall(set.call, uintptr(set.id), 0, 0)
		// It says who it was before, even if it could not be done.
		if is, _, _ := unix.RawSyscall(set.call, ^uintptr(0), 0, 0); int(is) != set.id {
			return fmt.Errorf("become user %d: %w", uid, unix.EPERM)
		}
	}
	return nil
}

// spend takes room. More is called on another thread, which has its own rights.
func (m *folderCopy) spend(bytes int64) error {
	if m.spent += bytes; m.spent <= m.most {
		return nil
	}
	var err error
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		m.most, err = m.More(m.spent)
	}()
	<-asked
	return err
}

// descend opens a folder below a root.
func descend(root int, path string) (int, error) {
	fd, err := unix.Openat(root, ".", openDir, 0)
	for name := range strings.SplitSeq(path, "/") {
		if err != nil {
			break
		}
		if name == "" {
			continue
		}
		at := fd
		if name == ".." {
			err = unix.EXDEV
		} else {
			fd, err = unix.Openat(at, name, openDir, 0)
		}
		unix.Close(at)
	}
	if err != nil {
		return -1, fmt.Errorf("open folder %s: %w", path, err)
	}
	return fd, nil
}
