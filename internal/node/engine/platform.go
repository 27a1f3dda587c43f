package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/guest"
	"github.com/atoll-run/atoll/internal/guest/wire"
	"github.com/atoll-run/atoll/internal/node/cgroup"
	"github.com/atoll-run/atoll/internal/node/cleanup"
	"github.com/atoll-run/atoll/internal/node/executor"
	"github.com/atoll-run/atoll/internal/node/home"
	"github.com/atoll-run/atoll/internal/node/image/erofs"
	"github.com/atoll-run/atoll/internal/node/runtime/gvisor"
	"github.com/atoll-run/atoll/internal/node/runtime/oci"
	"github.com/atoll-run/atoll/internal/node/runtime/state"
	"github.com/atoll-run/atoll/internal/node/volumes/bucket"
)

// Platform is what sandboxes are made with.
type Platform struct {
	Runsc string            // path of atoll-runsc
	OCI   string            // name or path of an OCI runtime to be used instead of it; "" for none
	Guest string            // path of atoll-guest
	State string            // folder of sandboxes' own folders, shared by all processes of one data folder
	Disk  string            // the same on disk, for what is large or run from; "" for State
	CA    []byte            // certificates that sandboxes with a network trust at first besides their image's, PEM
	Bound []byte            // the authority's for sandboxes with bound secrets, PEM; nil where there can be none
	Files map[string][]byte // more of the guest's folder, by name
	Name  string            // this process's part of it: a server's is Server, a command's NewName()
	Log   *slog.Logger

	// Cleanup retries what a start could not sweep; nil only logs it.
	Cleanup *cleanup.Queue
}

// Server is the Name of a server's platform: a data folder has one server.
const Server = "server"

// NewName returns a Name for a process that makes sandboxes beside a server.
func NewName() string { return "run-" + strings.TrimPrefix(string(runtime.NewID()), "sb-") }

// host is a runtime with what belongs to it on this machine.
type host struct {
	runtime.Runtime
	closer  io.Closer
	lock    *state.Dir     // on disk; nil where that is dir's
	cgroups *cgroup.Parent // nil where none can be made
	shared  bool           // whether programs use the host's kernel, as with an OCI runtime
	dir     string         // of its sandboxes' folders
	disk    string         // of its large files
	mu      sync.Mutex
	buckets map[runtime.ID][]*bucket.Mount // guarded by mu; what this process has mounted
	guest   string                         // path of the guest's image
	// guestCopy is held while the copy of the guest's image that sandboxes link to is made.
	guestCopy sync.Mutex
	kernel    func() (string, error) // digest of the program that is the sandboxes' kernel
	cleanup   *cleanup.Queue
	unswept   int  // sandboxes that newHost could not sweep
	keep      bool // it is a server's: runs stay for the next one, and so does the folder on disk

	homes    string // of the folders that sandboxes mount for home directories; "" for none
	homeless error  // why there are none
	storage  string // of the folders that storage is mounted in; "" where sandboxes mount nothing once they run
}

// openHost sweeps what dead processes left, and opens this process's runtime.
func openHost(ctx context.Context, p Platform) (_ *host, err error) {
	if p.Disk == "" {
		p.Disk = p.State
	}
	if err := os.MkdirAll(p.Disk, 0o700); err != nil {
		return nil, err
	}
	unlock, err := lockHosts(p.Disk)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := own(p.State); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil && p.State != p.Disk {
			_ = os.Remove(p.State) // unless others are in it
		}
	}()
	base := p
	base.CA = nil // what has no network needs none
	guestImage, err := writeGuest(base)
	if err != nil {
		return nil, err
	}
	others, err := p.others()
	if err != nil {
		return nil, err
	}
	alone := true
	for _, name := range others {
		alone = p.sweepOther(ctx, guestImage, name) && alone
	}
	if alone {
		removeStaleGuests(p.Disk, "", guestImage)
	}
	h, err := newHost(ctx, p, guestImage, p.Name)
	if err != nil {
		return nil, err
	}
	removeStaleGuests(p.Disk, "-"+p.Name, guestImage)
	if _, err := h.sweep(ctx, p.Log); err != nil {
		return nil, errors.Join(err, h.close())
	}
	if err := h.dropGuests(guestImage); err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

