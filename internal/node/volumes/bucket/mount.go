package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"gocloud.dev/gcerrors"
	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// Config of a Mount.
type Config struct {
	Objects  *Objects // all that is seen; closed with the Mount
	On       string   // the folder that is mounted on
	ReadOnly bool
	UID, GID uint32 // owner and group of every file
	Cache    string // folder for what is open for writing or not stored yet
	Room     *Room
	Log      *slog.Logger
}

// Room bounds the disk that Mounts together take for their caches.
type Room struct {
	Most int64
	used atomic.Int64
}

func (r *Room) take(n int64) syscall.Errno {
	if r.used.Add(n) > r.Most {
		r.used.Add(-n)
		return syscall.ENOSPC
	}
	return 0
}

// Used is how much is taken.
func (r *Room) Used() int64 { return r.used.Load() }

func (r *Room) give(n int64) { r.used.Add(-n) }

// Mount is a bucket that is mounted. What a program writes is a file on disk
// until it is closed, synced or flushed, and then an object: objects are written
// whole. Reading goes to the bucket.
type Mount struct {
	cfg    Config
	server *fuse.Server
	// ctx is that of all that the kernel asks for. A request's own ends with any
	// signal to who waits for it; gVisor's kernel, as a Go program, has those all the
	// time.
	ctx  context.Context
	stop context.CancelFunc

	mu    sync.Mutex
	files map[string]*file // guarded by mu; open ones, and those not stored yet, by key
}

// shown is how long the kernel believes what it was told.
const shown = time.Second

// Mounted mounts a bucket.
func Mounted(cfg Config) (*Mount, error) {
	m := &Mount{cfg: cfg, files: map[string]*file{}}
	m.ctx, m.stop = context.WithCancel(context.Background())
	flags := uintptr(syscall.MS_NOSUID | syscall.MS_NODEV)
	if cfg.ReadOnly {
		flags |= syscall.MS_RDONLY
	}
	timeout := shown
	server, err := fs.Mount(cfg.On, &node{m: m}, &fs.Options{
		EntryTimeout: &timeout, AttrTimeout: &timeout, UID: cfg.UID, GID: cfg.GID,
		MountOptions: fuse.MountOptions{
			AllowOther: true, DirectMountStrict: true, DirectMountFlags: flags, FsName: "atoll-bucket", Name: "atoll",
			DisableXAttrs: true, SyncRead: true, MaxReadAhead: 1 << 20, MaxWrite: 1 << 20,
			Logger: log.New(io.Discard, "", 0),
		},
	})
	if err != nil {
		m.stop()
		return nil, fault.Wrap(fault.Unavailable, err, "buckets cannot be mounted on this machine: /dev/fuse is missing or closed to this process; 'atoll doctor' says more")
	}
	m.server = server
	return m, nil
}

// Flush stores what was written and is not stored yet. Its error names what could
// not be. With the end of ctx all is given up that still waits for the bucket, also
// what the kernel has asked for and Flush would wait for.
func (m *Mount) Flush(ctx context.Context) error {
	defer context.AfterFunc(ctx, m.Abandon)()
	// What programs have mapped and written is the kernel's until it is asked.
	dir, err := os.Open(m.cfg.On)
	if err == nil {
		err = errors.Join(unix.Syncfs(int(dir.Fd())), dir.Close())
	}
	if err != nil {
		return err
	}
	m.mu.Lock()
	files := make([]*file, 0, len(m.files))
	for _, f := range m.files {
		files = append(files, f)
	}
	m.mu.Unlock()
	var names []string
	var errs []error
	for _, f := range files {
		if err := f.store(ctx); err != nil {
			names = append(names, strings.TrimPrefix(f.name(), m.cfg.Objects.Prefix))
			errs = append(errs, err)
		}
	}
	if len(errs) == 0 {
		return nil
	}
	slices.Sort(names)
	text := fmt.Sprintf("%q", names[:min(len(names), 3)])
	return fault.Wrap(fault.Unavailable, errors.Join(errs...), fmt.Sprintf("%d written files could not be stored, among them %s (%s)", len(names), text, why(errs[0])))
}

// why is what a caller may be told of a failure to store.
func why(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "it took too long"
	case gcerrors.Code(err) == gcerrors.PermissionDenied:
		return "the credentials do not allow it"
	case gcerrors.Code(err) == gcerrors.NotFound:
		return "the bucket is gone"
	}
	return "the bucket did not take it"
}

// Abandon has everything fail at once that still waits for the bucket: what is
// not stored by then is lost. A process that ends waits for what it has open here.
func (m *Mount) Abandon() { m.stop() }

// Close unmounts, and returns when the mount is served no more. Whatever has had files
// open must have ended. The kernel is told to ask for nothing more (MNT_FORCE): a
// namespace that was made meanwhile has a copy of the mount, for as long as it lives.
func (m *Mount) Close() error {
	m.stop()
	const flags = unix.MNT_DETACH | unix.UMOUNT_NOFOLLOW
	err := unix.Unmount(m.cfg.On, flags|unix.MNT_FORCE)
	if errors.Is(err, unix.EPERM) { // in a user namespace
		err = unix.Unmount(m.cfg.On, flags)
	}
	if err == nil {
		err = m.ended()
	}
	m.mu.Lock()
	files := m.files
	m.files = map[string]*file{}
	m.mu.Unlock()
	for _, f := range files {
		f.mu.Lock()
		f.drop()
		f.mu.Unlock()
	}
	return errors.Join(err, m.cfg.Objects.Close())
}

// endTime is how long after it is unmounted a mount may still be in use, where that
// could not be forced: by a process that is ending, or in the copy of all mounts that a
// new sandbox's processes begin with.
const endTime = 10 * time.Second

// ended waits for the end of what serves the kernel.
func (m *Mount) ended() error {
	done := make(chan struct{})
	go func() { // ends with the last user of the mount
		defer close(done)
		m.server.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-time.After(endTime):
		return fmt.Errorf("the mount %s is unmounted and still in use", m.cfg.On)
	}
}

// errno is what the kernel is told of an error of the bucket.
func errno(err error) syscall.Errno {
	if err == nil {
		return 0
	}
	if n, ok := errors.AsType[syscall.Errno](err); ok {
		return n
	}
	switch gcerrors.Code(err) {
	case gcerrors.NotFound:
		return syscall.ENOENT
	case gcerrors.PermissionDenied:
		return syscall.EACCES
	}
	return syscall.EIO
}
