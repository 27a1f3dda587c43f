package bucket

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"gocloud.dev/blob"
	"golang.org/x/sys/unix"
)

// storeTime bounds storing one file that a program closes.
const storeTime = 10 * time.Minute

// file is an object that is open, or was written and is not stored yet.
type file struct {
	m     *Mount
	opens int // guarded by Mount.mu; handles

	mu       sync.Mutex // taken after Mount.mu, and held while a file is stored
	key      string     // guarded by mu, like all that follows
	size     int64      // of what a reader would see
	modified time.Time  // likewise
	local    *os.File   // has the content; nil while only the bucket does
	dirty    bool       // local has what the bucket does not
	stored   int        // how often it has been
	gone     bool       // the object was removed: nothing is stored any more
	reader   io.ReadCloser
	at       int64 // of reader
}

func (f *file) name() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.key
}

// fetch brings the content to the local disk, or nothing of it. f.mu is held.
func (f *file) fetch(content bool) syscall.Errno {
	if f.local != nil {
		return 0
	}
	fd, err := unix.Open(f.m.cfg.Cache, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return errno(err)
	}
	local := os.NewFile(uintptr(fd), "cache")
	if !content {
		f.local, f.size = local, 0
		return 0
	}
	if no := f.m.cfg.Room.take(f.size); no != 0 {
		local.Close()
		return no
	}
	if f.size > 0 {
		r, err := f.m.cfg.Objects.NewRangeReader(f.m.ctx, f.key, 0, f.size, nil)
		if err == nil {
			var n int64
			n, err = io.Copy(local, r)
			if err = errors.Join(err, r.Close()); err == nil && n != f.size {
				err = io.ErrUnexpectedEOF
			}
		}
		if err != nil {
			f.m.cfg.Room.give(f.size)
			local.Close()
			return errno(err)
		}
	}
	f.local = local
	return 0
}

// resize makes room for a new size. f.mu is held, and f.local there.
func (f *file) resize(size int64) syscall.Errno {
	if size > f.size {
		if no := f.m.cfg.Room.take(size - f.size); no != 0 {
			return no
		}
	} else {
		f.m.cfg.Room.give(f.size - size)
	}
	f.size = size
	return 0
}

func (f *file) changed() { f.dirty, f.modified = true, time.Now() }

func (f *file) write(data []byte, off int64) (uint32, syscall.Errno) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if no := f.fetch(true); no != 0 {
		return 0, no
	}
	if no := f.resize(max(f.size, off+int64(len(data)))); no != 0 {
		return 0, no
	}
	n, err := f.local.WriteAt(data, off)
	f.changed()
	return uint32(n), errno(err)
}

func (f *file) truncate(size int64) syscall.Errno {
	f.mu.Lock()
	defer f.mu.Unlock()
	if no := f.fetch(size > 0); no != 0 {
		return no
	}
	if no := f.resize(size); no != 0 {
		return no
	}
	f.changed()
	return errno(f.local.Truncate(size))
}

// read reads from the disk, or on from where the last one stopped: a program that reads
// a file from end to end makes one request.
func (f *file) read(dest []byte, off int64) (int, syscall.Errno) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if off >= f.size {
		return 0, 0
	}
	if f.local != nil {
		n, err := f.local.ReadAt(dest, off)
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return n, errno(err)
	}
	if f.reader == nil || f.at != off {
		f.unread()
		r, err := f.m.cfg.Objects.NewRangeReader(f.m.ctx, f.key, off, -1, nil)
		if err != nil {
			return 0, errno(err)
		}
		f.reader, f.at = r, off
	}
	n, err := io.ReadFull(f.reader, dest)
	f.at += int64(n)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	if err != nil {
		f.unread()
	}
	return n, errno(err)
}

func (f *file) unread() {
	if f.reader != nil {
		f.reader.Close() // nothing is lost by what it says
		f.reader = nil
	}
}

// store puts what was written into the bucket.
func (f *file) store(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.dirty || f.gone {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := f.m.cfg.Objects.NewWriter(ctx, f.key, &blob.WriterOptions{ContentType: "application/octet-stream"})
	if err != nil {
		return err
	}
	if _, err := io.Copy(w, io.NewSectionReader(f.local, 0, f.size)); err != nil {
		cancel() // so that half of it does not become the object
		return errors.Join(err, w.Close())
	}
	if err := w.Close(); err != nil {
		return err
	}
	f.dirty = false
	f.stored++
	return nil
}

// drop lets go of the local copy. f.mu is held.
func (f *file) drop() {
	f.unread()
	if f.local != nil {
		f.local.Close() // it has no name, so this removes it
		f.m.cfg.Room.give(f.size)
		f.local = nil
	}
	f.dirty = false
}

// put stores f for the kernel, which is told of a failure. Flush tries again.
func (f *file) put() syscall.Errno {
	ctx, cancel := context.WithTimeout(f.m.ctx, storeTime)
	defer cancel()
	err := f.store(ctx)
	if err != nil {
		f.m.cfg.Log.Warn("cannot store a written file yet", "error", err)
	}
	return errno(err)
}

// maxFiles is how many files of a mount may be open or not stored yet: each may
// take a descriptor, or a connection, of this process.
const maxFiles = 1024

// open returns another handle on the file of a key. size and modified are the
// object's.
func (m *Mount) open(key string, size int64, modified time.Time) (*handle, syscall.Errno) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.files[key]
	if f == nil {
		if len(m.files) >= maxFiles {
			return nil, syscall.ENFILE
		}
		f = &file{m: m, key: key, size: size, modified: modified}
		m.files[key] = f
	}
	f.opens++
	return &handle{f}, 0
}

// known returns the file of a key, if it is open or not stored yet.
func (m *Mount) known(key string) *file {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.files[key]
}

// handle is an open file as the kernel has it.
type handle struct{ f *file }

var _ = []any{
	(fs.FileReader)((*handle)(nil)), (fs.FileWriter)((*handle)(nil)), (fs.FileFlusher)((*handle)(nil)),
	(fs.FileFsyncer)((*handle)(nil)), (fs.FileReleaser)((*handle)(nil)),
}

func (h *handle) Read(_ context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	n, no := h.f.read(dest, off)
	return fuse.ReadResultData(dest[:n]), no
}

func (h *handle) Write(_ context.Context, data []byte, off int64) (uint32, syscall.Errno) {
	return h.f.write(data, off)
}

func (h *handle) Flush(context.Context) syscall.Errno         { return h.f.put() }
func (h *handle) Fsync(context.Context, uint32) syscall.Errno { return h.f.put() }

func (h *handle) Release(context.Context) syscall.Errno {
	no := h.f.put()
	m := h.f.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if h.f.opens--; h.f.opens > 0 {
		return no
	}
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	if h.f.dirty && !h.f.gone {
		return no // Flush tries again
	}
	h.f.drop()
	if m.files[h.f.key] == h.f {
		delete(m.files, h.f.key)
	}
	return no
}