// lockHosts lets one process at a time make and remove the folders of processes. A
// folder that is new and not locked yet would else be taken for that of a process that
// has died.
func lockHosts(disk string) (unlock func(), err error) {
	lock, err := os.OpenFile(filepath.Join(disk, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		lock.Close()
		return nil, fmt.Errorf("lock %s: %w", disk, err)
	}
	return func() { lock.Close() }, nil
}

// own makes a folder, or checks that it belongs to this user: where every user may make
// folders, another one may have made it first.
func own(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the folder for sandboxes' state cannot be made; set state_dir to another one")
	}
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || st.Uid != uint32(os.Geteuid()) || st.Mode&0o022 != 0 {
		return fault.New(fault.Unavailable, "%s is not a folder that this user alone may write to; remove it, or set state_dir to another one", dir)
	}
	return nil
}

// others returns the names of all other processes that have a folder.
func (p Platform) others() ([]string, error) {
	names := map[string]bool{}
	for _, dir := range []string{p.State, p.Disk} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.IsDir() && e.Name() != p.Name {
				names[e.Name()] = true
			}
		}
	}
	return sortedNames(names), nil
}

// sweepOther clears the folders of another process that has ended, and reports whether
// nothing uses them anymore.
func (p Platform) sweepOther(ctx context.Context, guestImage, name string) (gone bool) {
	gone, err := p.trySweepOther(ctx, guestImage, name)
	if err == nil {
		return gone
	}
	p.Cleanup.Later(cleanup.Process, name, err, func(ctx context.Context) error {
		unlock, err := lockHosts(p.Disk)
		if err != nil {
			return err
		}
		defer unlock()
		_, err = p.trySweepOther(ctx, guestImage, name)
		return err
	})
	return false
}

// trySweepOther is sweepOther without retries; the caller holds the lock of lockHosts.
func (p Platform) trySweepOther(ctx context.Context, guestImage, name string) (gone bool, err error) {
	p.Cleanup = nil // it would retry with a host that is closed by then
	h, err := newHost(ctx, p, guestImage, name)
	if err != nil {
		return false, nil // the process lives: it holds the folder's lock
	}
	left, err := h.sweep(ctx, p.Log)
	if left += h.unswept; left > 0 {
		err = errors.Join(err, fmt.Errorf("cannot remove %d remains of process %q", left, name))
	}
	return true, errors.Join(err, h.close())
}

// removeStaleGuests removes guest images of earlier versions and certificates, and what a
// crash left of writing one. No other process may be using them. With a suffix, it removes those
// images only whose names end so.
func removeStaleGuests(dir, suffix, current string) {
	patterns := []string{"guest-*" + suffix + ".erofs"}
	if suffix == "" {
		patterns = append(patterns, ".erofs-*")
	}
	for _, pattern := range patterns {
		files, _ := filepath.Glob(filepath.Join(dir, pattern)) // the pattern is right
		for _, f := range files {
			if f != current {
				os.Remove(f)
			}
		}
	}
}

// newHost fails when the process of that name lives and is another one.
func newHost(ctx context.Context, p Platform, guestImage, name string) (_ *host, err error) {
	dir, disk := filepath.Join(p.State, name), filepath.Join(p.Disk, name)
	// A process whose state is elsewhere is found by its folder on disk, so that one is locked too.
	var lock *state.Dir
	if dir != disk {
		if lock, err = state.Open(disk); err != nil {
			return nil, err
		}
		defer func() {
			if err != nil {
				err = errors.Join(err, lock.Close())
			}
		}()
	}
	cgroups, err := cgroup.Open(groupName(disk))
	if err != nil && name == p.Name {
		// A command logs it below the level of warnings.
		level := slog.LevelInfo
		if name == Server {
			level = slog.LevelWarn
		}
		p.Log.Log(context.Background(), level, "no control groups: memory is held by watching it, processors by binding to whole ones", "reason", err)
	}
	rt, err := openRuntime(p, guestImage, dir, cgroups)
	if err != nil {
		if lock != nil && cgroups != nil {
			err = errors.Join(err, cgroups.Remove())
		}
		return nil, err
	}
	h := &host{Runtime: rt, closer: rt, lock: lock, cgroups: cgroups, dir: dir, disk: disk, keep: name == Server, guest: guestImage, cleanup: p.Cleanup}
	h.kernel = sync.OnceValues(func() (string, error) {
		return digest(filepath.Join(filepath.Dir(p.Runsc), "gvisor-bin", "gvisor_sentry"))
	})
	h.shared = p.OCI != ""
	if h.homes, h.homeless = homesFolder(p, disk); h.homeless == nil {
		h.storage = filepath.Join(disk, "storage")
	}
	if err := h.sweepDisk(ctx); err != nil {
		return nil, errors.Join(err, rt.Close())
	}
	return h, nil
}

