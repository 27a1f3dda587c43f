package rootless

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/node/runtime/state"
)

// registry is the folder in which the processes inside are named while they
// live, a file each, so that the next one finds their namespace.
type registry struct {
	dir  string
	lock *os.File
}

// openRegistry waits for the registry and keeps others out until unlock.
func openRegistry(dataDir string) (*registry, error) {
	dir := filepath.Join(dataDir, "rootless")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return &registry{dir: dir, lock: lock}, nil
}

// unlock lets others in. A child that was forked meanwhile shares the lock's
// descriptor, so closing it alone would not.
func (r *registry) unlock() error {
	return errors.Join(unix.Flock(int(r.lock.Fd()), unix.LOCK_UN), r.lock.Close())
}

// add names a process.
func (r *registry) add(pid int) error {
	start, err := state.StartTime(pid)
	if err != nil {
		return err
	}
	return os.WriteFile(r.file(pid), strconv.AppendUint(nil, start, 10), 0o600)
}

// remove forgets a process, which must not have been reaped: until then no
// other has its pid.
func (r *registry) remove(pid int) error { return os.Remove(r.file(pid)) }

func (r *registry) file(pid int) string { return filepath.Join(r.dir, strconv.Itoa(pid)) }

// processes returns the living processes that are named, and forgets the dead.
func (r *registry) processes() ([]int, error) {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue // the lock
		}
		text, err := os.ReadFile(r.file(pid))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it ended just now
		}
		if err != nil {
			return nil, err
		}
		start, err := strconv.ParseUint(string(text), 10, 64)
		if err == nil && state.Lives(pid, start) {
			pids = append(pids, pid)
			continue
		}
		if err := r.remove(pid); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return pids, nil
}

// find opens the namespace that processes of a data folder live in, whose
// sandboxes have their folders in stateDir; nil when there are none.
func (r *registry) find(stateDir string) (*os.File, error) {
	pids, err := r.processes()
	if err != nil {
		return nil, err
	}
	records, err := filepath.Glob(filepath.Join(stateDir, "*"))
	if err != nil {
		return nil, err
	}
	for _, dir := range records {
		sandboxes, err := state.Living(dir)
		if err != nil {
			return nil, err
		}
		pids = append(pids, sandboxes...)
	}
	// A crash may have left a sandbox that was not on record yet; looking for
	// it takes longest.
	for _, candidates := range []func() []int{
		func() []int { return pids },
		func() []int { return state.WithArgument("--root=" + stateDir + "/") },
	} {
		for _, pid := range candidates() {
			if ns := outermost(pid); ns != nil {
				return ns, nil
			}
		}
	}
	return nil, nil
}

// outermost opens, of the namespaces that a process lives in, the one that is a
// child of our own; nil when there is none that we may enter. A sandbox's kernel
// lives a level or two below it.
func outermost(pid int) *os.File {
	own, err := ownNamespace()
	if err != nil {
		return nil
	}
	defer own.Close()
	ns, err := os.Open(procPath(pid, "ns/user"))
	if err != nil {
		return nil // it ended, or is not ours
	}
	for !same(ns, own) {
		fd, err := unix.IoctlRetInt(int(ns.Fd()), nsGetParent)
		if err != nil {
			break // the topmost, or one outside of ours
		}
		parent := os.NewFile(uintptr(fd), "user namespace")
		if same(parent, own) && owner(ns) == os.Geteuid() {
			_ = parent.Close()
			return ns
		}
		_ = ns.Close()
		ns = parent
	}
	_ = ns.Close()
	return nil
}

// Requests to a namespace's descriptor; see ioctl_nsfs(2).
const (
	nsGetParent   = 0xb702
	nsGetOwnerUID = 0xb704
)

func same(a, b *os.File) bool {
	x, err1 := a.Stat()
	y, err2 := b.Stat()
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

// owner returns the user who made a namespace, -1 when that is not known.
func owner(ns *os.File) int {
	uid, err := unix.IoctlGetUint32(int(ns.Fd()), nsGetOwnerUID)
	if err != nil {
		return -1
	}
	return int(uid)
}