// sweepDisk destroys the sandboxes of an earlier process of this name that had
// its state on disk, where this one has it elsewhere.
func (h *host) sweepDisk(ctx context.Context) error {
	if h.dir == h.disk {
		return nil
	}
	entries, err := os.ReadDir(h.disk)
	if err != nil {
		return err
	}
	for _, e := range entries {
		id := runtime.ID(e.Name())
		if !id.Valid() {
			continue
		}
		// Its group is killed whatever is known of it. What it left is a folder.
		if !h.cleanup.Try(ctx, cleanup.Sandbox, e.Name(), func(ctx context.Context) error {
			return errors.Join(h.Destroy(ctx, id), os.RemoveAll(filepath.Join(h.disk, e.Name())))
		}) {
			h.unswept++
		}
	}
	return nil
}

// closable is a runtime that lets go of its state folder when closed.
type closable interface {
	runtime.Runtime
	io.Closer
}

func openRuntime(p Platform, guestImage, dir string, cgroups *cgroup.Parent) (closable, error) {
	if p.OCI != "" {
		rt, err := oci.New(oci.Config{Binary: p.OCI, Guest: guestImage, State: dir, Cgroups: cgroups})
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
			return nil, fault.Wrap(fault.Unavailable, err, "the OCI runtime is missing; install it, or set oci_runtime")
		}
		if err != nil {
			return nil, err // not (*oci.Runtime)(nil)
		}
		return rt, nil
	}
	rt, err := gvisor.New(gvisor.Config{Runsc: p.Runsc, Guest: guestImage, State: dir, Cgroups: cgroups})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Wrap(fault.Unavailable, err, "a program that makes sandboxes is missing; 'make build' builds it")
	}
	if err != nil {
		return nil, err
	}
	return rt, nil
}

// admit refuses limits that the runtime knows it cannot hold on this machine.
func (h *host) admit(l runtime.Limits) error {
	rt, ok := h.Runtime.(interface{ Admit(runtime.Limits) error })
	if !ok {
		return nil
	}
	if err := rt.Admit(l); err != nil {
		return fault.New(fault.Invalid, "the environment's limits cannot be held: %v", err)
	}
	return nil
}

// admitRules refuses permissions that must not be given with this runtime.
func (h *host) admitRules(p runtime.Permissions) error {
	if p.Process.Root && h.shared {
		return fault.New(fault.Unavailable, "the permissions of this environment cannot be enforced on this server: programs run as root with runtime gvisor alone, because runtime oci has them share the host's kernel")
	}
	return nil
}

// groupName derives the name of a control group from a folder: processes that
// share neither must not sweep each other's groups.
func groupName(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return "atoll-" + hex.EncodeToString(sum[:6])
}

// sweep destroys the sandboxes that an earlier process left. It spares runs that the
// next server takes over, and named sandboxes. All others are single-use, and their
// callers are gone. failed counts the remains that the cleanup queue retries.
func (h *host) sweep(ctx context.Context, log *slog.Logger) (failed int, err error) {
	left, err := h.List(ctx)
	if err != nil {
		return 0, fmt.Errorf("list what an earlier process left: %w", err)
	}
	swept := 0
	stuck := map[runtime.ID]bool{}
	for _, info := range left {
		if h.keep && executor.HasJob(filepath.Join(h.dir, string(info.ID))) || h.isSandbox(info.ID) {
			continue
		}
		if h.cleanup.Try(ctx, cleanup.Sandbox, string(info.ID), func(ctx context.Context) error {
			// A retry also removes what sweepMounts and sweepHomes skipped.
			return errors.Join(h.Destroy(ctx, info.ID), h.unmount(info.ID))
		}) {
			swept++
		} else {
			stuck[info.ID] = true
		}
	}
	if swept > 0 {
		log.Info("swept sandboxes of an earlier process", "count", swept)
	}
	return len(stuck) + h.sweepMounts(ctx, stuck) + h.sweepHomes(ctx, stuck), nil
}

// Close lets go of the state folder and removes what is empty of it.
func (h *host) Close() error {
	unlock, err := lockHosts(filepath.Dir(h.disk))
	if err != nil {
		return errors.Join(err, h.letGo())
	}
	defer unlock()
	return h.close()
}

// letGo lets another process have the folders.
func (h *host) letGo() error {
	err := h.closer.Close()
	if h.lock != nil {
		err = errors.Join(err, h.lock.Close())
	}
	return err
}

// close is Close; the caller holds the lock of lockHosts.
func (h *host) close() error {
	left, err := h.List(context.Background())
	if err != nil { // there may be something
		return errors.Join(err, h.letGo())
	}
	errs := []error{h.dropGuests()}
	// What was let go of needs its groups; the next start sweeps both.
	if h.cgroups != nil && len(left) == 0 {
		errs = append(errs, h.cgroups.Remove())
	}
	if len(left) == 0 && !h.keep {
		errs = append(errs, home.Unmount(h.disk), os.RemoveAll(h.disk))
	}
	if len(left) == 0 && (!h.keep || h.dir != h.disk) {
		errs = append(errs, os.RemoveAll(h.dir))
		if h.dir != h.disk {
			_ = os.Remove(filepath.Dir(h.dir)) // unless others are in it
		}
	}
	return errors.Join(append(errs, h.letGo())...)
}

// daemonName is the file beside the guest's binary that looks after sandboxes
// which live for long.
const daemonName = "atoll-guestd"

// writeGuest writes the small image that holds the guest and its hooks, named
// by the digest of its content, so that sandboxes of an earlier version keep their image. Only this
// process uses an image with the operator's certificates, and removes it when it needs it no longer.
func writeGuest(p Platform) (string, error) {
	binary, err := os.ReadFile(p.Guest)
	if err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "the guest's binary is missing; 'make build' builds it")
	}
	beside := filepath.Join(filepath.Dir(p.Guest), daemonName)
	daemon, err := os.ReadFile(beside)
	if err != nil {
		return "", fault.Wrap(fault.Unavailable, err, daemonName+" is missing beside the guest's binary; 'make build' builds it")
	}
	files := map[string]erofs.File{"guest": {Mode: 0o755, Data: binary}, "atoll-guestd": {Mode: 0o755, Data: daemon}}
	hash := sha256.New()
	if len(p.CA) > 0 {
		files[wire.CAFile] = erofs.File{Mode: 0o644, Data: p.CA}
	}
	if len(p.Bound) > 0 {
		files[wire.BoundCAFile] = erofs.File{Mode: 0o644, Data: append(append(slices.Clone(p.CA), '\n'), p.Bound...)}
	}
	for name, data := range p.Files {
		files[name] = erofs.File{Mode: 0o644, Data: data}
	}
	for name, data := range guest.Files() {
		mode := uint16(0o644)
		if name == "blocked" {
			mode = 0 // it stands for files that must not be read
		}
		files[name] = erofs.File{Mode: mode, Data: data}
	}
	for _, name := range sortedNames(files) {
		fmt.Fprintf(hash, "%s %d\n", name, len(files[name].Data))
		hash.Write(files[name].Data)
	}
	name := "guest-" + hex.EncodeToString(hash.Sum(nil))[:16]
	if len(p.CA) > 0 {
		name += "-" + p.Name
	}
	path := filepath.Join(p.Disk, name+".erofs")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := erofs.WriteFiles(path, files); err != nil {
		return "", fmt.Errorf("write the guest's image: %w", err)
	}
	// The sandbox's kernel opens it as an unprivileged user.
	return path, os.Chmod(path, 0o644)
}
